/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record is to be shown as, given the class of its series: a scalar, a tensor, or a sequence
 * of blobs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/include/headrace.h"

struct record_shape {
        enum hr_kind kind; /* not a mark */
        bool has_payload;
        struct hr_payload payload;
        /* of blobs: every how manieth string is one (audio has labels between) */
        uint32_t blob_step;
        uint8_t bits[8]; /* of a scalar: as written, big-endian */
        uint8_t bits_size;
};

/*
 * fetch: external payloads are fetched; else such a record has none. 0, HR_E_* and -errno as
 * hr_payload().
 */
int record_shape_init(struct record_shape *shape, struct hr_connection *connection,
                      const struct hr_batch *batch, const struct hr_record *record, bool fetch);

/* True where `value` alone does not say what was written: NaN, 64-bit integers. */
bool record_shape_needs_bits(const struct hr_record *record);

/*
 * True for a tensor that is one number (of a type that JSON numbers say, so neither half nor
 * complex): it is shown by value and bits, instead of a hash.
 */
bool record_shape_is_number(const struct record_shape *shape);

/* How many blobs there are. */
uint32_t record_shape_blob_count(const struct record_shape *shape);
