/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/inbox.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_format.h"

#define INBOX_ENTRIES_MOST RING_QUEUE_ENTRIES
#define INBOX_BYTES_MOST (1ull << 30)
#define INBOX_FIRST_BYTES (64u << 10)

struct inbox_item *inbox_item_free(struct inbox_item *item) {
        if (item)
                free(item->extent);
        free(item);
        return NULL;
}

void inbox_init(struct inbox *inbox) {
        *inbox = (struct inbox){ 0 };
}

void inbox_deinit(struct inbox *inbox) {
        struct inbox_item *item;

        while ((item = inbox_steal_next(inbox)))
                inbox_item_free(item);
        inbox_item_free(inbox->partial);
        inbox_item_free(inbox->payload);
        *inbox = (struct inbox){ 0 };
}

static int inbox_fail(struct inbox *inbox, const char *problem) {
        inbox->problem = problem;
        return -EPROTO;
}

/* Makes room for more bytes: grows with what arrives, never past what the entry says. */
static int item_reserve(struct inbox_item *item, uint64_t more) {
        uint64_t need = item->received_bytes + more, space = item->space_bytes;
        uint8_t *extent;

        if (need <= space)
                return 0;
        space = max_u64(2 * space, max_u64(need, INBOX_FIRST_BYTES));
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

static int inbox_begin(struct inbox *inbox, const uint8_t **bytes, uint64_t *size) {
        if (*size < sizeof(struct ring_entry))
                return inbox_fail(inbox, "extent frame without an entry");
        inbox->partial = calloc(1, sizeof(*inbox->partial));
        if (!inbox->partial)
                return -ENOMEM;
        memcpy(&inbox->partial->entry, *bytes, sizeof(struct ring_entry));
        *bytes += sizeof(struct ring_entry);
        *size -= sizeof(struct ring_entry);
        return 0;
}

static int inbox_finish(struct inbox *inbox) {
        struct inbox_item *item = inbox->partial;

        if (item->received_bytes != item->entry.size_bytes)
                return inbox_fail(inbox, "extent shorter than its entry says");
        if (item->entry.segment == INBOX_SEGMENT_PAYLOAD) {
                if (inbox->payload)
                        return inbox_fail(inbox, "two answers to one payload call");
                inbox->payload = steal_pointer(&inbox->partial);
                return 0;
        }
        if (inbox->count >= INBOX_ENTRIES_MOST ||
            inbox->held_bytes + item->entry.size_bytes > INBOX_BYTES_MOST)
                return inbox_fail(inbox, "more extents than were acknowledged");
        if (inbox->last)
                inbox->last->next = item;
        else
                inbox->first = item;
        inbox->last = item;
        inbox->partial = NULL;
        inbox->count++;
        inbox->held_bytes += item->entry.size_bytes;
        return 0;
}

int inbox_take_frame(struct inbox *inbox, const struct wire_frame *frame) {
        const uint8_t *bytes = frame->body;
        uint64_t size = frame->size_bytes;
        struct inbox_item *item;
        int r;

        if (!inbox->partial && (r = inbox_begin(inbox, &bytes, &size)) < 0)
                return r;
        item = inbox->partial;
        if (size > item->entry.size_bytes - item->received_bytes)
                return inbox_fail(inbox, "extent longer than its entry says");
        if ((r = item_reserve(item, size)) < 0)
                return r;
        if (size)
                memcpy(item->extent + item->received_bytes, bytes, size);
        item->received_bytes += size;
        return frame->flags & WIRE_MORE ? 0 : inbox_finish(inbox);
}

struct inbox_item *inbox_steal_next(struct inbox *inbox) {
        struct inbox_item *item = inbox->first;

        if (!item)
                return NULL;
        inbox->first = item->next;
        if (!inbox->first)
                inbox->last = NULL;
        inbox->count--;
        inbox->held_bytes -= item->entry.size_bytes;
        return item;
}

struct inbox_item *inbox_steal_payload(struct inbox *inbox) {
        return steal_pointer(&inbox->payload);
}
