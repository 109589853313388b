/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivery: takes ready cursors in turn, one block each, pins first and pushes then, until the
 * quota or the queue is full.
 */
#include "daemon/pipeline/reader.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "common/extent_view.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/residency.h"
#include "daemon/pipeline/unread.h"

#define AHEAD_MOST_BYTES (4ull << 20)
/* a listing that is not older need not be repeated for a new reader */
#define FRESH_NS (1000000000ull)

enum step { STEP_ON, STEP_BLOCKED };

static int copy_globs(struct reader *reader, const struct reader_options *options) {
        const char *const *const lists[] = { options->runs, options->tags, options->plugins };
        const size_t counts[] = { options->run_count, options->tag_count, options->plugin_count };
        size_t at = 0;

        reader->globs = calloc(counts[0] + counts[1] + counts[2] + 1, sizeof(reader->globs[0]));
        if (!reader->globs)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                for (size_t k = 0; k < counts[i]; k++)
                        if (!(reader->globs[at++] = strdup(lists[i][k])))
                                return -ENOMEM;
        reader->run_count = counts[0];
        reader->tag_count = counts[1];
        reader->plugin_count = counts[2];
        return 0;
}

int reader_position_compare(const void *a, const void *b) {
        const struct reader_position *first = a, *second = b;

        return (first->file_id > second->file_id) - (first->file_id < second->file_id);
}

static int copy_positions(struct reader *reader, const struct reader_options *options) {
        if (options->from != READER_FROM_POSITIONS || options->position_count == 0)
                return 0;
        reader->positions = calloc(options->position_count, sizeof(reader->positions[0]));
        if (!reader->positions)
                return -ENOMEM;
        memcpy(reader->positions, options->positions,
               options->position_count * sizeof(reader->positions[0]));
        qsort(reader->positions, options->position_count, sizeof(reader->positions[0]),
              reader_position_compare);
        reader->position_count = options->position_count;
        return 0;
}

/*
 * A stream sees what storage has when it begins: a listing that is not of right now is repeated,
 * and waited for.
 */
static int ask_for_listings(struct reader *reader) {
        const struct catalog *catalog = &reader->pipeline->catalog;

        reader->attempt_wanted = calloc(catalog->source_count + 1,
                                        sizeof(reader->attempt_wanted[0]));
        if (!reader->attempt_wanted)
                return -ENOMEM;
        reader->source_count = catalog->source_count;
        for (size_t i = 0; i < catalog->source_count; i++) {
                struct catalog_source *source = catalog->sources[i];

                if ((reader->source && reader->source != source) || source->listings == 0 ||
                    uv_hrtime() - source->listed_at_ns <= FRESH_NS)
                        continue;
                reader->attempt_wanted[i] = watch_next_attempt(source->watch);
                watch_now(source->watch);
        }
        return 0;
}

/* A feed that is made here gets its cursors with those of all readers: this is one of them. */
static int add_file(struct reader *reader, struct catalog_file *file) {
        struct feed *feed = file->blocks;

        if (!reader_wants_run(reader, file->run))
                return 0;
        if (!feed)
                return unread_wake(reader->pipeline, file, &feed);
        return feed->gone ? 0 : reader_add_feed(reader, feed);
}

static int add_all_files(struct reader *reader) {
        const struct catalog *catalog = &reader->pipeline->catalog;

        for (size_t i = 0; i < catalog->source_count; i++)
                for (size_t k = 0; k < catalog->sources[i]->run_count; k++) {
                        const struct catalog_run *run = catalog->sources[i]->runs[k];

                        for (size_t f = 0; f < run->file_count; f++) {
                                int r = add_file(reader, run->files[f]);

                                if (r < 0)
                                        return r;
                        }
                }
        return 0;
}

static int reader_init(struct reader *reader, const struct reader_options *options) {
        struct pipeline *pipeline = reader->pipeline;
        int r = copy_globs(reader, options);

        reader->source = options->source;
        if (r == 0)
                r = copy_positions(reader, options);
        if (r == 0)
                r = ask_for_listings(reader);
        if (r < 0)
                return r;
        reader->need = calloc(pipeline->segment_count, sizeof(reader->need[0]));
        reader->pins = calloc(pipeline->segment_count, sizeof(reader->pins[0]));
        reader->last_entry = calloc(pipeline->segment_count, sizeof(reader->last_entry[0]));
        if (!reader->need || !reader->pins || !reader->last_entry)
                return -ENOMEM;
        reader->order = options->order;
        reader->from = options->from;
        reader->follow = options->follow;
        reader->begin_serial = pipeline->serial;
        return add_all_files(reader);
}

unsigned pipeline_readers_max(const struct pipeline *pipeline) {
        uint32_t segments = pipeline->segments_usable;
        uint32_t reserved = segments / 8 + 2 * decoder_pool_threads(pipeline->pool) + 1;

        unsigned most = segments > reserved ? (segments - reserved) / READER_FLOOR_SEGMENTS : 0;

        return pipeline->options.readers_max && pipeline->options.readers_max < most
                       ? pipeline->options.readers_max
                       : most;
}

/* A ring that has room for one reader more. */
static uint64_t ring_bytes_for_one_more(const struct pipeline *pipeline) {
        uint64_t bytes = pipeline->segment_count * pipeline->segment_bytes;
        uint64_t needed = READER_FLOOR_SEGMENTS * (pipeline->reader_count + 1ull) +
                          2 * decoder_pool_threads(pipeline->pool) + 1;

        while ((bytes / pipeline->segment_bytes) * 7 / 8 < needed)
                bytes += bytes / 4;
        return align_up(bytes, 1 << 20);
}

static void pipeline_follow(struct pipeline *pipeline, int change) {
        pipeline->follower_count += (unsigned)change;
        for (size_t i = 0; i < pipeline->catalog.source_count; i++)
                watch_set_interest(pipeline->catalog.sources[i]->watch,
                                   pipeline->follower_count ? WATCH_FOLLOWED : WATCH_NOBODY);
}

int reader_new(struct pipeline *pipeline, const struct reader_options *options,
               const struct reader_operations *operations, void *userdata,
               struct reader **ret_reader, uint64_t *ret_ring_bytes) {
        struct reader *reader;
        int r;

        if (pipeline->reader_count >= pipeline_readers_max(pipeline)) {
                *ret_ring_bytes = ring_bytes_for_one_more(pipeline);
                return READER_E_NO_ROOM;
        }
        reader = calloc(1, sizeof(*reader));
        if (!reader)
                return -ENOMEM;
        reader->pipeline = pipeline;
        reader->operations = operations;
        reader->userdata = userdata;
        list_init(&reader->node);
        list_init(&reader->lanes);
        list_init(&reader->lanes_done);
        lane_queue_init(&reader->hungry);
        list_init(&reader->ready);
        list_init(&reader->notices);
        list_init(&reader->charged_jobs);
        list_append(&pipeline->readers, &reader->node);
        pipeline->reader_count++;
        r = reader_init(reader, options);
        if (r < 0) {
                reader->follow = false;
                reader_free(reader);
                return r;
        }
        if (reader->follow)
                pipeline_follow(pipeline, 1);
        pipeline_touch(pipeline);
        *ret_reader = reader;
        return 0;
}

static void reader_drop_pins(struct reader *reader) {
        for (uint32_t i = 0; reader->pins && i < reader->pipeline->segment_count; i++)
                if (reader->pins[i] > 0)
                        ring_unpin(reader->pipeline->ring, i);
        for (uint32_t i = 0; reader->need && i < reader->pipeline->segment_count; i++)
                reader->pipeline->segment_need[i] -= reader->need[i];
}

static void free_globs(char **globs, size_t count) {
        for (size_t i = 0; i < count; i++)
                free(globs[i]);
        free(globs);
}

struct reader *reader_free(struct reader *reader) {
        struct pipeline *pipeline;

        if (!reader)
                return NULL;
        pipeline = reader->pipeline;
        reader_drop_pins(reader);
        list_for_each(job, &reader->charged_jobs)
                job_uncharge(list_owner(job, struct job, in_reader));
        list_for_each(lane, &reader->lanes) lane_free(list_owner(lane, struct lane, node));
        list_for_each(done, &reader->lanes_done) lane_free(list_owner(done, struct lane, node));
        list_for_each(notice, &reader->notices) free(list_owner(notice, struct notice, node));
        if (reader->follow)
                pipeline_follow(pipeline, -1);
        pipeline->reader_count--;
        list_remove(&reader->node);
        for (size_t i = 0; reader->globs && reader->globs[i]; i++)
                free(reader->globs[i]);
        free(reader->globs);
        free_globs(reader->prioritized, reader->prioritized_count);
        free(reader->positions);
        free(reader->attempt_wanted);
        free(reader->need);
        free(reader->pins);
        free(reader->last_entry);
        free(reader);
        pipeline_touch(pipeline);
        return NULL;
}

int reader_prioritize(struct reader *reader, const char *const *runs, size_t count) {
        char **globs;

        if (reader->order == READER_ORDER_SORTED)
                return -EINVAL;
        globs = calloc(count + 1, sizeof(globs[0]));
        for (size_t i = 0; globs && i < count; i++) {
                globs[i] = strdup(runs[i]);
                if (!globs[i]) {
                        free_globs(globs, i);
                        globs = NULL;
                }
        }
        if (!globs)
                return -ENOMEM;
        free_globs(reader->prioritized, reader->prioritized_count);
        reader->prioritized = globs;
        reader->prioritized_count = count;
        list_for_each(node, &reader->lanes) lane_prioritize(list_owner(node, struct lane, node));
        list_for_each(node, &reader->lanes_done)
                lane_prioritize(list_owner(node, struct lane, node));
        pipeline_touch(reader->pipeline);
        return 0;
}

uint64_t reader_ahead_bytes(const struct reader *reader) {
        return min_u64(AHEAD_MOST_BYTES,
                       reader->pipeline->segments_usable * reader->pipeline->segment_bytes / 16);
}

static unsigned reader_held(const struct reader *reader) {
        return reader->pinned_segments + reader->reserved_segments;
}

static unsigned above_floor(const struct reader *reader) {
        return reader_held(reader) > READER_FLOOR_SEGMENTS
                       ? reader_held(reader) - READER_FLOOR_SEGMENTS
                       : 0;
}

/*
 * The floor is always its own. Above it a segment is granted if the reader then has no more of the
 * surplus than is left for the others: mine + k <= total - (used + k).
 */
unsigned reader_quota_left(const struct reader *reader) {
        const struct list *readers = &reader->pipeline->readers;
        unsigned total = reader->pipeline->segments_usable / 8, used = 0,
                 mine = above_floor(reader);
        unsigned floor = reader_held(reader) < READER_FLOOR_SEGMENTS
                                 ? READER_FLOOR_SEGMENTS - reader_held(reader)
                                 : 0;

        for (const struct list *node = readers->next; node != readers; node = node->next)
                used += above_floor(list_owner(node, struct reader, node));
        return floor + (total > used + mine ? (total - used - mine) / 2 : 0);
}

void reader_notice(struct reader *reader, const struct ring_entry *entry) {
        struct notice *notice = calloc(1, sizeof(*notice));

        if (!notice) {
                reader->error = -ENOMEM;
                pipeline_touch(reader->pipeline);
                return;
        }
        notice->entry = *entry;
        list_append(&reader->notices, &notice->node);
        pipeline_touch(reader->pipeline);
}

static bool reader_has_place(const struct reader *reader) {
        return reader->pushed - reader->acked < RING_QUEUE_ENTRIES &&
               reader->operations->has_room(reader->userdata);
}

static void reader_push(struct reader *reader, const struct ring_entry *entry, const void *extent) {
        uint32_t segment = extent ? entry->segment : RING_SEGMENT_NONE;

        reader->in_flight[reader->pushed % RING_QUEUE_ENTRIES] = segment;
        if (extent) {
                if (reader->pins[segment]++ == 0) {
                        ring_pin(reader->pipeline->ring, segment);
                        reader->pinned_segments++;
                }
                reader->last_entry[segment] = reader->pushed;
                reader->records += entry->record_count;
        }
        reader->pushed++;
        reader->operations->push(reader->userdata, entry, extent);
}

int reader_acknowledge(struct reader *reader, uint64_t acked) {
        if (acked < reader->acked || acked > reader->pushed)
                return -EPROTO;
        if (acked == reader->acked)
                return 0;
        reader->acked_at_ns = uv_hrtime();
        for (; reader->acked < acked; reader->acked++) {
                uint32_t segment = reader->in_flight[reader->acked % RING_QUEUE_ENTRIES];

                if (segment == RING_SEGMENT_NONE || --reader->pins[segment] > 0)
                        continue;
                ring_unpin(reader->pipeline->ring, segment);
                reader->pinned_segments--;
        }
        pipeline_touch(reader->pipeline);
        return 0;
}

static bool any_glob(char *const *globs, size_t count, const char *text) {
        for (size_t i = 0; i < count; i++)
                if (fnmatch(globs[i], text, 0) == 0)
                        return true;
        return count == 0;
}

/*
 * True if a series of the extent is one that the filters let through, or may be at one of its
 * records: the client looks at each. An extent without series (a run begins) always is.
 */
static bool reader_wants_extent(const struct reader *reader, const struct extent_header *extent) {
        char *const *tags = reader->globs + reader->run_count, *const *plugins = tags +
                                                                                 reader->tag_count;
        struct extent_view view;

        if (reader->tag_count + reader->plugin_count == 0)
                return true;
        if (extent_view_init(&view, extent, extent->size_bytes) < 0)
                return true;
        for (uint32_t i = 0; i < view.series_count; i++) {
                const struct catalog_series *series = catalog_find_series(
                        &reader->pipeline->catalog, view.series[i].series_id);

                if (!series || (any_glob(tags, reader->tag_count, series->tag.bytes) &&
                                (series->is_several_plugins ||
                                 any_glob(plugins, reader->plugin_count,
                                          series->plugin.bytes ? series->plugin.bytes : ""))))
                        return true;
        }
        return view.series_count == 0;
}

/* The first record of the extent at or behind a position. */
static uint32_t record_at(const struct extent_header *extent, struct block_position position) {
        const struct extent_record *records = (const void *)((const char *)extent +
                                                             extent->records_offset);
        uint32_t low = 0, high = extent->record_count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                struct block_position at = { records[middle].source_offset,
                                             records[middle].value_index };

                if (block_position_compare(at, position) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* A client's position must be the place of a record, or of the one behind it in the same Event. */
static bool position_is_right(const struct extent_header *extent, const struct block *block,
                              struct block_position position) {
        const struct extent_record *records = (const void *)((const char *)extent +
                                                             extent->records_offset);
        uint32_t at = record_at(extent, position);

        return position.offset == block->begin.offset ||
               (at < extent->record_count && records[at].source_offset == position.offset) ||
               (at > 0 && records[at - 1].source_offset == position.offset);
}

static uint32_t entry_flags(const struct reader *reader, const struct block *block) {
        return (block->refetched || block->serial <= reader->begin_serial ? RING_ENTRY_REPLAY : 0) |
               (block->late ? RING_ENTRY_LATE : 0) | (block->damaged ? RING_ENTRY_DAMAGED : 0);
}

static struct ring_entry block_entry(const struct reader *reader, const struct block *block) {
        return (struct ring_entry){
                .segment = block->segment,
                .offset_bytes = block->offset_bytes,
                .size_bytes = block->size_bytes,
                .record_count = block->record_count,
                .flags = entry_flags(reader, block),
                .generation = block->resident ? ring_segment_generation(reader->pipeline->ring,
                                                                        block->segment)
                                              : 0,
                .file_id = block->feed->file->id,
                .run_id = block->feed->file->run->id,
                .source_offset = block->begin.offset,
        };
}

static enum step deliver_lost(struct cursor *cursor, struct block *block) {
        struct ring_entry entry = block_entry(cursor->reader, block);

        if (!reader_has_place(cursor->reader))
                return STEP_BLOCKED;
        entry.segment = entry.offset_bytes = entry.size_bytes = entry.record_count = 0;
        entry.flags = RING_ENTRY_LOST;
        entry.generation = block->feed->file->version;
        entry.lost_count = block->record_count;
        list_remove(&cursor->ready);
        reader_push(cursor->reader, &entry, NULL);
        cursor_pass(cursor, block);
        return STEP_ON;
}

static enum step deliver_resident(struct cursor *cursor, struct block *block) {
        struct reader *reader = cursor->reader;
        const struct extent_header *extent =
                (const void *)(ring_segment_memory(reader->pipeline->ring, block->segment) +
                               block->offset_bytes);
        struct ring_entry entry = block_entry(reader, block);

        if (block_position_compare(cursor->position, block->begin) > 0) {
                if (cursor->resumes && !position_is_right(extent, block, cursor->position)) {
                        list_remove(&cursor->ready);
                        cursor_restart(cursor);
                        return STEP_ON;
                }
                entry.first_record = record_at(extent, cursor->position);
                entry.record_count -= entry.first_record;
        }
        if ((entry.first_record > 0 && entry.record_count == 0) ||
            !reader_wants_extent(reader, extent)) {
                list_remove(&cursor->ready);
                cursor_pass(cursor, block);
                return STEP_ON;
        }
        if (!reader_has_place(reader) ||
            (reader->pins[block->segment] == 0 && reader_quota_left(reader) == 0))
                return STEP_BLOCKED;
        list_remove(&cursor->ready);
        reader_push(reader, &entry, extent);
        cursor->begun_version = block->feed->file->version;
        cursor_pass(cursor, block);
        return STEP_ON;
}

/* One block for the first ready cursor. */
static enum step reader_deliver(struct reader *reader) {
        struct cursor *cursor = list_owner(reader->ready.next, struct cursor, ready);
        struct block *block = feed_block_at(cursor->feed, cursor->position);

        if (!block) {
                list_remove(&cursor->ready);
                cursor_rest(cursor);
                return STEP_ON;
        }
        if (block->lost)
                return deliver_lost(cursor, block);
        if (block->resident)
                return deliver_resident(cursor, block);
        list_remove(&cursor->ready);
        cursor->waits = true;
        lane_set_hungry(cursor->lane, cursor->feed, LANE_AWAITED);
        return STEP_ON;
}

static enum step reader_deliver_notice(struct reader *reader) {
        struct notice *notice = list_owner(reader->notices.next, struct notice, node);

        if (!reader_has_place(reader))
                return STEP_BLOCKED;
        reader_push(reader, &notice->entry, NULL);
        list_remove(&notice->node);
        free(notice);
        return STEP_ON;
}

/* Opens the stream when every source has been listed as recently as it wants. */
static void reader_open(struct reader *reader) {
        for (size_t i = 0; i < reader->source_count; i++) {
                const struct catalog_source *source = reader->pipeline->catalog.sources[i];

                if (reader->source && reader->source != source)
                        continue;
                if (source->listings == 0 && source->state == CATALOG_SOURCE_FAILING) {
                        if (!reader->follow) {
                                reader->failed = true;
                                reader->operations->source_failed(reader->userdata, source);
                                return;
                        }
                        continue;
                }
                /* What could be read is there; what else there is, who follows hears in time. */
                if (source->listings == 0 && source->has_remembered && reader->follow)
                        continue;
                if (source->listings == 0 || source->attempts < reader->attempt_wanted[i])
                        return;
        }
        reader->open = true;
        list_for_each(node, &reader->lanes) lane_advance(list_owner(node, struct lane, node));
}

void readers_source_removed(struct pipeline *pipeline, struct catalog_source *source,
                            size_t index) {
        static const struct catalog_source nowhere;

        list_for_each(node, &pipeline->readers) {
                struct reader *reader = list_owner(node, struct reader, node);

                if (index < reader->source_count)
                        memmove(&reader->attempt_wanted[index], &reader->attempt_wanted[index + 1],
                                (--reader->source_count - index) *
                                        sizeof(reader->attempt_wanted[0]));
                if (reader->source != source)
                        continue;
                reader->source = &nowhere;
                if (reader->failed || reader->ended)
                        continue;
                reader->failed = true;
                reader->operations->source_failed(reader->userdata, source);
        }
}

static bool reader_is_complete(const struct reader *reader) {
        return reader->open && !reader->follow && !reader->ended && reader->unfinished_lanes == 0 &&
               list_is_empty(&reader->notices);
}

void reader_pump(struct reader *reader) {
        uint64_t before = reader->pushed;
        enum step step = STEP_ON;

        reader->blocked = false;
        if (reader->error && !reader->failed) {
                reader->failed = true;
                reader->operations->broken(reader->userdata, reader->error);
        }
        if (!reader->open && !reader->failed)
                reader_open(reader);
        if (!(reader->open || reader->begun) || reader->failed || reader->ended)
                return;
        while (step == STEP_ON &&
               !(list_is_empty(&reader->notices) && list_is_empty(&reader->ready)))
                step = list_is_empty(&reader->notices) ? reader_deliver(reader)
                                                       : reader_deliver_notice(reader);
        if (step == STEP_ON && reader_is_complete(reader)) {
                if (reader_has_place(reader)) {
                        reader_push(reader, &(struct ring_entry){ .flags = RING_ENTRY_END }, NULL);
                        reader->ended = true;
                } else {
                        step = STEP_BLOCKED;
                }
        }
        reader->blocked = step == STEP_BLOCKED;
        if (reader->pushed > before)
                reader->operations->flush(reader->userdata);
}

/*
 * The smallest number of acknowledged entries at which a segment or a place in the queue comes
 * free.
 */
static uint64_t reader_kick_at(const struct reader *reader) {
        uint64_t kick_at = reader_has_place(reader) ? UINT64_MAX : reader->acked + 1;

        for (uint32_t i = 0; reader->pinned_segments > 0 && i < reader->pipeline->segment_count;
             i++)
                if (reader->pins[i] > 0)
                        kick_at = min_u64(kick_at, reader->last_entry[i] + 1);
        return kick_at;
}

void reader_set_kick(struct reader *reader) {
        uint64_t kick_at;

        if (!reader->blocked && !reader->job_held_back)
                return;
        kick_at = reader_kick_at(reader);
        if (kick_at == UINT64_MAX)
                /* nothing of it is in the client's hands: what it waits for comes from elsewhere */
                return;
        if (reader_acknowledge(reader, reader->operations->set_kick(reader->userdata, kick_at)) < 0)
                reader->error = -EPROTO;
        if (reader->error)
                pipeline_touch(reader->pipeline);
}

/*
 * One lane's part of the walk: the cursors that are not finished, in order. False: the walk has
 * ended.
 */
static bool lane_walk(struct lane *lane, uint64_t limit_bytes, uint64_t *walked,
                      bool (*visit)(void *userdata, struct feed *feed, struct block *block),
                      void *userdata) {
        while (lane->first < lane->count && lane->cursors[lane->first]->finished)
                lane->first++;
        for (size_t i = lane->first; i < lane->count; i++) {
                const struct cursor *cursor = lane->cursors[i];
                struct feed *feed = cursor->feed;

                if (cursor->finished)
                        continue;
                for (size_t k = block_index_find(&feed->index, cursor->position);
                     k < feed->index.count; k++) {
                        if (*walked >= limit_bytes || !visit(userdata, feed, feed->index.blocks[k]))
                                return false;
                        *walked += feed->index.blocks[k]->size_bytes;
                }
                if (feed->file->settled)
                        continue;
                /* what is under way will come by itself, but for what is paused */
                if (!feed->paused)
                        *walked += feed_estimate_under_way(feed);
                if (*walked >= limit_bytes || !visit(userdata, feed, NULL))
                        return false;
                if (feed->paused)
                        *walked += feed_estimate_under_way(feed);
                *walked += feed_estimate(feed, feed_left(feed));
        }
        return true;
}

void reader_walk(struct reader *reader, uint64_t limit_bytes,
                 bool (*visit)(void *userdata, struct feed *feed, struct block *block),
                 void *userdata) {
        uint64_t walked = 0;

        list_for_each(node,
                      &reader->lanes) if (!lane_walk(list_owner(node, struct lane, node),
                                                     limit_bytes, &walked, visit, userdata)) return;
}

static bool add_backlog(void *userdata, struct feed *feed, struct block *block) {
        (void)feed;
        if (block)
                *(uint64_t *)userdata += block->size_bytes;
        return true;
}

void reader_status(const struct reader *reader, struct reader_status *ret_status) {
        *ret_status = (struct reader_status){
                .pushed = reader->pushed,
                .acked = reader->acked,
                .records = reader->records,
                .held_segments = reader_held(reader),
                .quota_segments = reader_held(reader) + reader_quota_left(reader),
                .ended = reader->ended,
        };
        reader_walk((struct reader *)(uintptr_t)reader, UINT64_MAX, add_backlog,
                    &ret_status->backlog_bytes);
}
