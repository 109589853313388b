/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a value becomes in an extent: the kind of its record, its number, and its payload.
 * payload_plan() finds out how large it is, payload_write() writes it where there is room. Pure, no
 * allocation.
 */
#pragma once

#include <stdint.h>

#include "common/extent_format.h"
#include "daemon/decode/event.h"
#include "daemon/decode/histogram.h"
#include "daemon/decode/media.h"
#include "daemon/decode/tensor.h"

#define PAYLOAD_BLOBS_MAX 3 /* width, height and pixels of an image */

struct payload_blobs {
        struct protobuf_bytes blob[PAYLOAD_BLOBS_MAX];
        uint32_t count;
        char number[2][12]; /* room for blobs that are no bytes of the Event */
};

struct payload {
        uint8_t kind; /* enum extent_kind */
        uint8_t dtype;
        uint16_t flags; /* enum extent_record_flag */
        double value;   /* of a one-element number, else 0 */
        uint64_t bits;  /* of a scalar, as written */
        uint64_t bytes; /* to write; 0: none */
        /*
         * The bytes of the Event with which the payload ends, as they stand; size 0: none that are
         * worth to be told apart.
         */
        struct protobuf_bytes last;
        const struct event_value *from;
        /* one of payload.c; all but last */
        void (*write)(const struct payload *payload, uint8_t *memory);
        union {
                struct tensor tensor;
                struct histogram histogram;
                struct payload_blobs blobs;
        };
};

/* The value is borrowed while the payload, which must not move, is used. */
void payload_plan(const struct event_value *value, struct payload *ret_payload);

/* Writes payload->bytes at memory, which is 64-byte aligned. */
void payload_write(const struct payload *payload, uint8_t *ret_memory);

/* Writes all but payload->last, which the caller puts behind it. */
void payload_write_first(const struct payload *payload, uint8_t *ret_memory);
