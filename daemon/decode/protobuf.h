/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading protobuf messages in place: no allocation, nothing outside of the bytes, groups to a
 * bounded depth. What is refused is what TensorBoard's protobuf library refuses: a varint of more
 * than ten bytes, a tag of more than five or with field number 0, a length past the end, groups
 * that do not match, unknown wire types. Bits of a varint beyond 64 are dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum protobuf_type {
        PROTOBUF_VARINT = 0,
        PROTOBUF_FIXED64 = 1,
        PROTOBUF_BYTES = 2,
        PROTOBUF_GROUP = 3,
        PROTOBUF_GROUP_END = 4,
        PROTOBUF_FIXED32 = 5,
};

/* Messages and groups inside of one another. */
#define PROTOBUF_DEPTH_MAX 100

struct protobuf_bytes {
        const uint8_t *at;
        uint64_t size;
};

struct protobuf_reader {
        const uint8_t *at, *end;
        bool malformed; /* set for good by the first thing that is wrong */
};

/* A field number and type in one word, as it is on the wire: for switches. */
#define PROTOBUF_KEY(number, type) ((uint32_t)(number) << 3 | (type))

struct protobuf_field {
        uint32_t key;
        uint64_t value;              /* varint, fixed64, fixed32 */
        struct protobuf_bytes bytes; /* of PROTOBUF_BYTES */
};

/* None at all may be at no place: nothing can be added to that. */
static inline struct protobuf_reader protobuf_reader_of(struct protobuf_bytes bytes) {
        return (struct protobuf_reader){ bytes.at,
                                         bytes.size > 0 ? bytes.at + bytes.size : bytes.at, false };
}

/* Bytes that may be none at all. */
static inline void protobuf_copy(uint8_t *ret_to, struct protobuf_bytes bytes) {
        if (bytes.size > 0)
                memcpy(ret_to, bytes.at, bytes.size);
}

/*
 * What does not fit on one line of the common path: varints of several bytes, groups. False:
 * malformed.
 */
bool protobuf_long_varint(struct protobuf_reader *reader, uint64_t *ret_value);
bool protobuf_long_key(struct protobuf_reader *reader, uint32_t *ret_key);
bool protobuf_skip_group(struct protobuf_reader *reader, uint32_t number, unsigned depth);

static inline bool protobuf_varint(struct protobuf_reader *reader, uint64_t *ret_value) {
        if (reader->at < reader->end && *reader->at < 0x80) {
                *ret_value = *reader->at++;
                return true;
        }
        return protobuf_long_varint(reader, ret_value);
}

static inline bool protobuf_fixed(struct protobuf_reader *reader, unsigned width,
                                  uint64_t *ret_value) {
        if ((uint64_t)(reader->end - reader->at) < width)
                return false;
        *ret_value = 0;
        memcpy(ret_value, reader->at, width);
        reader->at += width;
        return true;
}

static inline bool protobuf_delimited(struct protobuf_reader *reader,
                                      struct protobuf_bytes *ret_bytes) {
        uint64_t size;

        if (!protobuf_varint(reader, &size) || size > (uint64_t)(reader->end - reader->at))
                return false;
        *ret_bytes = (struct protobuf_bytes){ reader->at, size };
        reader->at += size;
        return true;
}

static inline bool protobuf_value(struct protobuf_reader *reader, struct protobuf_field *field,
                                  unsigned depth) {
        switch (field->key & 7) {
        case PROTOBUF_VARINT:
                return protobuf_varint(reader, &field->value);
        case PROTOBUF_FIXED64:
                return protobuf_fixed(reader, 8, &field->value);
        case PROTOBUF_BYTES:
                return protobuf_delimited(reader, &field->bytes);
        case PROTOBUF_GROUP:
                return protobuf_skip_group(reader, field->key >> 3, depth + 1);
        case PROTOBUF_FIXED32:
                return protobuf_fixed(reader, 4, &field->value);
        default:
                return false;
        }
}

/*
 * The next key, for those who switch over it and read the value themselves; false at the end, and
 * where it is malformed.
 */
static inline bool protobuf_key(struct protobuf_reader *reader, uint32_t *ret_key) {
        if (reader->at >= reader->end)
                return false;
        if (*reader->at < 0x80)
                *ret_key = *reader->at++;
        else if (!protobuf_long_key(reader, ret_key))
                *ret_key = 0;
        if (*ret_key >> 3)
                return true;
        reader->malformed = true;
        return false;
}

/*
 * The next field; false at the end and where something is wrong (reader->malformed). A group is
 * skipped as a whole and given by its key. depth: how many messages and groups this one lies in.
 */
static inline bool protobuf_next(struct protobuf_reader *reader, unsigned depth,
                                 struct protobuf_field *ret_field) {
        if (!protobuf_key(reader, &ret_field->key))
                return false;
        if (protobuf_value(reader, ret_field, depth))
                return true;
        reader->malformed = true;
        return false;
}
