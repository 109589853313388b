/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/feed.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_format.h"

#define FEED_ENTRIES_MOST RING_QUEUE_ENTRIES
#define FEED_BYTES_MOST (1ull << 30)
#define FEED_FIRST_BYTES (64u << 10)

struct feed_item *feed_item_free(struct feed_item *item) {
        if (item)
                free(item->extent);
        free(item);
        return NULL;
}

void feed_init(struct feed *feed) {
        *feed = (struct feed){ 0 };
}

void feed_deinit(struct feed *feed) {
        struct feed_item *item;

        while ((item = feed_steal_next(feed)))
                feed_item_free(item);
        feed_item_free(feed->partial);
        feed_item_free(feed->payload);
        *feed = (struct feed){ 0 };
}

static int feed_fail(struct feed *feed, const char *problem) {
        feed->problem = problem;
        return -EPROTO;
}

/* Makes room for more bytes: grows with what arrives, never past what the entry says. */
static int item_reserve(struct feed_item *item, uint64_t more) {
        uint64_t need = item->received_bytes + more, space = item->space_bytes;
        uint8_t *extent;

        if (need <= space)
                return 0;
        space = max_u64(2 * space, max_u64(need, FEED_FIRST_BYTES));
        space = max_u64(need, min_u64(space, item->entry.size_bytes));
        extent = aligned_alloc(EXTENT_ALIGNMENT, align_up(space, EXTENT_ALIGNMENT));
        if (!extent)
                return -ENOMEM;
        if (item->received_bytes)
                memcpy(extent, item->extent, item->received_bytes);
        free(item->extent);
        item->extent = extent;
        item->space_bytes = align_up(space, EXTENT_ALIGNMENT);
        return 0;
}

static int feed_begin(struct feed *feed, const uint8_t **bytes, uint64_t *size) {
        if (*size < sizeof(struct ring_entry))
                return feed_fail(feed, "extent frame without an entry");
        feed->partial = calloc(1, sizeof(*feed->partial));
        if (!feed->partial)
                return -ENOMEM;
        memcpy(&feed->partial->entry, *bytes, sizeof(struct ring_entry));
        *bytes += sizeof(struct ring_entry);
        *size -= sizeof(struct ring_entry);
        return 0;
}

static int feed_finish(struct feed *feed) {
        struct feed_item *item = feed->partial;

        if (item->received_bytes != item->entry.size_bytes)
                return feed_fail(feed, "extent shorter than its entry says");
        if (item->entry.segment == FEED_SEGMENT_PAYLOAD) {
                if (feed->payload)
                        return feed_fail(feed, "two answers to one payload call");
                feed->payload = steal_pointer(&feed->partial);
                return 0;
        }
        if (feed->count >= FEED_ENTRIES_MOST || feed->held_bytes + item->entry.size_bytes > FEED_BYTES_MOST)
                return feed_fail(feed, "more extents than were acknowledged");
        if (feed->last)
                feed->last->next = item;
        else
                feed->first = item;
        feed->last = item;
        feed->partial = NULL;
        feed->count++;
        feed->held_bytes += item->entry.size_bytes;
        return 0;
}

int feed_take_frame(struct feed *feed, const struct wire_frame *frame) {
        const uint8_t *bytes = frame->body;
        uint64_t size = frame->size_bytes;
        struct feed_item *item;
        int r;

        if (!feed->partial && (r = feed_begin(feed, &bytes, &size)) < 0)
                return r;
        item = feed->partial;
        if (size > item->entry.size_bytes - item->received_bytes)
                return feed_fail(feed, "extent longer than its entry says");
        if ((r = item_reserve(item, size)) < 0)
                return r;
        if (size)
                memcpy(item->extent + item->received_bytes, bytes, size);
        item->received_bytes += size;
        return frame->flags & WIRE_MORE ? 0 : feed_finish(feed);
}

struct feed_item *feed_steal_next(struct feed *feed) {
        struct feed_item *item = feed->first;

        if (!item)
                return NULL;
        feed->first = item->next;
        if (!feed->first)
                feed->last = NULL;
        feed->count--;
        feed->held_bytes -= item->entry.size_bytes;
        return item;
}

struct feed_item *feed_steal_payload(struct feed *feed) {
        return steal_pointer(&feed->payload);
}
