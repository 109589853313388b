/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/refetch.h"

#include <errno.h>

#include "common/extent_format.h"
#include "daemon/pipeline/hold.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/residency.h"

#define TRIES_MOST 3u

/*
 * It could not be read, or is not what it was. The file may be another one by now, or storage may
 * have failed in passing: before the next try the source is listed. Then the block is lost.
 */
static void refetch_failed(struct job *job) {
        struct block *block = job->block;
        struct feed *feed = job->feed;
        struct watch *watch = feed->file->run->source->watch;

        job_end(job);
        if (!block)
                return;
        if (++block->refetch_failures >= TRIES_MOST) {
                block->lost = true;
                readers_block_lost(feed, block);
                return;
        }
        block->refetch_attempt = watch_next_attempt(watch);
        watch_now(watch);
        readers_block_evicted(feed, block);
}

bool refetch_is_wanted(const struct block *block) {
        return !block->resident && !block->job && !block->lost;
}

bool refetch_is_due(const struct block *block) {
        return block->feed->file->run->source->attempts >= block->refetch_attempt;
}

/*
 * What came is what had been there. Of a joined block only the range and the number of records are
 * known.
 */
static bool refetch_is_same(const struct block *block, const struct block_output *output,
                            const struct extent_header *extent) {
        return block_position_compare(output->begin, block->begin) == 0 &&
               block_position_compare(output->end, block->end) == 0 &&
               output->record_count == block->record_count &&
               (block->joined ? output->extent_bytes <= block->size_bytes
                              : output->extent_bytes == block->size_bytes &&
                                        extent->crc32c == block->crc32c);
}

static void refetch_resident(struct job *job, const struct decoder_event *event) {
        struct pipeline *pipeline = job->feed->pipeline;
        const struct block_output *output = &event->output;
        const struct extent_header *extent;
        struct block *block = job->block;

        if (!block || block->resident || output->extent_bytes == 0)
                return;
        extent = (const void *)(ring_segment_memory(pipeline->ring, event->segment) +
                                event->offset_bytes);
        if (!refetch_is_same(block, output, extent))
                return;
        block->size_bytes = (uint32_t)output->extent_bytes;
        block->crc32c = extent->crc32c;
        block->joined = false;
        block->refetched = true;
        block->refetch_failures = 0;
        pipeline->counters.refetched_blocks++;
        residency_add(pipeline, block, event->segment, event->offset_bytes);
        readers_block_resident(job->feed, block);
}

/* Of a TFRecord in several blocks: none of them can be read without all of it. */
static bool is_piece(const struct block *block) {
        return block->begin.index > 0 || block->end.index > 0;
}

/* The read, of these, that has all that the block needs. */
static struct job *refetch_that_covers(const struct list *jobs, const struct block *block) {
        for (struct list *node = jobs->next; node != jobs; node = node->next) {
                struct job *job = list_owner(node, struct job, node);

                if (job->offset <= block->begin.offset &&
                    block->bytes_end <= job->offset + job->size_bytes)
                        return job;
        }
        return NULL;
}

/* The block is there. If its TFRecord goes on in one that is not, the bytes are held for that. */
static void refetch_done(struct job *job) {
        struct feed *feed = job->feed;
        const struct block *block = job->block, *next;

        next = block && block->end.index > 0 ? feed_block_at(feed, block->end) : NULL;
        if (!next || !refetch_is_wanted(next)) {
                job_end(job);
                return;
        }
        job->block->job = NULL;
        job->block = NULL;
        job_uncommit(job);
        list_remove(&job->node);
        list_append(&feed->work->kept, &job->node);
        hold_begin(feed);
}

static void on_task(struct decoder_task *task, const struct decoder_event *event) {
        struct job *job = task->owner;
        struct feed *feed = job->feed;

        if (event->type == DECODER_EXTENT) {
                refetch_resident(job, event);
                return;
        }
        job->decoding = false;
        if (job->block && !job->block->resident)
                refetch_failed(job);
        else
                refetch_done(job);
        if (feed->gone && !feed_has_tasks(feed))
                feed_end(feed);
        else
                feed_drop_idle_work(feed);
}

static void refetch_decode(struct job *job) {
        const struct block *block = job->block;
        struct block_resume resume = { 0 };

        /* It has just decoded the block before. */
        if (block_position_compare(job->task.input.begin, block->begin) == 0)
                resume = job->task.input.resume;
        job->task.input = feed_input(job->feed, job->result.buffer, job->offset,
                                     job->result.size_bytes);
        job->identity = feed_identity(job->feed);
        job->task.input.file = &job->identity;
        job->task.input.begin = block->begin;
        job->task.input.resume = resume;
        job->task.input.end = block->end;
        job->task.input.end_is_open = block->end_is_open;
        job->task.input.search_offset = 0;
        job->task.input.last = true;
        job->task.room_min_bytes = block->size_bytes;
        job->task.owner = job;
        job->task.on_event = on_task;
        job->decoding = true;
        decoder_pool_submit(job->feed->pipeline->pool, &job->task);
        residency_grant(job->feed->pipeline);
}

static void on_read(void *userdata, const struct fetch_result *result) {
        struct job *job = userdata;
        struct feed *feed = job->feed;

        pipeline_touch(feed->pipeline);
        if (result->failure.class != STORE_OK || result->size_bytes < job->size_bytes) {
                refetch_failed(job);
                feed_drop_idle_work(feed);
                return;
        }
        job->result = *result;
        refetch_decode(job);
}

/* The bytes are here already: they were held when the block before was done. */
static void refetch_from_kept(struct job *job, struct block *block, struct reader *charged) {
        list_remove(&job->node);
        list_append(&job->feed->work->refetches, &job->node);
        hold_check(job->feed);
        job->block = block;
        block->job = job;
        job_commit(job, block->size_bytes, charged);
        refetch_decode(job);
}

int refetch_start(struct feed *feed, struct block *block, uint64_t room_bytes,
                  struct reader *charged) {
        struct job *job;
        int r;

        if (!charged && block->size_bytes > room_bytes)
                return FEED_E_ROOM;
        if (feed_need_work(feed) < 0)
                return -ENOMEM;
        if (is_piece(block)) {
                job = refetch_that_covers(&feed->work->kept, block);
                if (job) {
                        refetch_from_kept(job, block, charged);
                        return 0;
                }
                if (refetch_that_covers(&feed->work->refetches, block))
                        return FEED_E_BUSY; /* when it is done, it is held */
        }
        job = job_new(feed);
        if (!job) {
                feed_drop_idle_work(feed);
                return -ENOMEM;
        }
        job->offset = block->begin.offset;
        job->size_bytes = block->bytes_end - block->begin.offset;
        r = job_start(job, on_read);
        if (r != 0) {
                job_end(job);
                feed_drop_idle_work(feed);
                return r;
        }
        job->block = block;
        block->job = job;
        job_commit(job, block->size_bytes, charged);
        list_append(&feed->work->refetches, &job->node);
        return 0;
}

void refetch_drop_all(struct feed *feed) {
        if (!feed->work)
                return;
        list_for_each(node, &feed->work->kept) job_end(list_owner(node, struct job, node));
        hold_check(feed);
        list_for_each(node, &feed->work->refetches) {
                struct job *job = list_owner(node, struct job, node);

                if (job->block)
                        job->block->job = NULL;
                job->block = NULL;
                if (!job->decoding)
                        job_end(job);
        }
}
