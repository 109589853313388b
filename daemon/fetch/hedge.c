/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/hedge.h"

#include <string.h>
#include <time.h>

#include "common/base.h"

#define HEDGE_LOOK_MS 10
#define HEDGE_MOST 2 /* of one read */

static uint64_t left_bytes(const struct fetch_job *job) {
        return job->size_bytes - job->reached_bytes;
}

static uint64_t waits_since_ns(const struct fetch_job *job, const struct store_read *read) {
        return job->store->operations->read_waits_since_ns(read);
}

static void give_buffer(struct fetch_job *job) {
        struct fetch *fetch = job->fetch;

        buffers_give(&fetch->buffers, steal_pointer(&job->hedge_buffer), job->hedge_bytes);
        budget_give(&fetch->budget, job->hedge_bytes);
        fetch_tell_room(fetch);
}

static void ended(struct fetch_job *job, enum window_outcome outcome, bool has_won) {
        job->hedge = NULL;
        window_receive(&job->endpoint->window, job->hedge_serial, outcome);
        hedge_budget_ended(&job->endpoint->hedging, has_won);
        job->fetch->counters.hedges_won += has_won;
}

void hedge_drop(struct fetch_job *job) {
        if (!job->hedge)
                return;
        MUST(job->store->operations->read_cancel(job->hedge, NULL, NULL));
        ended(job, WINDOW_FAILURE, false);
        give_buffer(job);
}

/* The read that it was sent for is still under way: hedge_drop() comes with its end. */
static void on_hedge(void *userdata, const struct store_read_result *result) {
        struct fetch_job *job = userdata;
        uint64_t since_ns = waits_since_ns(job, job->read), now_ns = uv_hrtime();
        enum store_failure_class class = result->failure.class;
        bool has_won = class == STORE_OK && result->size_bytes > 0;

        ended(job, fetch_outcome_of(class), has_won);
        if (!has_won) {
                hedge_budget_answer(&job->endpoint->hedging, hedge_class_of(job->size_bytes),
                                    result->first_byte_ns,
                                    class == STORE_TRANSIENT || class == STORE_THROTTLED);
                fetch_note_failure(job->fetch, job->endpoint, &result->failure);
                give_buffer(job);
                return;
        }
        /* How long the other one would have taken is not known: at least as long as this. */
        hedge_budget_answer(&job->endpoint->hedging, hedge_class_of(job->size_bytes),
                            since_ns && since_ns < now_ns ? now_ns - since_ns : 0, false);
        fetch_job_drop_read(job);
        memcpy(job->buffer + job->reached_bytes, job->hedge_buffer, result->size_bytes);
        give_buffer(job);
        fetch_job_answered(job, result);
}

static void hedge_start(struct fetch_job *job) {
        struct fetch *fetch = job->fetch;
        struct store_read_range range = {
                .name = job->name,
                .name_size = job->name_size,
                .offset = job->offset + job->reached_bytes,
                .size_bytes = left_bytes(job),
                .tag = job->guard,
        };

        if (!fetch_has_place(fetch, job->endpoint, uv_hrtime()) ||
            !budget_fits(&fetch->budget, range.size_bytes))
                return;
        range.buffer = buffers_take(&fetch->buffers, range.size_bytes);
        if (!range.buffer)
                return;
        if (job->store->operations->read(job->store, &range, on_hedge, job, &job->hedge) < 0) {
                job->hedge = NULL;
                buffers_give(&fetch->buffers, range.buffer, range.size_bytes);
                return;
        }
        budget_take(&fetch->budget, range.size_bytes);
        job->hedges++;
        job->hedge_buffer = range.buffer;
        job->hedge_bytes = range.size_bytes;
        job->hedge_serial = window_send(&job->endpoint->window);
        hedge_budget_sent(&job->endpoint->hedging);
        rate_spend(&job->endpoint->requests, 1, uv_hrtime());
        fetch->counters.reads++;
        fetch->counters.hedges++;
        request_count_add(&job->store->requests, REQUEST_READ, 1, (int64_t)time(NULL));
        job->store->requests.repeated[REQUEST_READ]++;
}

/*
 * The hedge is late, too: bad luck twice. The older of the two, which has waited longest in vain,
 * is given up for a third one.
 */
static bool hedge_again(struct fetch_job *job) {
        struct store_failure failure = { .class = STORE_TRANSIENT,
                                         .code = "ENOMEM",
                                         .message = "Cannot allocate memory" };

        job->hedges++;
        hedge_budget_sent(&job->endpoint->hedging);
        job->fetch->counters.hedges++;
        fetch_job_drop_read(job);
        if (fetch_job_send_again(job) == 0) {
                job->store->requests.repeated[REQUEST_READ]++;
                return true;
        }
        hedge_drop(job);
        fetch_job_answered(
                job, &(struct store_read_result){ .failure = failure, .total_bytes = UINT64_MAX });
        return false;
}

/* Since when the last of its requests waits; 0: an answer has begun, or waiting is not what it does. */
static uint64_t late_since_ns(const struct fetch_job *job) {
        uint64_t since_ns = waits_since_ns(job, job->read);

        return since_ns && job->hedge ? waits_since_ns(job, job->hedge) : since_ns;
}

/* False: somebody was called back, and any job may be gone. */
static bool look_at(struct fetch_job *job, uint64_t now_ns) {
        enum hedge_class class = hedge_class_of(job->size_bytes);
        uint64_t since_ns;

        if (!job->read || job->hedges >= HEDGE_MOST || !job->store->operations->read_waits_since_ns)
                return true;
        since_ns = late_since_ns(job);
        if (!since_ns || now_ns < since_ns ||
            now_ns - since_ns <= hedge_budget_wait_ns(&job->endpoint->hedging, class,
                                                      job->endpoint->window.in_flight) ||
            !hedge_budget_allows(&job->endpoint->hedging, class))
                return true;
        if (job->hedge)
                return hedge_again(job);
        if (job->hedges == 0)
                hedge_start(job);
        return true;
}

static void on_late(uv_timer_t *timer) {
        struct fetch *fetch = timer->data;
        uint64_t now_ns = uv_hrtime();

        if (list_is_empty(&fetch->reading)) {
                uv_timer_stop(timer);
                return;
        }
        for (struct list *node = fetch->reading.next, *next; node != &fetch->reading; node = next) {
                next = node->next; /* one that is sent again goes to the end */
                if (!look_at(list_owner(node, struct fetch_job, node), now_ns))
                        return;
        }
}

void hedge_watch(struct fetch_job *job) {
        uv_timer_t *timer = &job->fetch->late;

        if (job->store->operations->read_waits_since_ns && !uv_is_active((uv_handle_t *)timer))
                uv_timer_start(timer, on_late, HEDGE_LOOK_MS, HEDGE_LOOK_MS);
}
