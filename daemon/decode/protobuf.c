/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/decode/protobuf.h"

#define VARINT_BYTES_MAX 10
#define KEY_BYTES_MAX 5

bool protobuf_long_varint(struct protobuf_reader *reader, uint64_t *ret_value) {
        const uint8_t *at = reader->at;
        uint64_t value = 0;

        for (unsigned i = 0; i < VARINT_BYTES_MAX && at < reader->end; i++) {
                uint8_t byte = *at++;

                value |= (uint64_t)(byte & 0x7f) << (7 * i);
                if (byte < 0x80) {
                        reader->at = at;
                        *ret_value = value;
                        return true;
                }
        }
        return false;
}

bool protobuf_long_key(struct protobuf_reader *reader, uint32_t *ret_key) {
        const uint8_t *begin = reader->at;
        uint64_t value;

        if (!protobuf_long_varint(reader, &value) || reader->at - begin > KEY_BYTES_MAX ||
            value > UINT32_MAX)
                return false;
        *ret_key = (uint32_t)value;
        return true;
}

/* Calls itself through protobuf_value() for groups in groups, PROTOBUF_DEPTH_MAX deep at most. */
bool protobuf_skip_group(struct protobuf_reader *reader, uint32_t number, unsigned depth) {
        if (depth > PROTOBUF_DEPTH_MAX)
                return false;
        while (reader->at < reader->end) {
                struct protobuf_field field;
                uint64_t key;

                if (*reader->at < 0x80)
                        key = *reader->at++;
                else if (protobuf_long_key(reader, &field.key))
                        key = field.key;
                else
                        return false;
                field.key = (uint32_t)key;
                if (key == PROTOBUF_KEY(number, PROTOBUF_GROUP_END))
                        return true;
                if (field.key >> 3 == 0 || !protobuf_value(reader, &field, depth))
                        return false;
        }
        return false;
}
