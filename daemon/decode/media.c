/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/decode/media.h"

#include "daemon/decode/protobuf.h"

#define MEDIA_DEPTH 3

/* Of both messages. */
#define ENCODED PROTOBUF_KEY(4, PROTOBUF_BYTES)

#define IMAGE_HEIGHT PROTOBUF_KEY(1, PROTOBUF_VARINT)
#define IMAGE_WIDTH PROTOBUF_KEY(2, PROTOBUF_VARINT)

void media_read_image(const struct event_parts *parts, struct media *ret_media) {
        struct event_parts rest = *parts;
        struct protobuf_field field;
        struct protobuf_bytes part;

        *ret_media = (struct media){ .encoded = { parts->rest.at, 0 } };
        while (event_parts_next(&rest, &part)) {
                struct protobuf_reader reader = protobuf_reader_of(part);

                while (protobuf_next(&reader, MEDIA_DEPTH, &field)) {
                        if (field.key == IMAGE_HEIGHT)
                                ret_media->height = (int32_t)field.value;
                        else if (field.key == IMAGE_WIDTH)
                                ret_media->width = (int32_t)field.value;
                        else if (field.key == ENCODED)
                                ret_media->encoded = field.bytes;
                }
        }
}

void media_read_audio(const struct event_parts *parts, struct media *ret_media) {
        struct event_parts rest = *parts;
        struct protobuf_field field;
        struct protobuf_bytes part;

        *ret_media = (struct media){ .encoded = { parts->rest.at, 0 } };
        while (event_parts_next(&rest, &part)) {
                struct protobuf_reader reader = protobuf_reader_of(part);

                while (protobuf_next(&reader, MEDIA_DEPTH, &field))
                        if (field.key == ENCODED)
                                ret_media->encoded = field.bytes;
        }
}
