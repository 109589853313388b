/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/residency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/log.h"
#include "daemon/pipeline/part_ahead.h"
#include "daemon/pipeline/reader_state.h"

int residency_init(struct pipeline *pipeline) {
        uint32_t count = pipeline->segment_count;

        pipeline->segment_blocks = calloc(count, sizeof(pipeline->segment_blocks[0]));
        pipeline->segment_need = calloc(count, sizeof(pipeline->segment_need[0]));
        pipeline->segment_ahead = calloc(count, sizeof(pipeline->segment_ahead[0]));
        if (!pipeline->segment_blocks || !pipeline->segment_need || !pipeline->segment_ahead)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                list_init(&pipeline->segment_blocks[i]);
        return 0;
}

void residency_deinit(struct pipeline *pipeline) {
        free(pipeline->segment_blocks);
        free(pipeline->segment_need);
        free(pipeline->segment_ahead);
        pipeline->segment_blocks = NULL;
        pipeline->segment_need = pipeline->segment_ahead = NULL;
}

static void residency_count_need(struct block *block, int change) {
        for (const struct list *node = block->feed->cursors.next; node != &block->feed->cursors;
             node = node->next) {
                const struct cursor *cursor = list_owner(node, struct cursor, in_feed);

                if (!cursor_wants(cursor, block))
                        continue;
                cursor->reader->need[block->segment] += (uint32_t)change;
                block->feed->pipeline->segment_need[block->segment] += (uint32_t)change;
        }
}

void residency_add(struct pipeline *pipeline, struct block *block, uint32_t segment,
                   uint32_t offset_bytes) {
        MUST(!block->resident);
        block->resident = true;
        block->segment = segment;
        block->offset_bytes = offset_bytes;
        block->feed->index.absent--;
        list_append(&pipeline->segment_blocks[segment], &block->in_segment);
        residency_count_need(block, 1);
}

void residency_remove(struct pipeline *pipeline, struct block *block) {
        (void)pipeline;
        MUST(block->resident);
        residency_count_need(block, -1);
        block->resident = false;
        block->feed->index.absent++;
        list_remove(&block->in_segment);
}

/*
 * All that was in the segment becomes absent; neighbours that are absent together are fetched
 * together.
 */
static void residency_evict(struct pipeline *pipeline, uint32_t segment) {
        struct list evicted;

        list_init(&evicted);
        list_for_each(node, &pipeline->segment_blocks[segment]) {
                struct block *block = list_owner(node, struct block, in_segment);

                residency_remove(pipeline, block);
                list_append(&evicted, &block->in_segment);
        }
        while (!list_is_empty(&evicted)) {
                struct block *block = list_owner(evicted.next, struct block, in_segment);

                list_remove(&block->in_segment);
                readers_block_evicted(block->feed, block);
                block_index_join(&block->feed->index, &pipeline->catalog.cells, block,
                                 pipeline->segment_bytes);
        }
        ring_recycle(pipeline->ring, segment);
        pipeline->counters.recycled_segments++;
}

static bool mark_ahead(void *userdata, struct feed *feed, struct block *block) {
        struct pipeline *pipeline = userdata;

        (void)feed;
        if (block && block->resident)
                pipeline->segment_ahead[block->segment]++;
        return true;
}

static void residency_mark_ahead(struct pipeline *pipeline) {
        if (pipeline->ahead_marked)
                return;
        pipeline->ahead_marked = true;
        memset(pipeline->segment_ahead, 0,
               pipeline->segment_count * sizeof(pipeline->segment_ahead[0]));
        list_for_each(node, &pipeline->readers) {
                struct reader *reader = list_owner(node, struct reader, node);

                reader_walk(reader, reader_ahead_bytes(reader), mark_ahead, pipeline);
        }
}

static bool segment_can_be_recycled(const struct pipeline *pipeline, uint32_t segment) {
        return ring_is_closed(pipeline->ring, segment) && ring_pins(pipeline->ring, segment) == 0;
}

/* The oldest closed segment without pins of which counts (NULL: any) says 0. */
static uint32_t oldest_segment(const struct pipeline *pipeline, const uint32_t *counts) {
        uint32_t oldest = RING_SEGMENT_NONE;

        for (uint32_t i = 0; i < pipeline->segment_count; i++)
                if (segment_can_be_recycled(pipeline, i) && (!counts || counts[i] == 0) &&
                    (oldest == RING_SEGMENT_NONE ||
                     ring_closed_order(pipeline->ring, i) <
                             ring_closed_order(pipeline->ring, oldest)))
                        oldest = i;
        return oldest;
}

struct distance_walk {
        uint64_t *distance; /* for each segment: bytes between it and the nearest cursor */
        uint64_t walked;
};

static bool measure_distance(void *userdata, struct feed *feed, struct block *block) {
        struct distance_walk *walk = userdata;

        (void)feed;
        if (!block)
                return true;
        if (block->resident)
                walk->distance[block->segment] = min_u64(walk->distance[block->segment],
                                                         walk->walked);
        walk->walked += block->size_bytes;
        return true;
}

/* Everybody wants everything: the segment farthest ahead of its nearest cursor is needed last. */
static uint32_t farthest_segment(struct pipeline *pipeline) {
        CLEANUP(freep) uint64_t *distance = malloc(pipeline->segment_count * sizeof(distance[0]));
        uint32_t farthest = RING_SEGMENT_NONE;

        if (!distance)
                return oldest_segment(pipeline, NULL);
        memset(distance, 0xff, pipeline->segment_count * sizeof(distance[0]));
        list_for_each(node, &pipeline->readers)
                reader_walk(list_owner(node, struct reader, node), UINT64_MAX, measure_distance,
                            &(struct distance_walk){ .distance = distance });
        for (uint32_t i = 0; i < pipeline->segment_count; i++)
                if (segment_can_be_recycled(pipeline, i) &&
                    (farthest == RING_SEGMENT_NONE || distance[i] > distance[farthest]))
                        farthest = i;
        return farthest;
}

static uint32_t residency_recycle(struct pipeline *pipeline) {
        uint32_t segment = oldest_segment(pipeline, pipeline->segment_need);

        if (segment == RING_SEGMENT_NONE) {
                residency_mark_ahead(pipeline);
                segment = oldest_segment(pipeline, pipeline->segment_ahead);
        }
        if (segment == RING_SEGMENT_NONE)
                segment = farthest_segment(pipeline);
        if (segment != RING_SEGMENT_NONE)
                residency_evict(pipeline, segment);
        return segment;
}

static uint32_t residency_take(struct pipeline *pipeline) {
        uint32_t segment = RING_SEGMENT_NONE;

        if (pipeline->options.keep_small && pipeline->reader_count > 0) {
                segment = oldest_segment(pipeline, pipeline->segment_need);
                if (segment != RING_SEGMENT_NONE) {
                        residency_evict(pipeline, segment);
                        return segment;
                }
        }
        segment = ring_take_free(pipeline->ring);
        return segment != RING_SEGMENT_NONE ? segment : residency_recycle(pipeline);
}

void residency_grant(struct pipeline *pipeline) {
        for (unsigned wants = decoder_pool_wants(pipeline->pool); wants > 0; wants--) {
                uint32_t segment = residency_take(pipeline);

                if (segment == RING_SEGMENT_NONE && part_ahead_drop_all(pipeline))
                        segment = residency_take(pipeline);
                if (segment == RING_SEGMENT_NONE)
                        /*
                         * every segment is open or pinned: the next acknowledgement or closed
                         * segment comes back here
                         */
                        return;
                decoder_pool_grant(pipeline->pool, segment);
        }
}

/*
 * What a job may count on of so many segments: less what the decoders' stock takes as soon as they
 * have work, and what is committed with the scraps that are left at the ends of segments.
 */
static uint64_t room_in_bytes(const struct pipeline *pipeline, uint64_t segments) {
        uint64_t taken = pipeline->committed_bytes + pipeline->committed_bytes / 16 +
                         decoder_pool_threads(pipeline->pool) * pipeline->segment_bytes;
        uint64_t room = segments * pipeline->segment_bytes;

        return room > taken ? room - taken : 0;
}

uint64_t residency_room_unused(const struct pipeline *pipeline) {
        return room_in_bytes(pipeline, ring_free_count(pipeline->ring));
}

uint64_t residency_room_unneeded(const struct pipeline *pipeline) {
        uint64_t room = ring_free_count(pipeline->ring);

        for (uint32_t i = 0; i < pipeline->segment_count; i++)
                room += segment_can_be_recycled(pipeline, i) && pipeline->segment_need[i] == 0;
        return room_in_bytes(pipeline, room);
}

uint64_t residency_room(struct pipeline *pipeline, struct reader *reader) {
        uint64_t room = ring_free_count(pipeline->ring);

        residency_mark_ahead(pipeline);
        for (uint32_t i = 0; i < pipeline->segment_count; i++)
                if (segment_can_be_recycled(pipeline, i) && pipeline->segment_ahead[i] == 0 &&
                    (!reader || reader->need[i] == 0))
                        room++;
        return room_in_bytes(pipeline, room);
}
