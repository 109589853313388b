/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/part_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/frame/tfrecord.h"
#include "daemon/pipeline/part.h"
#include "daemon/pipeline/publication.h"
#include "daemon/pipeline/residency.h"

#define HELD_FIRST 8u

static struct job *job_behind(const struct feed *feed, const struct job *job) {
        return job->node.next == &feed->work->parts ? NULL
                                                    : list_owner(job->node.next, struct job, node);
}

static uint64_t end_of(const struct job *job) {
        return job->offset + job->result.size_bytes;
}

/* It came as it was asked for: the next one goes on where it ends. */
static bool is_whole(const struct job *job) {
        return job->arrived && job->result.failure.class == STORE_OK &&
               job->result.size_bytes == job->size_bytes;
}

/*
 * Where the record behind the last whole one of a part ends: it begins in the part, its header may
 * be cut by the border. JOB_RECORD_UNKNOWN: that is not known.
 */
static uint64_t end_of_cut_record(const struct job *job, const struct job *next) {
        uint64_t at = max_u64(job->first_record_offset, job->offset), end = end_of(job);
        uint8_t header[TFRECORD_HEADER_BYTES];
        uint64_t size_bytes, had;

        if (job->first_record_offset >= end)
                return job->first_record_offset;
        at = job->offset +
             tfrecord_skip_whole(job->result.buffer, at - job->offset, end - job->offset);
        if (at == end)
                return end;
        had = min_u64(end - at, sizeof(header));
        if (next->result.size_bytes < sizeof(header) - had)
                return JOB_RECORD_UNKNOWN;
        memcpy(header, job->result.buffer + (at - job->offset), had);
        memcpy(header + had, next->result.buffer, sizeof(header) - had);
        size_bytes = tfrecord_size(header);
        return size_bytes > 0 && size_bytes < JOB_RECORD_UNKNOWN - at ? at + size_bytes
                                                                      : JOB_RECORD_UNKNOWN;
}

static void hold(struct job *job, const struct decoder_event *event) {
        struct ring *ring = job->feed->pipeline->ring;

        if (job->held_count == job->held_space) {
                size_t space = job->held_space ? 2 * job->held_space : HELD_FIRST;
                struct decoder_event *bigger = realloc(job->held, space * sizeof(bigger[0]));

                if (!bigger) {
                        part_ahead_drop(job);
                        return;
                }
                job->held = bigger;
                job->held_space = space;
        }
        if (event->output.extent_bytes > 0)
                ring_pin(ring, event->segment);
        job->held[job->held_count++] = *event;
}

static void let_go(struct job *job) {
        struct ring *ring = job->feed->pipeline->ring;

        for (size_t i = 0; i < job->held_count; i++)
                if (job->held[i].output.extent_bytes > 0)
                        ring_unpin(ring, job->held[i].segment);
        free(job->held);
        job->held = NULL;
        job->held_count = job->held_space = 0;
        list_remove(&job->in_ahead);
}

void part_ahead_drop(struct job *job) {
        if (job->ahead != JOB_AHEAD_UNTAKEN)
                return;
        let_go(job);
        job->feed->pipeline->counters.parts_ahead_dropped++;
        job->ahead = job->decoding ? JOB_AHEAD_FOR_NOBODY : JOB_AHEAD_NEVER;
}

bool part_ahead_drop_all(struct pipeline *pipeline) {
        bool any = false;

        list_for_each(node, &pipeline->ahead) {
                struct job *job = list_owner(node, struct job, in_ahead);

                any |= job->held_count > 0;
                part_ahead_drop(job);
        }
        return any;
}

static void publish(struct feed *feed, const struct decoder_event *event) {
        if (!feed->discard && !feed->gone && !feed->broken)
                publication_add(feed, event);
}

/* The part's turn has come, and its decoder is done: as if the feed's own task were. */
static void finish(struct job *job) {
        struct feed *feed = job->feed;

        job->ahead = JOB_AHEAD_NEVER;
        feed->work->task.input = job->task.input;
        feed->work->task.input.file = &feed->work->identity;
        feed->work->task.result = job->task.result;
        feed->work->task.need_bytes = job->task.need_bytes;
        feed->work->task.doubted = job->task.doubted;
        job->on_taken_done(feed, &feed->work->task);
}

/* The part was given up while a decoder was at it. */
static void leave(struct job *job) {
        struct feed *feed = job->feed;

        job_end(job);
        if (feed->gone && !feed_has_tasks(feed))
                feed_end(feed);
        else
                feed_drop_idle_work(feed);
}

static void on_task(struct decoder_task *task, const struct decoder_event *event) {
        struct job *job = task->owner;

        if (event->type == DECODER_EXTENT) {
                if (job->ahead == JOB_AHEAD_TAKEN)
                        publish(job->feed, event);
                else if (job->ahead == JOB_AHEAD_UNTAKEN)
                        hold(job, event);
                return;
        }
        job->decoding = false;
        if (job->leaving) {
                leave(job);
        } else if (job->ahead == JOB_AHEAD_TAKEN) {
                finish(job);
        } else if (job->ahead == JOB_AHEAD_FOR_NOBODY) {
                job->ahead = JOB_AHEAD_NEVER;
        }
}

static void start(struct job *job, bool last) {
        struct feed *feed = job->feed;
        struct pipeline *pipeline = feed->pipeline;

        job->identity = feed_identity(feed);
        job->task.input = feed_input(feed, job->result.buffer, job->offset, job->result.size_bytes);
        job->task.input.file = &job->identity;
        job->task.input.begin = (struct block_position){ .offset = job->first_record_offset };
        job->task.input.search_offset = 0;
        job->task.input.search_damage = DAMAGE_NONE;
        job->task.input.last = last;
        job->task.input.doubts = true;
        job->task.input.believed_offset = feed->believed_offset;
        job->task.pause_within_record = true;
        job->task.pause_bytes = max_u64(job->committed_bytes, 1);
        job->task.owner = job;
        job->task.on_event = on_task;
        job->decoding = true;
        job->ahead = JOB_AHEAD_UNTAKEN;
        pipeline->counters.parts_ahead++;
        job->ahead_last = last;
        list_append(&pipeline->ahead, &job->in_ahead);
        decoder_pool_submit(pipeline->pool, &job->task);
        residency_grant(pipeline);
}

void part_ahead_start(struct feed *feed) {
        struct job *job = part_first(feed), *next;

        if (!feed->decoding || feed->discard || feed->gone || !job || !is_whole(job))
                return;
        for (; (next = job_behind(feed, job)); job = next) {
                if (!decoder_pool_has_idle(feed->pipeline->pool) || !is_whole(next) ||
                    next->offset != end_of(job) || next->charged ||
                    job->first_record_offset == JOB_RECORD_UNKNOWN)
                        return;
                if (next->first_record_offset == JOB_RECORD_UNKNOWN)
                        next->first_record_offset = end_of_cut_record(job, next);
                if (next->first_record_offset == JOB_RECORD_UNKNOWN)
                        return;
                if (next->ahead == JOB_AHEAD_NOT && next->first_record_offset < end_of(next))
                        start(next, part_is_at_end(feed, next));
        }
}

bool part_ahead_take(struct feed *feed, struct job *job, bool last,
                     void (*on_done)(struct feed *feed, struct decoder_task *task)) {
        bool right = feed->next.offset == job->first_record_offset && feed->next.index == 0 &&
                     feed->search_offset == 0 && job->ahead_last == last &&
                     job->task.input.file_bytes == feed_input(feed, NULL, 0, 0).file_bytes;

        if (job->ahead != JOB_AHEAD_UNTAKEN)
                return false;
        if (!right) {
                part_ahead_drop(job);
                return false;
        }
        for (size_t i = 0; i < job->held_count; i++)
                publish(feed, &job->held[i]);
        let_go(job);
        feed->decoding = true;
        job->ahead = JOB_AHEAD_TAKEN;
        job->on_taken_done = on_done;
        if (!job->decoding)
                finish(job);
        return true;
}
