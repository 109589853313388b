/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/part_decode.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/frame/tfrecord.h"
#include "daemon/pipeline/hold.h"
#include "daemon/pipeline/part.h"
#include "daemon/pipeline/part_ahead.h"
#include "daemon/pipeline/publication.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/reread.h"
#include "daemon/pipeline/residency.h"

#define BRIDGE_FIRST_BYTES 65536u

void part_decode_drop_carry(struct feed *feed) {
        if (!feed->work || (feed->decoding && feed->bridging))
                return; /* there is none, or a decoder reads it */
        free(feed->work->carry);
        feed->work->carry = NULL;
        feed->work->carry_bytes = feed->work->carry_space = 0;
}

/* The segment that it opens next may not be more than what the job was granted. */
static void limit_task(struct feed *feed, const struct job *job) {
        uint64_t segment_bytes = feed->pipeline->segment_bytes;
        uint64_t bytes = job->charged ? job->charged_segments * segment_bytes
                                      : job->committed_bytes;

        feed->work->task.pause_within_record = !job->charged;
        feed->work->task.pause_bytes = bytes > segment_bytes ? bytes - segment_bytes : 1;
}

/* resume: where it stopped in the same bytes before; NULL: it did not. */
static void submit(struct feed *feed, const uint8_t *bytes, uint64_t offset, uint64_t size,
                   bool last, const struct block_resume *resume) {
        struct block_input input = feed_input(feed, bytes, offset, size);

        limit_task(feed, part_first(feed));
        input.last = last;
        input.doubts = true;
        input.believed_offset = feed->believed_offset;
        if (resume)
                input.resume = *resume;
        feed->work->task.input = input;
        feed->decoding = true;
        decoder_pool_submit(feed->pipeline->pool, &feed->work->task);
        residency_grant(feed->pipeline);
}

/*
 * Puts more of the part behind what is carried: what the record needs, where that is known, else a
 * piece. False: no memory.
 */
static bool bridge(struct feed *feed, const struct job *job) {
        /* of the part that is there already */
        uint64_t have = feed->work->carry_offset + feed->work->carry_bytes - job->offset;
        uint64_t wanted = feed->work->need_bytes > feed->work->carry_bytes
                                  ? feed->work->need_bytes - feed->work->carry_bytes
                                  : max_u64(BRIDGE_FIRST_BYTES, feed->work->carry_bytes);
        uint64_t more = min_u64(wanted, job->result.size_bytes - have);

        if (feed->work->carry_bytes + more > feed->work->carry_space) {
                uint8_t *bigger = realloc(feed->work->carry, feed->work->carry_bytes + more);

                if (!bigger)
                        return false;
                feed->work->carry = bigger;
                feed->work->carry_space = feed->work->carry_bytes + more;
        }
        memcpy(feed->work->carry + feed->work->carry_bytes, job->result.buffer + have, more);
        feed->work->carry_bytes += more;
        return true;
}

static void task_done(struct feed *feed, struct decoder_task *task);

/* Gives the next bytes to a decoder. False: the part has none that are needed. */
static bool decode_part(struct feed *feed, struct job *job) {
        uint64_t end = job->offset + job->result.size_bytes;
        bool last = part_is_at_end(feed, job);

        feed->bridging = feed->work->carry_bytes > 0;
        if (feed_offset(feed) >= end && !feed->bridging)
                return false;
        if (!feed->bridging) {
                if (part_ahead_take(feed, job, last, task_done))
                        return true;
                job->first_record_offset = feed->search_offset ? JOB_RECORD_UNKNOWN
                                                               : feed->next.offset;
                submit(feed, job->result.buffer, job->offset, job->result.size_bytes, last, NULL);
                return true;
        }
        if (feed->work->carry_offset + feed->work->carry_bytes >= end)
                return false; /* all of it is carried already */
        if (!bridge(feed, job)) {
                part_ask_again(feed);
                return true;
        }
        submit(feed, feed->work->carry, feed->work->carry_offset, feed->work->carry_bytes,
               last && feed->work->carry_offset + feed->work->carry_bytes == end, NULL);
        return true;
}

/* A part is used up: what it leaves over is carried to the next one, if that is under way. */
static void part_done(struct feed *feed, struct job *job) {
        uint64_t offset = feed_offset(feed), end = job->offset + job->result.size_bytes;
        bool more = job->node.next != &feed->work->parts;

        if (!feed->bridging && more && offset < end) {
                part_decode_drop_carry(feed);
                feed->work->carry = malloc(end - offset);
                if (feed->work->carry) {
                        memcpy(feed->work->carry, job->result.buffer + (offset - job->offset),
                               end - offset);
                        feed->work->carry_offset = offset;
                        feed->work->carry_bytes = feed->work->carry_space = end - offset;
                }
        }
        part_end(job);
        if (more && !feed->bridging && offset < end && !feed->work->carry)
                part_ask_again(feed);
}

void part_decode_advance(struct feed *feed) {
        struct job *job;

        while (!feed->decoding && !feed->paused && (job = part_first(feed))) {
                if (!job->arrived)
                        return;
                if (!part_accept(feed, job))
                        continue;
                if (decode_part(feed, job))
                        continue;
                part_done(feed, job);
        }
        if (!feed->decoding && !feed_has_parts(feed))
                feed_rest(feed);
        part_ahead_start(feed);
        feed_drop_idle_work(feed);
}

/* Remembers the last bytes before `next`, which an overlap is compared with. */
static void learn_tail(struct feed *feed, const struct block_input *input, uint64_t before) {
        uint64_t now = input->begin.offset, moved = now - before;
        size_t size = sizeof(feed->tail);
        const uint8_t *end;

        if (now > input->bytes_offset + input->size_bytes) {
                /* a record too large to read was skipped: its bytes are not known */
                feed->tail_bytes = 0;
                return;
        }
        end = input->bytes + (now - input->bytes_offset);
        if (moved >= size) {
                memcpy(feed->tail, end - size, size);
                feed->tail_bytes = (uint8_t)size;
                return;
        }
        memmove(feed->tail, feed->tail + moved, size - moved);
        memcpy(feed->tail + size - moved, end - moved, moved);
        feed->tail_bytes = (uint8_t)min_u64(feed->tail_bytes + moved, size);
}

/* What could not be kept for want of memory is read again later. */
static void step_back(struct feed *feed) {
        struct store_failure failure = { .class = STORE_TRANSIENT,
                                         .code = "ENOMEM",
                                         .message = "out of memory" };

        feed->broken = false;
        feed->next = feed->index.count ? feed->index.blocks[feed->index.count - 1]->end
                                       : (struct block_position){ 0 };
        feed->search_offset = 0;
        feed->tail_bytes = 0;
        feed_fail(feed, &failure);
}

/*
 * The bytes of a bridge are decoded: on into the part itself, or, where the item is longer still,
 * more of it is needed.
 */
static void bridge_done(struct feed *feed) {
        struct job *job = part_first(feed);
        uint64_t offset = feed_offset(feed);

        if (!job || offset >= job->offset + job->overlap_bytes) {
                part_decode_drop_carry(feed);
                return;
        }
        if (offset > feed->work->carry_offset) {
                uint64_t used = min_u64(offset - feed->work->carry_offset, feed->work->carry_bytes);

                memmove(feed->work->carry, feed->work->carry + used,
                        feed->work->carry_bytes - used);
                feed->work->carry_offset += used;
                feed->work->carry_bytes -= used;
        }
        /*
         * Nothing new behind it and no word of how much it needs: the next piece is as large as all
         * that is there.
         */
        if (feed->work->need_bytes <= feed->work->carry_bytes)
                feed->work->need_bytes = 2 * feed->work->carry_bytes;
}

/*
 * A record that is longer than a part would be carried over one part after the other, in memory
 * that no ticket pays for. Parts as long as that are asked for instead, from the record on.
 */
static bool outgrow(struct feed *feed) {
        uint64_t need = feed->work->need_bytes,
                 quarter = feed->pipeline->options.inflight_bytes / 4;

        if (need <= feed->part_bytes || need > feed->file->listed_bytes ||
            feed_offset(feed) > feed->file->listed_bytes - need)
                return false; /* or it goes on behind the end: it is not written yet */
        feed->part_bytes = max_u64(need, min_u64(2 * need, quarter));
        part_ask_again(feed);
        return true;
}

/* There is more in the part than the ring has room for now. */
static void pause_part(struct feed *feed) {
        feed->paused = true;
        job_uncommit(part_first(feed));
        hold_begin(feed);
        readers_feed_hungry(feed);
}

int part_decode_resume(struct feed *feed, uint64_t room_bytes, struct reader *charged) {
        struct job *job = part_first(feed);
        uint64_t end = job->offset + job->result.size_bytes;

        if (room_bytes < feed->pipeline->segment_bytes)
                return FEED_E_ROOM;
        feed->paused = false;
        hold_check(feed);
        job_commit(job, min_u64(room_bytes, feed_estimate(feed, end - feed->next.offset)), charged);
        if (feed->bridging)
                submit(feed, feed->work->carry, feed->work->carry_offset, feed->work->carry_bytes,
                       feed->work->task.input.last, &feed->work->task.input.resume);
        else
                submit(feed, job->result.buffer, job->offset, job->result.size_bytes,
                       feed->work->task.input.last, &feed->work->task.input.resume);
        return 0;
}

/* What the decoder needs is more than a header where that is right and there. */
static void learn_promise(struct feed *feed, const struct decoder_task *task) {
        bool promised = task->result == STAGE_MORE && !task->input.search_offset &&
                        task->need_bytes > TFRECORD_HEADER_BYTES;

        feed->promised_end = 0;
        if (promised &&
            __builtin_add_overflow(feed->next.offset, task->need_bytes, &feed->promised_end))
                feed->promised_end = UINT64_MAX;
}

static void task_done(struct feed *feed, struct decoder_task *task) {
        struct job *job = part_first(feed);
        uint64_t before = feed->next.offset;

        feed->decoding = false;
        if (feed->discard || feed->gone) {
                feed->discard = false;
                if (!feed->bridging && job)
                        part_end(job);
                part_decode_drop_carry(feed);
                if (feed->gone && !feed_has_tasks(feed))
                        feed_end(feed);
                else if (!feed->gone && feed_left(feed) == 0)
                        feed_rest(feed);
                else
                        feed_set_hungry(feed);
                return;
        }
        learn_tail(feed, &task->input, before);
        feed->next = task->input.begin;
        feed->search_offset = task->input.search_offset;
        feed->search_damage = task->input.search_damage;
        feed->work->need_bytes = task->result == 0 ? 0 : task->need_bytes;
        learn_promise(feed, task);
        feed->file->loaded_bytes = feed->next.offset;
        if (feed->broken) {
                step_back(feed);
        } else if (task->result == STAGE_FULL) {
                pause_part(feed);
        } else if (task->result == STAGE_DOUBT) {
                reread_doubt(feed);
        } else if (!outgrow(feed)) {
                if (feed->bridging)
                        bridge_done(feed);
                else if (job)
                        part_done(feed, job);
        }
        part_decode_advance(feed);
        pipeline_touch(feed->pipeline);
}

void part_decode_on_task(struct decoder_task *task, const struct decoder_event *event) {
        struct feed *feed = task->owner;

        if (event->type == DECODER_DONE)
                task_done(feed, task);
        else if (!feed->discard && !feed->gone && !feed->broken)
                publication_add(feed, event);
}
