/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring's segments: who fills them, who pins them, which one is recycled next. The memory and
 * its page tiers are ring_memory's. Loop thread, but for ring_segment_memory() and
 * ring_segment_prepare(), which any thread may call for a segment that it owns.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/ring_format.h"
#include "daemon/publish/ring_memory.h"

#define RING_SEGMENT_NONE UINT32_MAX

struct ring;

struct ring_status {
        uint64_t size_bytes, segment_bytes, instance_id;
        uint32_t segment_count, segments_ready, segments_used, segments_pinned;
        enum ring_tier tier;
        const char *tier_reason; /* why not a better tier; borrowed, "" if it is the best */
};

/*
 * Makes a ring of size_bytes (rounded down to whole segments; at least 64 segments of 64 KiB).
 * *ret_error (may be NULL) is a text for people, the caller's to free, that names the limit that
 * binds and the command that lifts it. -errno.
 */
int ring_new(uint64_t size_bytes, enum ring_huge huge, struct ring **ret_ring, char **ret_error);
/* The smallest ring whose segments have that many bytes; UINT64_MAX: they never do. */
uint64_t ring_bytes_for_segments(uint64_t segment_bytes);

/* takes NULL, returns NULL; what clients have mapped stays theirs */
struct ring *ring_free(struct ring *ring);

void ring_status(const struct ring *ring, struct ring_status *ret_status);
/* borrowed; sealed: clients can map it for reading only */
int ring_data_fd(const struct ring *ring);
void ring_set_state(struct ring *ring, enum ring_state state);

uint8_t *ring_segment_memory(const struct ring *ring, uint32_t segment);
uint64_t ring_segment_generation(const struct ring *ring, uint32_t segment);

/*
 * A segment that has never been filled, for a new owner; RING_SEGMENT_NONE when there is none left.
 * Its owner calls ring_segment_prepare() before the first use.
 */
uint32_t ring_take_free(struct ring *ring);
uint32_t ring_free_count(const struct ring *ring);

/*
 * Makes a segment's memory present; quick where it is already. Any thread that owns the segment.
 * -ENOMEM, -ENOSPC.
 */
int ring_segment_prepare(const struct ring *ring, uint32_t segment);

/*
 * There is no memory for this segment nor for those never used: they are taken out of the ring. Its
 * owner gives it up.
 */
void ring_stop_growing(struct ring *ring, uint32_t segment);

/*
 * Gives a closed segment without pins to a new owner: bumps its generation. What was in it is gone.
 */
void ring_recycle(struct ring *ring, uint32_t segment);

/* The owner is done with it. */
void ring_close(struct ring *ring, uint32_t segment);
bool ring_is_closed(const struct ring *ring, uint32_t segment);
/* grows with each close: the oldest is smallest */
uint64_t ring_closed_order(const struct ring *ring, uint32_t segment);

void ring_pin(struct ring *ring, uint32_t segment);
void ring_unpin(struct ring *ring, uint32_t segment);
uint32_t ring_pins(const struct ring *ring, uint32_t segment);
