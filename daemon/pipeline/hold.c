/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/hold.h"

#include "daemon/pipeline/part.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/refetch.h"

#define LOOKS 4u /* in the time that a hold lasts */

/* A session has acknowledged something lately, and stands in these bytes of the file. */
static bool hold_is_worked_on(const struct feed *feed, uint64_t begin, uint64_t end, uint64_t now) {
        uint64_t most_ns = feed->pipeline->options.hold_ns;

        if (now - feed->work->held_at_ns < most_ns)
                return true;
        for (const struct list *node = feed->cursors.next; node != &feed->cursors;
             node = node->next) {
                const struct cursor *cursor = list_owner(node, struct cursor, in_feed);

                if (cursor->turn && !cursor->finished && cursor->position.offset >= begin &&
                    cursor->position.offset < end && now - cursor->reader->acked_at_ns < most_ns)
                        return true;
        }
        return false;
}

static void hold_look(struct feed *feed, uint64_t now) {
        list_for_each(node, &feed->work->kept) {
                struct job *job = list_owner(node, struct job, node);

                if (!hold_is_worked_on(feed, job->offset, job->offset + job->size_bytes, now))
                        job_end(job);
        }
        if (feed->paused && !hold_is_worked_on(feed, part_held_offset(feed), UINT64_MAX, now))
                part_ask_again(feed);
        hold_check(feed);
        feed_drop_idle_work(feed);
}

static void on_timer(uv_timer_t *timer) {
        struct pipeline *pipeline = timer->data;
        uint64_t now;

        list_for_each(node, &pipeline->readers) reader_set_kick(
                list_owner(node, struct reader, node)); /* reads what is acknowledged */
        now = uv_hrtime();
        list_for_each(node, &pipeline->holding)
                hold_look(list_owner(node, struct feed_work, holding)->feed, now);
        if (list_is_empty(&pipeline->holding))
                uv_timer_stop(timer);
        pipeline_touch(pipeline);
}

void hold_init(struct pipeline *pipeline) {
        list_init(&pipeline->holding);
        uv_timer_init(pipeline->loop, &pipeline->hold);
        pipeline->hold.data = pipeline;
}

void hold_begin(struct feed *feed) {
        struct pipeline *pipeline = feed->pipeline;
        uint64_t look_ms = max_u64(pipeline->options.hold_ns / LOOKS / 1000000, 1);

        feed->work->held_at_ns = uv_hrtime();
        if (!list_is_linked(&feed->work->holding))
                list_append(&pipeline->holding, &feed->work->holding);
        if (!uv_is_active((uv_handle_t *)&pipeline->hold))
                uv_timer_start(&pipeline->hold, on_timer, look_ms, look_ms);
}

void hold_check(struct feed *feed) {
        if (!feed->paused && list_is_empty(&feed->work->kept))
                list_remove(&feed->work->holding);
}

static void on_closed(uv_handle_t *handle) {
        struct pipeline *pipeline = handle->data;

        pipeline->open_parts--;
        pipeline_part_closed(pipeline);
}

void hold_close(struct pipeline *pipeline) {
        uv_close((uv_handle_t *)&pipeline->hold, on_closed);
}
