/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record shows in its series: a number, a tensor, or a sequence of blobs. The class and the
 * plugin of the series (common/metadata.h) decide what the value may be taken as; one that cannot
 * be taken so shows as what it was written as. docs/TENSORBOARD.md lists the rules. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/extent_format.h"
#include "common/extent_view.h"

struct meaning {
        uint8_t kind;       /* enum extent_kind: scalar, tensor or blobs */
        bool fits;          /* it is a value of its series' class */
        uint8_t bits_bytes; /* of a scalar; 0: only record->value is known of it */
        uint8_t blob_step;  /* every how manieth string is a blob (audio has labels between) */
        uint32_t blob_count;
        uint64_t bits; /* of a scalar as written, zero-extended; its number is record->value */
};

/*
 * The record is no mark. payload: its own; NULL where it is external or there is none. Without its
 * payload a string tensor is taken for blobs wherever its class says so, with a count of 0.
 */
void meaning_of(const struct extent_record *record, const struct extent_payload_view *payload,
                enum extent_class data_class, struct extent_string plugin,
                struct meaning *ret_meaning);
