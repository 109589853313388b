/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that belong to a stream: the subscription itself, and what the daemon knows of series
 * and sources.
 */
#pragma once

#include "client/lib/link.h"
#include "client/lib/series_table.h"

/* An id as the protocol writes it: 16 hex digits. */
json_t *subscribe_hex(uint64_t id);

/* Asks the daemon for the metadata of a series. 0 also where it knows none; -errno. */
int subscribe_ask_series(struct hr_connection *connection, struct known_series *series);

/*
 * Goes on with what the value there says of the series, asking for it again. True if the series
 * changed. *ret_r as hr_payload().
 */
bool subscribe_fetch_series(struct hr_connection *connection, const struct hr_position *position,
                            struct known_series *series, int *ret_r);

/* The URL of a source by its id; "" where the daemon named none with that id. Borrowed. */
const char *subscribe_source_url(const struct hr_connection *connection, uint64_t source_id);
