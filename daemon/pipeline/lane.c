/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes and cursors: what a feed's news mean for each reader. A cursor is ready when a block stands
 * at its position and its lane has come to it; it waits when that block is absent; it is finished
 * when its file is settled and all of it delivered. A cursor that has had its turn keeps it: what
 * its file brings later is delivered as it comes.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/reader_state.h"

bool cursor_wants(const struct cursor *cursor, const struct block *block) {
        return block_position_compare(block->end, cursor->position) > 0;
}

void lane_set_hungry(struct lane *lane, const struct feed *feed, enum lane_urgency urgency) {
        lane_queue_add(&lane->reader->hungry, &lane->hungry,
                       lane->is_prioritized ? LANE_AWAITED : urgency, feed->file->mtime_ns);
}

/* Among those of which something is to come: what was prioritized stands before the others. */
static void lane_link(struct lane *lane) {
        list_remove(&lane->node);
        if (lane->is_prioritized)
                list_prepend(&lane->reader->lanes, &lane->node);
        else
                list_append(&lane->reader->lanes, &lane->node);
}

static void cursor_make_ready(struct cursor *cursor) {
        if (!cursor->turn || cursor->waits || list_is_linked(&cursor->ready))
                return;
        if (cursor->lane->is_prioritized)
                list_prepend(&cursor->reader->ready, &cursor->ready);
        else
                list_append(&cursor->reader->ready, &cursor->ready);
        pipeline_touch(cursor->reader->pipeline);
}

static void cursor_set_finished(struct cursor *cursor, bool finished) {
        struct lane *lane = cursor->lane;
        struct reader *reader = cursor->reader;

        if (cursor->finished == finished)
                return;
        cursor->finished = finished;
        if (!finished)
                lane->first = 0;
        if (!finished && lane->unfinished++ == 0) {
                reader->unfinished_lanes++;
                lane_link(lane);
        }
        if (finished && --lane->unfinished == 0) {
                reader->unfinished_lanes--;
                list_remove(&lane->node);
                list_append(&reader->lanes_done, &lane->node);
                lane_queue_remove(&reader->hungry, &lane->hungry);
                pipeline_touch(reader->pipeline);
        }
}

/*
 * Nothing more can come of a settled file, so a place that was asked for and has not come does not
 * exist: from the beginning, then.
 */
static void cursor_check_end(struct cursor *cursor) {
        const struct feed *feed = cursor->feed;
        bool beyond = !feed_block_at(feed, cursor->position) &&
                      block_position_compare(cursor->position, feed->next) > 0;

        /* Version 0: the file was replaced by an empty one. */
        if (cursor->resumes && !feed->file->failure && (beyond || cursor->resume_version == 0))
                cursor_restart(cursor);
}

/*
 * Before all listings that the reader waits for are complete only what stands before all that is to
 * come of its run.
 */
static bool may_advance(const struct lane *lane) {
        struct reader *reader = lane->reader;
        const struct watch *watch = lane->run ? lane->run->source->watch : NULL;

        if (reader->open)
                return true;
        if (!watch || reader->from == READER_FROM_NOW || !watch_begins_in_order(watch))
                return false;
        reader->begun = true;
        return true;
}

void lane_advance(struct lane *lane) {
        while (lane->current < lane->count && may_advance(lane)) {
                struct cursor *cursor = lane->cursors[lane->current];

                if (!cursor->turn) {
                        cursor->turn = true;
                        if (feed_block_at(cursor->feed, cursor->position))
                                cursor_make_ready(cursor);
                }
                if (!cursor->feed->file->settled)
                        return;
                cursor_check_end(cursor);
                if (feed_block_at(cursor->feed, cursor->position))
                        return;
                cursor_set_finished(cursor, true);
                lane->current++;
        }
}

void cursor_rest(struct cursor *cursor) {
        if (!cursor->feed->file->settled || feed_block_at(cursor->feed, cursor->position))
                return;
        if (cursor->turn)
                cursor_set_finished(cursor, true);
        lane_advance(cursor->lane);
}

void cursor_pass(struct cursor *cursor, struct block *block) {
        struct reader *reader = cursor->reader;

        if (block->resident && cursor_wants(cursor, block)) {
                reader->need[block->segment]--;
                reader->pipeline->segment_need[block->segment]--;
        }
        cursor->position = block->end;
        cursor->resumes = false;
        if (feed_block_at(cursor->feed, cursor->position))
                cursor_make_ready(cursor);
        else
                cursor_rest(cursor);
}

/* Positive where the first stands behind the second, by run and then by path. */
static int file_compare(const struct catalog_file *a, const struct catalog_file *b) {
        const struct catalog_name *first = &a->run->name, *second = &b->run->name;
        int r;

        if (a->run->source != b->run->source)
                return strcmp(a->run->source->store->url, b->run->source->store->url);
        if (a->run == b->run) {
                first = &a->path;
                second = &b->path;
        }
        r = memcmp(first->bytes, second->bytes, min_u64(first->size, second->size));
        return r ? r : (first->size > second->size) - (first->size < second->size);
}

static size_t lane_place(const struct lane *lane, const struct catalog_file *file) {
        size_t low = 0, high = lane->count, middle = high ? high - 1 : 0;

        while (low < high) {
                if (file_compare(lane->cursors[middle]->feed->file, file) < 0)
                        low = middle + 1;
                else
                        high = middle;
                middle = (low + high) / 2;
        }
        return low;
}

static int lane_insert(struct lane *lane, struct cursor *cursor) {
        size_t at = lane_place(lane, cursor->feed->file);

        if (lane->count == lane->space) {
                size_t space = lane->space ? 2 * lane->space : 1;
                struct cursor **bigger = realloc(lane->cursors, space * sizeof(bigger[0]));

                if (!bigger)
                        return -ENOMEM;
                lane->cursors = bigger;
                lane->space = space;
        }
        memmove(lane->cursors + at + 1, lane->cursors + at,
                (lane->count - at) * sizeof(lane->cursors[0]));
        lane->cursors[at] = cursor;
        lane->count++;
        cursor->lane = lane;
        cursor->finished = true; /* counted by the next line */
        cursor_set_finished(cursor, false);
        if (at < lane->current) {
                cursor->turn = true;
                lane->current++;
        }
        return 0;
}

static void lane_remove(struct lane *lane, struct cursor *cursor) {
        size_t at = lane_place(lane, cursor->feed->file);

        MUST(at < lane->count && lane->cursors[at] == cursor);
        cursor_set_finished(cursor, true);
        memmove(lane->cursors + at, lane->cursors + at + 1,
                (lane->count - at - 1) * sizeof(lane->cursors[0]));
        lane->count--;
        if (at < lane->current)
                lane->current--;
        lane->first = 0;
}

static struct lane *reader_any_lane(const struct reader *reader) {
        if (!list_is_empty(&reader->lanes))
                return list_owner(reader->lanes.next, struct lane, node);
        if (!list_is_empty(&reader->lanes_done))
                return list_owner(reader->lanes_done.next, struct lane, node);
        return NULL;
}

/* The lane that the reader has for another file of the run. */
static struct lane *reader_lane_of_sibling(const struct reader *reader,
                                           const struct catalog_run *run) {
        for (size_t i = 0; i < run->file_count; i++) {
                const struct feed *feed = run->files[i]->blocks;

                for (const struct list *node = feed ? feed->cursors.next : NULL;
                     node && node != &feed->cursors; node = node->next)
                        if (list_owner(node, struct cursor, in_feed)->reader == reader)
                                return list_owner(node, struct cursor, in_feed)->lane;
        }
        return NULL;
}

static bool reader_prioritizes(const struct reader *reader, const struct catalog_run *run) {
        for (size_t i = 0; i < reader->prioritized_count; i++)
                if (fnmatch(reader->prioritized[i], run->name.bytes, 0) == 0)
                        return true;
        return false;
}

void lane_prioritize(struct lane *lane) {
        bool is_linked = lane->unfinished > 0;
        bool is_prioritized = lane->run && reader_prioritizes(lane->reader, lane->run);

        if (lane->is_prioritized == is_prioritized)
                return;
        lane->is_prioritized = is_prioritized;
        if (is_linked)
                lane_link(lane);
        for (size_t i = 0; is_prioritized && i < lane->count; i++) {
                struct cursor *cursor = lane->cursors[i];

                if (list_is_linked(&cursor->ready)) {
                        list_remove(&cursor->ready);
                        cursor_make_ready(cursor);
                }
                if (!cursor->finished)
                        lane_set_hungry(lane, cursor->feed, LANE_AWAITED);
        }
}

/* The lane of a run (order `run`), or the one of all runs. */
static struct lane *reader_lane(struct reader *reader, const struct catalog_run *run) {
        struct lane *lane = reader->order == READER_ORDER_SORTED
                                    ? reader_any_lane(reader)
                                    : reader_lane_of_sibling(reader, run);

        if (lane)
                return lane;
        lane = calloc(1, sizeof(*lane));
        if (!lane)
                return NULL;
        lane->reader = reader;
        lane->run = reader->order == READER_ORDER_SORTED ? NULL : run;
        list_init(&lane->node);
        lane_place_init(&lane->hungry);
        lane->is_prioritized = lane->run && reader_prioritizes(reader, run);
        list_append(&reader->lanes_done, &lane->node);
        return lane;
}

static void cursor_free(struct cursor *cursor) {
        list_remove(&cursor->in_feed);
        list_remove(&cursor->ready);
        cells_give(&cursor->reader->pipeline->catalog.cells, cursor, sizeof(*cursor));
}

void lane_free(struct lane *lane) {
        for (size_t i = 0; i < lane->count; i++)
                cursor_free(lane->cursors[i]);
        list_remove(&lane->node);
        lane_queue_remove(&lane->reader->hungry, &lane->hungry);
        free(lane->cursors);
        free(lane);
}

bool reader_wants_run(const struct reader *reader, const struct catalog_run *run) {
        if (reader->source && reader->source != run->source)
                return false;
        for (size_t i = 0; i < reader->run_count; i++)
                if (fnmatch(reader->globs[i], run->name.bytes, 0) == 0)
                        return true;
        return reader->run_count == 0;
}

bool readers_want_run(const struct pipeline *pipeline, const struct catalog_run *run) {
        for (const struct list *node = pipeline->readers.next; node != &pipeline->readers;
             node = node->next)
                if (reader_wants_run(list_owner(node, struct reader, node), run))
                        return true;
        return false;
}

/* Where a reader begins in a file that it has not seen yet. */
static void cursor_begin(struct cursor *cursor) {
        const struct reader *reader = cursor->reader;
        const struct catalog_file *file = cursor->feed->file;
        const struct reader_position *position = NULL;

        if (reader->from == READER_FROM_NOW && reader->open == false)
                cursor->position.offset = file->listed_bytes == UINT64_MAX ? file->loaded_bytes
                                                                           : file->listed_bytes;
        if (reader->position_count > 0)
                position = bsearch(&(struct reader_position){ .file_id = file->id },
                                   reader->positions, reader->position_count,
                                   sizeof(reader->positions[0]), reader_position_compare);
        if (!position)
                return;
        cursor->position = (struct block_position){ .offset = position->offset,
                                                    .index = position->index };
        cursor->resumes = true;
        cursor->resume_version = cursor->begun_version = position->file_version;
}

static void cursor_check_version(struct cursor *cursor) {
        if (cursor->resumes && cursor->feed->file->version != 0 &&
            cursor->resume_version != cursor->feed->file->version)
                cursor_restart(cursor);
}

int reader_add_feed(struct reader *reader, struct feed *feed) {
        struct cursor *cursor;
        struct lane *lane;

        if (!reader_wants_run(reader, feed->file->run))
                return 0;
        lane = reader_lane(reader, feed->file->run);
        cursor = lane ? cells_take(&reader->pipeline->catalog.cells, sizeof(*cursor)) : NULL;
        if (!cursor)
                return -ENOMEM;
        cursor->reader = reader;
        cursor->feed = feed;
        list_init(&cursor->in_feed);
        list_init(&cursor->ready);
        cursor_begin(cursor);
        if (lane_insert(lane, cursor) < 0) {
                cursor_free(cursor);
                return -ENOMEM;
        }
        list_append(&feed->cursors, &cursor->in_feed);
        for (size_t i = 0; i < feed->index.count; i++) {
                struct block *block = feed->index.blocks[i];

                /* storage may have it again: one more try for each reader that comes */
                block->lost = false;
                block->refetch_failures = 0;
                if (!block->resident || !cursor_wants(cursor, block))
                        continue;
                reader->need[block->segment]++;
                reader->pipeline->segment_need[block->segment]++;
        }
        cursor_check_version(cursor);
        lane_set_hungry(lane, feed, LANE_NEW);
        lane_advance(lane);
        return 0;
}

int readers_add_feed(struct pipeline *pipeline, struct feed *feed) {
        list_for_each(node, &pipeline->readers) {
                int r = reader_add_feed(list_owner(node, struct reader, node), feed);

                if (r < 0)
                        return r;
        }
        return 0;
}

#define FOR_EACH_CURSOR(cursor, feed) \
        list_for_each(cursor##_node, &(feed)->cursors) for (struct cursor *cursor = list_owner( \
                                                                    cursor##_node, struct cursor, \
                                                                    in_feed), \
                                                            *cursor##_once = cursor; \
                                                            cursor##_once; cursor##_once = NULL)

void readers_block_published(struct feed *feed, struct block *block) {
        FOR_EACH_CURSOR(cursor, feed) {
                if (!cursor_wants(cursor, block))
                        continue;
                cursor_set_finished(cursor, false);
                cursor_make_ready(cursor);
        }
}

void readers_block_resident(struct feed *feed, struct block *block) {
        FOR_EACH_CURSOR(cursor, feed) {
                if (!cursor->waits || feed_block_at(feed, cursor->position) != block)
                        continue;
                cursor->waits = false;
                cursor_make_ready(cursor);
        }
}

void readers_block_evicted(struct feed *feed, struct block *block) {
        FOR_EACH_CURSOR(cursor, feed)
        if (cursor_wants(cursor, block))
                lane_set_hungry(cursor->lane, feed, LANE_BACKFILL);
}

void readers_block_lost(struct feed *feed, struct block *block) {
        readers_block_resident(feed, block);
}

void readers_feed_settled(struct feed *feed) {
        FOR_EACH_CURSOR(cursor, feed) {
                cursor_check_end(cursor);
                cursor_rest(cursor);
        }
}

/*
 * One who follows is not finished with a file that has grown; for one who does not, what he has had
 * is enough.
 */
void readers_feed_hungry(struct feed *feed) {
        FOR_EACH_CURSOR(cursor, feed) {
                if (cursor->reader->follow)
                        cursor_set_finished(cursor, false);
                lane_set_hungry(cursor->lane, feed, feed->checked ? LANE_GROWS : LANE_NEW);
        }
}

void readers_version_known(struct feed *feed) {
        FOR_EACH_CURSOR(cursor, feed)
        cursor_check_version(cursor);
}

/* Its need is counted anew from the position; the blocks before it had been passed. */
static void cursor_count_passed(struct cursor *cursor) {
        for (size_t i = 0; i < cursor->feed->index.count; i++) {
                struct block *block = cursor->feed->index.blocks[i];

                if (cursor_wants(cursor, block))
                        return;
                if (!block->resident)
                        continue;
                cursor->reader->need[block->segment]++;
                cursor->reader->pipeline->segment_need[block->segment]++;
        }
}

void cursor_restart(struct cursor *cursor) {
        const struct catalog_file *file = cursor->feed->file;

        cursor_count_passed(cursor);
        cursor->position = (struct block_position){ 0 };
        cursor->resumes = cursor->waits = false;
        cursor_set_finished(cursor, false);
        lane_set_hungry(cursor->lane, cursor->feed, LANE_NEW);
        if (cursor->begun_version)
                reader_notice(cursor->reader, &(struct ring_entry){
                                                      .flags = RING_ENTRY_REPLACED,
                                                      .file_id = file->id,
                                                      .run_id = file->run->id,
                                                      .generation = file->version,
                                              });
        /* What was announced counts as begun: should it be replaced in its turn, that is said, too. */
        if (cursor->begun_version)
                cursor->begun_version = file->version;
        if (feed_block_at(cursor->feed, cursor->position))
                cursor_make_ready(cursor);
}

/*
 * The entry names the new version, which is known when its first bytes are here; until then nothing
 * of it can be delivered, so the cursor only has to remember (resumes with a version that is none).
 */
void readers_feed_replaced(struct feed *feed) {
        FOR_EACH_CURSOR(cursor, feed) {
                cursor->position = (struct block_position){ 0 };
                cursor->waits = false;
                cursor_set_finished(cursor, false);
                lane_set_hungry(cursor->lane, feed, LANE_NEW);
                cursor->resumes = cursor->begun_version != 0;
                cursor->resume_version = 0;
        }
}

void readers_feed_gone(struct feed *feed) {
        const struct catalog_file *file = feed->file;

        FOR_EACH_CURSOR(cursor, feed) {
                struct lane *lane = cursor->lane;

                if (cursor->begun_version)
                        reader_notice(cursor->reader, &(struct ring_entry){
                                                              .flags = RING_ENTRY_GONE,
                                                              .file_id = file->id,
                                                              .run_id = file->run->id,
                                                              .generation = cursor->begun_version,
                                                      });
                lane_remove(lane, cursor);
                cursor_free(cursor);
                if (lane->count == 0 && lane->run)
                        lane_free(lane);
                else
                        lane_advance(lane);
        }
}
