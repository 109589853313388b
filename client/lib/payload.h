/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads in place; client/lib/payload.c says how long they stay. */
#pragma once

#include "client/include/headrace.h"
#include "common/extent_view.h"

/* As hr_payload(), for this library. */
int payload_find(struct hr_connection *connection, const struct hr_batch *batch,
                 const struct hr_record *record, struct extent_payload_view *ret_payload);

/*
 * Asks for one value again: ret_view is an extent of that record alone, with all that the value
 * says of its series. Valid as long as a payload. HR_E_*, -errno as hr_payload().
 */
int payload_fetch(struct hr_connection *connection, const struct hr_position *position,
                  struct extent_view *ret_view);

/* Where a record of the extent is. */
struct hr_position payload_position(const struct extent_view *view,
                                    const struct extent_record *record);

/* The same for callers. */
void payload_show(const struct extent_payload_view *view, struct hr_payload *ret_payload);
