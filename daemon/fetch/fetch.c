/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job is one ticket and a row of reads into it, each going on at the byte that the last one
 * reached. It is reading, waits for its back-off to end, is ready and waits for a place in its
 * endpoint's window, or is done. Ready jobs go before new ones.
 */
#include "daemon/fetch/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/core/fd_limit.h"
#include "daemon/fetch/fetch_state.h"
#include "daemon/fetch/hedge.h"

#define FETCH_BACKOFF_FIRST_NS 50000000ull
#define FETCH_BACKOFF_MOST_NS 5000000000ull
#define FETCH_RETRY_AFTER_MOST_MS 60000
#define FETCH_RETRY_COST 5
#define FETCH_RETRY_COST_TRANSIENT 10
#define FETCH_KEPT_IDLE_BYTES (1u << 20) /* of buffers, when no ticket is held */

static void fail(struct fetch_job *job, const struct store_failure *failure, bool progress);

/* ---- Endpoints ---- */

static struct endpoint *find_endpoint(const struct fetch *fetch, const char *name) {
        for (struct list *node = fetch->endpoints.next; node != &fetch->endpoints;
             node = node->next) {
                struct endpoint *endpoint = list_owner(node, struct endpoint, node);

                if (strcmp(endpoint->name, name) == 0)
                        return endpoint;
        }
        return NULL;
}

/* NULL: no memory. */
static struct endpoint *need_endpoint(struct fetch *fetch, const struct store *store) {
        struct endpoint *endpoint = find_endpoint(fetch, store->endpoint);

        if (endpoint)
                return endpoint;
        endpoint = calloc(1, sizeof(*endpoint));
        if (!endpoint || !(endpoint->name = strdup(store->endpoint))) {
                free(endpoint);
                return NULL;
        }
        endpoint->retry_tokens = FETCH_RETRY_TOKENS;
        rate_init(&endpoint->requests, fetch->options.requests_per_second_max);
        rate_init(&endpoint->bytes, fetch->options.bytes_per_second_max);
        window_init(&endpoint->window,
                    fetch->options.window_start ? fetch->options.window_start : store->window_start,
                    (unsigned)min_u64(fetch->options.connections_max, fd_limit_for_connections()));
        list_init(&endpoint->ready);
        list_append(&fetch->endpoints, &endpoint->node);
        return endpoint;
}

/* ---- Sending ---- */

static void on_read(void *userdata, const struct store_read_result *result);
static void on_watch(uv_timer_t *watch);

static void watch_start(struct fetch *fetch) {
        uint64_t interval_ms = max_u64(10, min_u64(5000, fetch->options.give_up_ns / 4000000));

        if (!uv_is_active((uv_handle_t *)&fetch->watch))
                uv_timer_start(&fetch->watch, on_watch, interval_ms, interval_ms);
}

/* There is a place in the window. -errno of the store: nothing is under way then. */
static int send_read(struct fetch_job *job) {
        struct fetch *fetch = job->fetch;
        struct store_read_range range = {
                .name = job->name,
                .name_size = job->name_size,
                .offset = job->offset + job->reached_bytes,
                .size_bytes = job->size_bytes - job->reached_bytes,
                .buffer = job->buffer + job->reached_bytes,
                .tag = job->guard,
        };
        int r = job->store->operations->read(job->store, &range, on_read, job, &job->read);

        if (r < 0)
                return r;
        rate_spend(&job->endpoint->requests, 1, uv_hrtime());
        job->state = JOB_READING;
        job->serial = window_send(&job->endpoint->window);
        job->sent_ns = uv_hrtime();
        list_append(&fetch->reading, &job->node);
        if (job->store->reads_hang)
                watch_start(fetch);
        hedge_watch(job);
        fetch->counters.reads++;
        request_count_add(&job->store->requests, REQUEST_READ, 1, time(NULL));
        return 0;
}

static int send_try(struct fetch_job *job) {
        int r;

        job->hedges = 0;
        r = send_read(job);
        if (r == 0) {
                bool is_again = job->tries++ > 0;

                job->fetch->counters.retries += is_again;
                job->store->requests.repeated[REQUEST_READ] += is_again;
        }
        return r;
}

int fetch_job_send_again(struct fetch_job *job) {
        return send_read(job);
}

static void arm_due(struct fetch *fetch);

bool fetch_has_place(struct fetch *fetch, struct endpoint *endpoint, uint64_t now_ns) {
        uint64_t ready_ns = max_u64(rate_ready_ns(&endpoint->requests, now_ns),
                                    rate_ready_ns(&endpoint->bytes, now_ns));

        if (ready_ns > now_ns)
                window_wait_until(&endpoint->window, ready_ns);
        if (endpoint->window.not_before_ns > now_ns)
                arm_due(fetch); /* nothing else may bring us back */
        return window_has_place(&endpoint->window, now_ns);
}

static void send_ready(struct fetch *fetch, struct endpoint *endpoint) {
        uint64_t now_ns = uv_hrtime();

        while (!list_is_empty(&endpoint->ready) && fetch_has_place(fetch, endpoint, now_ns)) {
                struct fetch_job *job = list_owner(endpoint->ready.next, struct fetch_job, node);
                struct store_failure failure = { .class = STORE_TRANSIENT,
                                                 .code = "ENOMEM",
                                                 .message = "Cannot allocate memory" };

                list_remove(&job->node);
                if (job->first_failure_ns)
                        /* waiting for a place is not storage's fault */
                        job->first_failure_ns += now_ns - job->ready_ns;
                if (send_try(job) < 0)
                        fail(job, &failure, false);
        }
}

static void make_ready(struct fetch_job *job) {
        job->state = JOB_READY;
        job->ready_ns = uv_hrtime();
        list_append(&job->endpoint->ready, &job->node);
}

/* ---- Room ---- */

static void on_room_turn(uv_idle_t *idle) {
        struct fetch *fetch = idle->data;

        uv_idle_stop(idle);
        for (struct list *node = fetch->endpoints.next; node != &fetch->endpoints;
             node = node->next)
                send_ready(fetch, list_owner(node, struct endpoint, node));
        if (fetch->on_room)
                fetch->on_room(fetch->on_room_userdata);
}

void fetch_tell_room(struct fetch *fetch) {
        if (!fetch->handles_closing)
                uv_idle_start(&fetch->room, on_room_turn);
}

/* ---- Back-off ---- */

static void on_due(uv_timer_t *timer);

/* Wakes for the next back-off that ends, and for an endpoint that may be asked again. */
static void arm_due(struct fetch *fetch) {
        uint64_t now_ns = uv_hrtime(), next_ns = UINT64_MAX;

        for (struct list *node = fetch->waiting.next; node != &fetch->waiting; node = node->next)
                next_ns = min_u64(next_ns, list_owner(node, struct fetch_job, node)->due_ns);
        for (struct list *node = fetch->endpoints.next; node != &fetch->endpoints;
             node = node->next) {
                uint64_t not_before_ns =
                        list_owner(node, struct endpoint, node)->window.not_before_ns;

                if (not_before_ns > now_ns)
                        next_ns = min_u64(next_ns, not_before_ns);
        }
        if (next_ns == UINT64_MAX || fetch->handles_closing)
                return;
        uv_timer_start(&fetch->due, on_due,
                       next_ns > now_ns ? (next_ns - now_ns + 999999) / 1000000 : 0, 0);
}

static void on_due(uv_timer_t *timer) {
        struct fetch *fetch = timer->data;
        uint64_t now_ns = uv_hrtime();

        for (struct list *node = fetch->waiting.next, *next; node != &fetch->waiting; node = next) {
                struct fetch_job *job = list_owner(node, struct fetch_job, node);

                next = node->next;
                if (job->due_ns > now_ns)
                        continue;
                list_remove(node);
                job->endpoint->waiting--;
                make_ready(job);
        }
        for (struct list *node = fetch->endpoints.next; node != &fetch->endpoints;
             node = node->next)
                send_ready(fetch, list_owner(node, struct endpoint, node));
        arm_due(fetch);
        fetch_tell_room(fetch);
}

/* xorshift64*: jitter needs no better one. */
static uint64_t random_below(struct fetch *fetch, uint64_t bound) {
        fetch->random ^= fetch->random >> 12;
        fetch->random ^= fetch->random << 25;
        fetch->random ^= fetch->random >> 27;
        return (fetch->random * 0x2545f4914f6cdd1dull >> 11) % bound;
}

/*
 * The retry budget of an endpoint: a server that fails most requests is not to be asked twice as
 * often because of it. False: there is none left.
 */
static bool pay_for_retry(struct endpoint *endpoint, enum store_failure_class class) {
        unsigned cost = class == STORE_TRANSIENT ? FETCH_RETRY_COST_TRANSIENT : FETCH_RETRY_COST;

        if (endpoint->retry_tokens < cost)
                return false;
        endpoint->retry_tokens -= cost;
        return true;
}

/*
 * Full jitter: anything up to the bound, so that those who failed together do not come back
 * together. Without budget the longest wait comes on top: nothing is dropped.
 */
static void wait_and_retry(struct fetch_job *job, enum store_failure_class class,
                           uint64_t retry_after_ms) {
        struct fetch *fetch = job->fetch;
        unsigned doublings = job->failures ? (unsigned)min_u64(job->failures - 1, 20) : 0;
        uint64_t bound_ns = min_u64(FETCH_BACKOFF_MOST_NS, FETCH_BACKOFF_FIRST_NS << doublings);
        uint64_t wait_ns = random_below(fetch, bound_ns) +
                           min_u64(retry_after_ms, FETCH_RETRY_AFTER_MOST_MS) * 1000000;

        if (!pay_for_retry(job->endpoint, class))
                wait_ns += FETCH_BACKOFF_MOST_NS;
        job->state = JOB_WAITING;
        job->due_ns = uv_hrtime() + wait_ns;
        job->endpoint->waiting++;
        list_append(&fetch->waiting, &job->node);
        arm_due(fetch);
}

/* ---- How reads end ---- */

static void finish(struct fetch_job *job, const struct store_failure *failure) {
        struct fetch_result result = {
                .failure = *failure,
                .buffer = job->buffer,
                .size_bytes = job->reached_bytes,
                .total_bytes = job->total_bytes,
                .tries = job->tries,
        };

        memcpy(result.tag, job->tag, sizeof(result.tag));
        job->state = JOB_DONE;
        job->on_done(job->userdata, &result);
}

static void finish_ok(struct fetch_job *job) {
        static const struct store_failure none = { .class = STORE_OK };

        finish(job, &none);
}

static void forget_bytes(struct fetch_job *job) {
        job->reached_bytes = 0;
        job->total_bytes = UINT64_MAX;
        job->tag[0] = '\0';
}

/* The job is in no list. */
static void fail(struct fetch_job *job, const struct store_failure *failure, bool progress) {
        struct fetch *fetch = job->fetch;
        uint64_t now_ns = uv_hrtime();

        if (job->whole)
                forget_bytes(job); /* what came is of no use: the next answer begins at 0 again */
        if (progress && !job->whole) {
                job->failures = 0;
                job->first_failure_ns = 0;
        } else {
                job->failures++;
                job->first_failure_ns = job->first_failure_ns ? job->first_failure_ns : now_ns;
                if (job->failures >= fetch->options.tries_max ||
                    now_ns - job->first_failure_ns >= fetch->options.give_up_ns) {
                        finish(job, failure);
                        return;
                }
        }
        wait_and_retry(job, failure->class, failure->retry_after_ms);
}

/*
 * The parts are of different objects. Once, that is news: all is read again. Twice, somebody writes
 * faster than we read.
 */
static void changed(struct fetch_job *job) {
        struct store_failure failure = { .class = STORE_TRANSIENT, .code = "changed" };

        if (job->restarted) {
                snprintf(failure.message, sizeof(failure.message),
                         "The object changes while it is read");
                finish(job, &failure);
                return;
        }
        job->restarted = true;
        forget_bytes(job);
        make_ready(job);
}

/* The object ends before where the job has got to, or where an earlier answer said. */
static bool ends_too_early(const struct fetch_job *job) {
        return job->total_bytes != UINT64_MAX &&
               job->offset + job->reached_bytes <
                       min_u64(job->total_bytes, job->offset + job->size_bytes);
}

static void take_bytes(struct fetch_job *job, const struct store_read_result *result) {
        job->reached_bytes += result->size_bytes;
        if (result->total_bytes != UINT64_MAX)
                job->total_bytes = result->total_bytes;
        if (result->tag[0] && result->size_bytes > 0)
                memcpy(job->tag, result->tag, sizeof(job->tag));
}

static void go_on(struct fetch_job *job, const struct store_read_result *result) {
        const struct store_failure *failure = &result->failure;
        bool progress = result->size_bytes > 0;

        if (progress && job->reached_bytes > 0 && result->tag[0] && job->tag[0] &&
            strcmp(result->tag, job->tag) != 0) {
                changed(job);
                return;
        }
        if (failure->class == STORE_END && job->reached_bytes > 0) {
                if (ends_too_early(job))
                        changed(job);
                else
                        finish_ok(job);
                return;
        }
        if (failure->class == STORE_NO_RANGE && job->reached_bytes > 0 && job->offset == 0) {
                job->whole = true;
                fail(job, failure, false);
                return;
        }
        take_bytes(job, result);
        if (failure->class == STORE_TRANSIENT || failure->class == STORE_THROTTLED)
                fail(job, failure, progress);
        else if (failure->class != STORE_OK)
                finish(job, failure);
        else if (progress && ends_too_early(job))
                make_ready(job); /* a server may answer with less than was asked for */
        else
                finish_ok(job);
}

enum window_outcome fetch_outcome_of(enum store_failure_class class) {
        if (class == STORE_THROTTLED)
                return WINDOW_THROTTLED;
        return class == STORE_TRANSIENT ? WINDOW_FAILURE : WINDOW_SUCCESS;
}

/* The request is over, whoever ended it. */
static void leave_window(struct fetch_job *job, enum window_outcome outcome) {
        window_receive(&job->endpoint->window, job->serial, outcome);
        list_remove(&job->node);
        job->read = NULL;
        if (list_is_empty(&job->fetch->reading))
                uv_timer_stop(&job->fetch->watch);
}

void fetch_job_drop_read(struct fetch_job *job) {
        MUST(job->store->operations->read_cancel(job->read, NULL, NULL));
        leave_window(job, WINDOW_FAILURE);
}

void fetch_note_failure(struct fetch *fetch, struct endpoint *endpoint,
                        const struct store_failure *failure) {
        uint64_t retry_after_ms = min_u64(failure->retry_after_ms, FETCH_RETRY_AFTER_MOST_MS);

        endpoint->errors += failure->class == STORE_TRANSIENT ||
                            failure->class == STORE_THROTTLED || failure->class == STORE_PERMANENT;
        if (failure->class == STORE_THROTTLED && retry_after_ms) {
                window_wait_until(&endpoint->window, uv_hrtime() + retry_after_ms * 1000000);
                arm_due(fetch);
        }
}

void fetch_job_answered(struct fetch_job *job, const struct store_read_result *result) {
        struct fetch *fetch = job->fetch;
        struct endpoint *endpoint = job->endpoint;
        enum store_failure_class class = result->failure.class;

        fetch->counters.bytes += result->size_bytes;
        rate_spend(&endpoint->bytes, result->size_bytes, uv_hrtime());
        fetch->counters.request_ns += result->total_ns;
        if (class == STORE_OK && endpoint->retry_tokens < FETCH_RETRY_TOKENS)
                endpoint->retry_tokens++;
        fetch_note_failure(fetch, endpoint, &result->failure);
        fetch_tell_room(fetch);
        go_on(job, result);
        send_ready(fetch, endpoint);
}

static void on_read(void *userdata, const struct store_read_result *result) {
        struct fetch_job *job = userdata;
        enum store_failure_class class = result->failure.class;

        leave_window(job, fetch_outcome_of(class));
        if (class == STORE_OK && job->store->operations->read_waits_since_ns)
                window_measure(&job->endpoint->window, result->first_byte_ns, result->size_bytes,
                               uv_hrtime());
        hedge_drop(job);
        hedge_budget_answer(&job->endpoint->hedging, hedge_class_of(job->size_bytes),
                            result->first_byte_ns,
                            class == STORE_TRANSIENT || class == STORE_THROTTLED);
        fetch_job_answered(job, result);
}

/* ---- Reads that hang ---- */

static void job_release(struct fetch_job *job);

static void on_released(void *userdata) {
        struct fetch_job *job = userdata;
        struct fetch *fetch = job->fetch;

        job->held = false;
        leave_window(job, WINDOW_FAILURE);
        fetch_tell_room(fetch);
        if (job->state == JOB_ABANDONED)
                job_release(job);
}

/*
 * Takes the read away from the store. False: the store goes on holding the buffer, and the place in
 * the window.
 */
static bool cancel_read(struct fetch_job *job) {
        if (!job->store->operations->read_cancel(job->read, on_released, job)) {
                job->read = NULL;
                job->held = true;
                return false;
        }
        leave_window(job, WINDOW_FAILURE);
        return true;
}

static bool hangs(const struct fetch_job *job, uint64_t now_ns) {
        return job->read && job->store->reads_hang &&
               now_ns - job->sent_ns >= job->fetch->options.give_up_ns;
}

static struct fetch_job *find_hanging(const struct fetch *fetch, uint64_t now_ns) {
        for (struct list *node = fetch->reading.next; node != &fetch->reading; node = node->next) {
                struct fetch_job *job = list_owner(node, struct fetch_job, node);

                if (hangs(job, now_ns))
                        return job;
        }
        return NULL;
}

static void on_watch(uv_timer_t *watch) {
        struct fetch *fetch = watch->data;
        uint64_t now_ns = uv_hrtime();
        struct fetch_job *job;

        /* From the start each time: a callback may free any job. */
        while ((job = find_hanging(fetch, now_ns))) {
                struct store_failure failure = { .class = STORE_TRANSIENT, .code = "ETIMEDOUT" };

                snprintf(failure.message, sizeof(failure.message),
                         "The file system does not answer");
                job->endpoint->errors++;
                cancel_read(job);
                finish(job, &failure);
        }
}

/* ---- Jobs ---- */

static void close_handles(struct fetch *fetch);

static void job_release(struct fetch_job *job) {
        struct fetch *fetch = job->fetch;

        buffers_give(&fetch->buffers, job->buffer, job->size_bytes);
        budget_give(&fetch->budget, job->size_bytes);
        if (fetch->budget.held_bytes == 0)
                buffers_trim(&fetch->buffers, FETCH_KEPT_IDLE_BYTES);
        free(job);
        fetch->jobs--;
        fetch_tell_room(fetch);
        if (fetch->closing && fetch->jobs == 0)
                close_handles(fetch);
}

bool fetch_room(struct fetch *fetch, struct store *store, uint64_t size) {
        struct endpoint *endpoint = need_endpoint(fetch, store);
        uint64_t now_ns = uv_hrtime();

        return endpoint && list_is_empty(&endpoint->ready) &&
               fetch_has_place(fetch, endpoint, now_ns) && budget_fits(&fetch->budget, size);
}

void fetch_on_room(struct fetch *fetch, void (*on_room)(void *userdata), void *userdata) {
        fetch->on_room = on_room;
        fetch->on_room_userdata = userdata;
}

/* What is kept for reuse is memory too: with the tickets it must not pass the budget. */
static uint8_t *take_ticket(struct fetch *fetch, uint64_t size) {
        uint8_t *buffer = buffers_take(&fetch->buffers, size);
        uint64_t held_bytes;

        if (!buffer)
                return NULL;
        budget_take(&fetch->budget, size);
        held_bytes = min_u64(fetch->budget.held_bytes, fetch->budget.max_bytes);
        buffers_trim(&fetch->buffers, fetch->budget.max_bytes - held_bytes);
        return buffer;
}

int fetch_job_start(struct fetch *fetch, struct store *store, const struct store_read_range *range,
                    void (*on_done)(void *userdata, const struct fetch_result *result),
                    void *userdata, struct fetch_job **ret_job) {
        struct fetch_job *job = calloc(1, sizeof(*job) + range->name_size + 1);
        int r;

        if (!job)
                return -ENOMEM;
        job->buffer = (job->endpoint = need_endpoint(fetch, store))
                              ? take_ticket(fetch, range->size_bytes)
                              : NULL;
        if (!job->buffer) {
                free(job);
                return -ENOMEM;
        }
        list_init(&job->node);
        job->fetch = fetch;
        job->store = store;
        job->offset = range->offset;
        job->size_bytes = range->size_bytes;
        if (range->tag)
                strncpy(job->guard, range->tag, sizeof(job->guard) - 1);
        job->total_bytes = UINT64_MAX;
        job->on_done = on_done;
        job->userdata = userdata;
        job->name_size = range->name_size;
        memcpy(job->name, range->name, range->name_size);
        fetch->jobs++;
        r = send_try(job);
        if (r < 0) {
                job_release(job);
                return r;
        }
        *ret_job = job;
        return 0;
}

struct fetch_job *fetch_job_free(struct fetch_job *job) {
        if (!job)
                return NULL;
        hedge_drop(job);
        if (job->state == JOB_READING && !cancel_read(job)) {
                job->state = JOB_ABANDONED;
                return NULL;
        }
        if (job->held) {
                job->state = JOB_ABANDONED;
                return NULL;
        }
        if (job->state == JOB_WAITING)
                job->endpoint->waiting--;
        list_remove(&job->node);
        job_release(job);
        return NULL;
}

/* ---- Life ---- */

static const struct fetch_options defaults = {
        .inflight_bytes_max = 256u << 20,
        .connections_max = 1024,
        .tries_max = 10,
        .give_up_ns = 120000000000,
};

int fetch_new(uv_loop_t *loop, const struct fetch_options *options, struct fetch **ret_fetch) {
        struct fetch *fetch = calloc(1, sizeof(*fetch));

        if (!fetch)
                return -ENOMEM;
        fetch->loop = loop;
        fetch->options = *options;
        fetch->options.inflight_bytes_max = options->inflight_bytes_max
                                                    ? options->inflight_bytes_max
                                                    : defaults.inflight_bytes_max;
        fetch->options.connections_max = options->connections_max ? options->connections_max
                                                                  : defaults.connections_max;
        fetch->options.tries_max = options->tries_max ? options->tries_max : defaults.tries_max;
        fetch->options.give_up_ns = options->give_up_ns ? options->give_up_ns : defaults.give_up_ns;
        fetch->budget.max_bytes = fetch->options.inflight_bytes_max;
        buffers_init(&fetch->buffers, fetch->options.inflight_bytes_max);
        list_init(&fetch->endpoints);
        list_init(&fetch->reading);
        list_init(&fetch->waiting);
        fetch->random = uv_hrtime() | 1;
        uv_idle_init(loop, &fetch->room);
        uv_timer_init(loop, &fetch->due);
        uv_timer_init(loop, &fetch->watch);
        uv_timer_init(loop, &fetch->late);
        fetch->room.data = fetch->due.data = fetch->watch.data = fetch->late.data = fetch;
        fetch->open_handles = 4;
        *ret_fetch = fetch;
        return 0;
}

static void on_handle_closed(uv_handle_t *handle) {
        struct fetch *fetch = handle->data;
        void (*on_closed)(void *) = fetch->on_closed;
        void *userdata = fetch->userdata;

        if (--fetch->open_handles > 0)
                return;
        while (!list_is_empty(&fetch->endpoints)) {
                struct endpoint *endpoint = list_owner(fetch->endpoints.next, struct endpoint,
                                                       node);

                list_remove(&endpoint->node);
                free(endpoint->name);
                free(endpoint);
        }
        buffers_deinit(&fetch->buffers);
        free(fetch);
        if (on_closed)
                on_closed(userdata);
}

static void close_handles(struct fetch *fetch) {
        fetch->handles_closing = true;
        uv_close((uv_handle_t *)&fetch->room, on_handle_closed);
        uv_close((uv_handle_t *)&fetch->due, on_handle_closed);
        uv_close((uv_handle_t *)&fetch->watch, on_handle_closed);
        uv_close((uv_handle_t *)&fetch->late, on_handle_closed);
}

/* Jobs that were freed while a thread had their buffer are waited for. */
void fetch_close(struct fetch *fetch, void (*on_closed)(void *userdata), void *userdata) {
        if (!fetch)
                return;
        fetch->closing = true;
        fetch->on_room = NULL;
        fetch->on_closed = on_closed;
        fetch->userdata = userdata;
        if (fetch->jobs == 0)
                close_handles(fetch);
}

const struct fetch_counters *fetch_counters(const struct fetch *fetch) {
        struct fetch_counters *counters = (struct fetch_counters *)&fetch->counters;

        counters->inflight_bytes = fetch->budget.held_bytes;
        counters->inflight_bytes_peak = fetch->budget.peak_bytes;
        return counters;
}

unsigned fetch_window(const struct fetch *fetch, const struct store *store) {
        const struct endpoint *endpoint = find_endpoint(fetch, store->endpoint);

        return endpoint ? endpoint->window.size : 0;
}

size_t fetch_endpoints(const struct fetch *fetch, struct fetch_endpoint_status *ret_rows,
                       size_t most) {
        size_t count = 0;

        for (struct list *node = fetch->endpoints.next; node != &fetch->endpoints;
             node = node->next, count++) {
                const struct endpoint *endpoint = list_owner(node, struct endpoint, node);

                if (count < most)
                        ret_rows[count] = (struct fetch_endpoint_status){
                                .name = endpoint->name,
                                .window = endpoint->window.size,
                                .in_flight = endpoint->window.in_flight,
                                .waiting = endpoint->waiting,
                                .errors = endpoint->errors,
                                .retry_tokens = endpoint->retry_tokens,
                        };
        }
        return count;
}
