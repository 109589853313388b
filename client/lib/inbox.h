/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents that come over the socket: frames in, whole extents with their queue entries out, in
 * order. The answer to `payload` is an extent too, and kept apart. What it holds is bounded: the
 * daemon sends no more than was acknowledged, and one that does is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/ring_format.h"
#include "common/wire.h"

#define INBOX_SEGMENT_PAYLOAD UINT32_MAX /* an entry's segment: the extent answers `payload` */

/* One entry with its extent, which is 64-byte aligned; extent is NULL for an entry without one. */
struct inbox_item {
        struct inbox_item *next;
        struct ring_entry entry;
        uint8_t *extent;
        uint64_t received_bytes, space_bytes;
};

struct inbox_item *inbox_item_free(struct inbox_item *item); /* takes NULL, returns NULL */

struct inbox {
        struct inbox_item *first, *last; /* whole ones of the stream */
        uint64_t count, held_bytes;
        struct inbox_item *partial;
        struct inbox_item *payload; /* whole answer to `payload` */
        const char *problem;        /* static; why inbox_take_frame() gave -EPROTO */
};

void inbox_init(struct inbox *inbox);
void inbox_deinit(struct inbox *inbox);

/* Takes what an extent frame holds (copies it). -EPROTO: it is none that may come now; -ENOMEM. */
int inbox_take_frame(struct inbox *inbox, const struct wire_frame *frame);

/* The first whole item of the stream, the caller's from now on; NULL: none. */
struct inbox_item *inbox_steal_next(struct inbox *inbox);

/* The answer to `payload`, likewise. */
struct inbox_item *inbox_steal_payload(struct inbox *inbox);
