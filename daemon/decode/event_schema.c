/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/decode/event_schema.h"

/* What is inside of a length-delimited field. */
enum content { OPAQUE = 0, MESSAGE, PACKED_VARINT, PACKED_4, PACKED_8 };

#define NUMBERS_MAX 18 /* largest field number in the table is one less */

struct member {
        uint8_t content;
        uint8_t message;
};

#define LEAF \
        { MESSAGE, EVENT_MESSAGE_LEAF }

static const struct member members[][NUMBERS_MAX] = {
        [EVENT_MESSAGE_VALUE_METADATA] = {[1] = LEAF},
        [EVENT_MESSAGE_HISTOGRAM] = {[6] = {PACKED_8, 0}, [7] = {PACKED_8, 0}},
        [EVENT_MESSAGE_TENSOR] =
                {
                        [2] = {MESSAGE, EVENT_MESSAGE_SHAPE},
                        [5] = {PACKED_4, 0},
                        [6] = {PACKED_8, 0},
                        [7] = {PACKED_VARINT, 0},
                        [9] = {PACKED_4, 0},
                        [10] = {PACKED_VARINT, 0},
                        [11] = {PACKED_VARINT, 0},
                        [12] = {PACKED_8, 0},
                        [13] = {PACKED_VARINT, 0},
                        [14] = {MESSAGE, EVENT_MESSAGE_HANDLE},
                        [15] = {MESSAGE, EVENT_MESSAGE_VARIANT},
                        [16] = {PACKED_VARINT, 0},
                        [17] = {PACKED_VARINT, 0},
                },
        [EVENT_MESSAGE_SHAPE] = {[2] = LEAF},
        [EVENT_MESSAGE_HANDLE] = {[6] = {MESSAGE, EVENT_MESSAGE_HANDLE_SHAPE}},
        [EVENT_MESSAGE_HANDLE_SHAPE] = {[2] = {MESSAGE, EVENT_MESSAGE_SHAPE}},
        [EVENT_MESSAGE_VARIANT] = {[3] = {MESSAGE, EVENT_MESSAGE_TENSOR}},
};

static bool varints_are_whole(struct protobuf_bytes bytes) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        uint64_t value;

        while (reader.at < reader.end)
                if (!protobuf_varint(&reader, &value))
                        return false;
        return true;
}

static bool content_is_right(struct member member, struct protobuf_bytes bytes, unsigned depth) {
        switch (member.content) {
        case MESSAGE:
                return event_schema_accepts(member.message, bytes, depth + 1);
        case PACKED_VARINT:
                return varints_are_whole(bytes);
        case PACKED_4:
                return bytes.size % 4 == 0;
        case PACKED_8:
                return bytes.size % 8 == 0;
        default:
                return true;
        }
}

/* Calls itself for messages in messages, PROTOBUF_DEPTH_MAX deep at most. */
bool event_schema_accepts(enum event_message message, struct protobuf_bytes bytes, unsigned depth) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        if (depth > PROTOBUF_DEPTH_MAX)
                return false;
        while (protobuf_next(&reader, depth, &field)) {
                uint32_t number = field.key >> 3;

                if ((field.key & 7) == PROTOBUF_BYTES && number < NUMBERS_MAX &&
                    !content_is_right(members[message][number], field.bytes, depth))
                        return false;
        }
        return !reader.malformed;
}
