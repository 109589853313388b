/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment is free (never filled), owned (a decoder fills it), closed (full: it waits to be
 * recycled), or absent (the machine has no memory for it). Pins are counted here, in private
 * memory: nothing that a client writes can change them.
 */
#include "daemon/publish/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/base.h"

#define SEGMENTS_MIN 64u

enum segment_state { SEGMENT_FREE = 0, SEGMENT_OWNED, SEGMENT_CLOSED, SEGMENT_ABSENT };

struct segment {
        enum segment_state state;
        uint32_t pins;
        uint64_t closed_order;
        bool is_present; /* its memory; the owner's, handed over with the segment */
};

struct ring {
        struct ring_memory memory;
        struct ring_super *super;   /* in shared memory; written only */
        struct ring_segment *table; /* likewise */
        struct segment *segments;
        uint64_t *generations; /* what the table says: never read back from shared memory */
        uint64_t segment_bytes, segments_offset, instance_id;
        uint32_t segment_count, next_free, used, pinned;
        uint64_t close_count;
};

/* Ring / 64 rounded down to a power of two, within 64 KiB and 1 MiB. */
static uint64_t segment_size(uint64_t ring_bytes) {
        uint64_t size = RING_SEGMENT_MIN_BYTES;

        while (size < RING_SEGMENT_MAX_BYTES && 2 * size * 64 <= ring_bytes)
                size *= 2;
        return size;
}

uint64_t ring_bytes_for_segments(uint64_t segment_bytes) {
        uint64_t size = RING_SEGMENT_MIN_BYTES;

        while (size < segment_bytes && size < RING_SEGMENT_MAX_BYTES)
                size *= 2;
        return size < segment_bytes ? UINT64_MAX : size * SEGMENTS_MIN;
}

static void ring_write_super(struct ring *ring) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        *ring->super = (struct ring_super){
                .magic = RING_MAGIC,
                .abi_major = RING_ABI_MAJOR,
                .abi_minor = RING_ABI_MINOR,
                .tier = ring->memory.tier,
                .instance_id = ring->instance_id,
                .size_bytes = ring->memory.size_bytes,
                .table_offset = RING_TABLE_OFFSET,
                .segments_offset = ring->segments_offset,
                .segment_bytes = ring->segment_bytes,
                .start_time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                .segment_count = ring->segment_count,
        };
        atomic_store_explicit(&ring->super->state, RING_STATE_STARTING, memory_order_release);
}

static int ring_init(struct ring *ring, uint64_t size_bytes, enum ring_huge huge) {
        uint64_t head;
        int r;

        ring->memory.fd = -1;
        ring->segment_bytes = segment_size(size_bytes);
        size_bytes = max_u64(size_bytes, SEGMENTS_MIN * ring->segment_bytes);
        if (size_bytes / ring->segment_bytes > UINT32_MAX / 2)
                return -EFBIG;
        ring->segment_count = (uint32_t)(size_bytes / ring->segment_bytes);
        ring->segments_offset = align_up(RING_TABLE_OFFSET + (uint64_t)ring->segment_count *
                                                                     sizeof(struct ring_segment),
                                         RING_SEGMENTS_ALIGNMENT);
        ring->segments = calloc(ring->segment_count, sizeof(ring->segments[0]));
        ring->generations = calloc(ring->segment_count, sizeof(ring->generations[0]));
        if (!ring->segments || !ring->generations)
                return -ENOMEM;
        if (getrandom(&ring->instance_id, sizeof(ring->instance_id), 0) !=
            sizeof(ring->instance_id))
                return -errno;
        r = ring_memory_init(
                &ring->memory,
                align_up(ring->segments_offset + ring->segment_count * ring->segment_bytes,
                         RING_SEGMENTS_ALIGNMENT),
                huge);
        if (r < 0)
                return r;
        head = align_up(RING_TABLE_OFFSET +
                                (uint64_t)ring->segment_count * sizeof(struct ring_segment),
                        RING_AREA_BYTES);
        r = ring_memory_prepare(&ring->memory, 0, head);
        if (r < 0)
                return r;
        ring->super = (struct ring_super *)(void *)ring->memory.base;
        ring->table = (struct ring_segment *)(void *)(ring->memory.base + RING_TABLE_OFFSET);
        ring_write_super(ring);
        return 0;
}

int ring_new(uint64_t size_bytes, enum ring_huge huge, struct ring **ret_ring, char **ret_error) {
        struct ring *ring = calloc(1, sizeof(*ring));
        int r;

        if (!ring)
                return -ENOMEM;
        r = ring_init(ring, size_bytes, huge);
        if (r < 0) {
                if (ret_error)
                        *ret_error = strdup(ring->memory.tier_reason[0] ? ring->memory.tier_reason
                                                                        : strerror(-r));
                ring_free(ring);
                return r;
        }
        *ret_ring = ring;
        return 0;
}

struct ring *ring_free(struct ring *ring) {
        if (!ring)
                return NULL;
        if (ring->super)
                ring_set_state(ring, RING_STATE_GONE);
        ring_memory_deinit(&ring->memory);
        free(ring->segments);
        free(ring->generations);
        free(ring);
        return NULL;
}

void ring_status(const struct ring *ring, struct ring_status *ret_status) {
        *ret_status = (struct ring_status){
                .size_bytes = ring->segment_count * ring->segment_bytes,
                .segment_bytes = ring->segment_bytes,
                .instance_id = ring->instance_id,
                .segment_count = ring->segment_count,
                .segments_ready = ring->used,
                .segments_used = ring->used,
                .segments_pinned = ring->pinned,
                .tier = ring->memory.tier,
                .tier_reason = ring->memory.tier_reason,
        };
}

int ring_data_fd(const struct ring *ring) {
        return ring->memory.fd;
}

void ring_set_state(struct ring *ring, enum ring_state state) {
        atomic_store_explicit(&ring->super->state, state, memory_order_release);
}

uint8_t *ring_segment_memory(const struct ring *ring, uint32_t segment) {
        MUST(segment < ring->segment_count);
        return ring->memory.base + ring->segments_offset + segment * ring->segment_bytes;
}

uint64_t ring_segment_generation(const struct ring *ring, uint32_t segment) {
        MUST(segment < ring->segment_count);
        return ring->generations[segment];
}

uint32_t ring_take_free(struct ring *ring) {
        uint32_t segment = ring->next_free;

        if (segment >= ring->segment_count)
                return RING_SEGMENT_NONE;
        ring->next_free++;
        ring->used++;
        ring->segments[segment].state = SEGMENT_OWNED;
        atomic_store_explicit(&ring->super->segments_ready, ring->used, memory_order_release);
        return segment;
}

uint32_t ring_free_count(const struct ring *ring) {
        return ring->segment_count - ring->next_free;
}

int ring_segment_prepare(const struct ring *ring, uint32_t segment) {
        int r = 0;

        if (!ring->segments[segment].is_present)
                r = ring_memory_prepare(&ring->memory,
                                        ring->segments_offset + segment * ring->segment_bytes,
                                        ring->segment_bytes);
        ring->segments[segment].is_present = r == 0;
        return r;
}

void ring_stop_growing(struct ring *ring, uint32_t segment) {
        MUST(ring->segments[segment].state == SEGMENT_OWNED);
        ring->segments[segment].state = SEGMENT_ABSENT;
        ring->used--;
        for (; ring->next_free < ring->segment_count; ring->next_free++)
                ring->segments[ring->next_free].state = SEGMENT_ABSENT;
        atomic_store_explicit(&ring->super->segments_ready, ring->used, memory_order_release);
}

void ring_recycle(struct ring *ring, uint32_t segment) {
        struct segment *s = &ring->segments[segment];

        MUST(s->state == SEGMENT_CLOSED && s->pins == 0);
        s->state = SEGMENT_OWNED;
        ring->generations[segment]++;
        atomic_store_explicit(&ring->table[segment].generation, ring->generations[segment],
                              memory_order_release);
}

void ring_close(struct ring *ring, uint32_t segment) {
        MUST(ring->segments[segment].state == SEGMENT_OWNED);
        ring->segments[segment].state = SEGMENT_CLOSED;
        ring->segments[segment].closed_order = ++ring->close_count;
}

bool ring_is_closed(const struct ring *ring, uint32_t segment) {
        return ring->segments[segment].state == SEGMENT_CLOSED;
}

uint64_t ring_closed_order(const struct ring *ring, uint32_t segment) {
        return ring->segments[segment].closed_order;
}

void ring_pin(struct ring *ring, uint32_t segment) {
        if (ring->segments[segment].pins++ == 0)
                ring->pinned++;
}

void ring_unpin(struct ring *ring, uint32_t segment) {
        MUST(ring->segments[segment].pins > 0);
        if (--ring->segments[segment].pins == 0)
                ring->pinned--;
}

uint32_t ring_pins(const struct ring *ring, uint32_t segment) {
        return ring->segments[segment].pins;
}
