/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/reread.h"

#include <time.h>

#include "common/crc32c.h"
#include "daemon/pipeline/part.h"
#include "daemon/pipeline/part_decode.h"

#define TRIES_MOST 5u      /* where reads do not agree */
#define STILL_WRITTEN_S 60 /* a file that was changed longer ago is not being written */
#define LOOK_MS 20

static bool may_be_still_written(const struct feed *feed) {
        int64_t mtime_ns = feed->file->mtime_ns;

        return mtime_ns == INT64_MIN || time(NULL) - mtime_ns / 1000000000 < STILL_WRITTEN_S;
}

/* How many reads have to agree with the first one. */
static unsigned reads_wanted(const struct feed *feed) {
        bool writing = feed->work->task.doubted == DAMAGE_LENGTH_CRC ||
                       feed->work->task.doubted == DAMAGE_ZEROS;

        return writing && may_be_still_written(feed) ? 2 : 1;
}

static uint64_t back_off_ns(const struct feed *feed) {
        return reads_wanted(feed) > 1
                       ? feed->pipeline->options.reread_ns << (2 * (feed->work->reread.agreed))
                       : 0;
}

/*
 * The part is read again from the doubtful place on: what a decoder had of it lay in its own bytes
 * or in what was carried over to it. The bytes before are repeated: if they are others now, the file
 * was written over, and it is not damage that begins here.
 */
static void ask_for_part_again(struct feed *feed) {
        struct job *job = part_first(feed);
        uint64_t end = job->offset + job->size_bytes;

        if (job->decoding) {
                part_ask_again(feed); /* for nobody, but its bytes are read */
                return;
        }
        part_decode_drop_carry(feed);
        job->fetch = fetch_job_free(job->fetch);
        job->arrived = job->accepted = false;
        if (feed->no_ranges)
                return;
        job->overlap_bytes = feed->tail_bytes;
        job->offset = feed->next.offset - job->overlap_bytes;
        job->size_bytes = end - job->offset;
}

static void on_timer(uv_timer_t *timer) {
        struct pipeline *pipeline = timer->data;

        if (list_is_empty(&pipeline->rereading))
                uv_timer_stop(timer);
        else
                pipeline_touch(pipeline);
}

static void reread_wait(struct feed *feed) {
        struct pipeline *pipeline = feed->pipeline;

        ask_for_part_again(feed);
        if (!feed_has_parts(feed))
                return;
        feed->work->reread.due_ns = uv_hrtime() + back_off_ns(feed);
        list_append(&pipeline->rereading, &feed->work->reread.node);
        if (!uv_is_active((uv_handle_t *)&pipeline->reread))
                uv_timer_start(&pipeline->reread, on_timer, LOOK_MS, LOOK_MS);
}

void reread_doubt(struct feed *feed) {
        const struct block_input *input = &feed->work->task.input;
        uint64_t begin = feed->next.offset, end = input->bytes_offset + input->size_bytes;
        const uint8_t *bytes = input->bytes + (begin - input->bytes_offset);
        struct reread *reread = &feed->work->reread;
        bool again = reread->tries > 0 && reread->begin == begin;
        bool agrees = again && reread->end <= end &&
                      crc32c(bytes, reread->end - begin) == reread->crc32c;

        reread->tries = again ? reread->tries + 1 : 1;
        reread->agreed = agrees ? reread->agreed + 1 : 0;
        if (!agrees) {
                reread->begin = begin;
                reread->end = end;
                reread->crc32c = crc32c(bytes, end - begin);
        }
        if (reread->agreed >= reads_wanted(feed) || reread->tries > TRIES_MOST) {
                feed->believed_offset = reread->end;
                reread->tries = 0;
                return;
        }
        feed->pipeline->counters.reread_ranges++;
        reread_wait(feed);
}

void reread_drop(struct feed *feed) {
        if (feed->work)
                list_remove(&feed->work->reread.node);
}

void reread_start_due(struct pipeline *pipeline) {
        uint64_t now = uv_hrtime();

        list_for_each(node, &pipeline->rereading) {
                struct feed *feed = list_owner(node, struct feed_work, reread.node)->feed;

                if (feed->work->reread.due_ns > now)
                        continue;
                if (part_send(part_first(feed)) == 0)
                        list_remove(node);
        }
}

void reread_init(struct pipeline *pipeline) {
        list_init(&pipeline->rereading);
        uv_timer_init(pipeline->loop, &pipeline->reread);
        pipeline->reread.data = pipeline;
}

static void on_closed(uv_handle_t *handle) {
        struct pipeline *pipeline = handle->data;

        pipeline->open_parts--;
        pipeline_part_closed(pipeline);
}

void reread_close(struct pipeline *pipeline) {
        uv_close((uv_handle_t *)&pipeline->reread, on_closed);
}
