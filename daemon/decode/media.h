/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A legacy Image or Audio message as TensorBoard's data server shows it: the encoded bytes, and
 * before those of an image its width and height as decimal text. Pure, no allocation.
 */
#pragma once

#include <stdint.h>

#include "daemon/decode/event.h"

struct media {
        struct protobuf_bytes encoded; /* empty where there are none */
        int32_t width, height;         /* of an image */
};

/* Read the message that these parts merge to. */
void media_read_image(const struct event_parts *parts, struct media *ret_media);
void media_read_audio(const struct event_parts *parts, struct media *ret_media);
