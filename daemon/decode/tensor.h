/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TensorProto and its payload in an extent. tensor_read() looks at it in time that its bytes
 * bound, whatever its shape promises; tensor_write() then writes the payload. A tensor that does
 * not fit its own shape is marked malformed, and keeps type, dimensions and the elements that it
 * has. Pure, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/extent_format.h"
#include "daemon/decode/event.h"

#define TENSOR_RANK_MAX 254

struct tensor_storage;

struct tensor {
        uint8_t dtype;
        uint8_t rank; /* or EXTENT_RANK_UNKNOWN */
        bool malformed;
        bool is_number; /* one real number: the point of a scalar series */
        double value;   /* of a number, else 0 */
        uint32_t element_count;
        uint64_t payload_bytes;
        /* Where the elements are; for tensor_write(). */
        const struct tensor_storage *storage; /* NULL: a type without elements here */
        struct event_parts parts;
        struct protobuf_bytes content;     /* empty: they are in typed fields */
        struct protobuf_bytes byte_values; /* typed field of the 8-bit floats */
        uint64_t string_bytes;             /* of all elements */
        bool repeats;                      /* one typed value stands for all elements */
        int64_t dimension[TENSOR_RANK_MAX];
};

/* Reads the message that these parts merge to. */
void tensor_read(const struct event_parts *parts, struct tensor *ret_tensor);

/* Writes payload_bytes of payload. */
void tensor_write(const struct tensor *tensor, uint8_t *ret_payload);

/*
 * The bytes of the Event that are the elements as they stand, with which the payload ends; size 0:
 * there are none such. tensor_write_head() writes what is before them.
 */
struct protobuf_bytes tensor_verbatim(const struct tensor *tensor);
void tensor_write_head(const struct tensor *tensor, uint8_t *ret_payload);
