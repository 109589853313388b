/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of storage: a scripted store, which answers as the test says and when it says, and the
 * fault server.
 */
#include "daemon/fetch/fetch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/daemon/store/fault_server.h"
#include "tests/unit/daemon/store/store_harness.h"
#include "tests/unit/runner.h"

#define NAME "a.tfevents"
#define SIZE 10000

static struct store_harness harness;
static struct fault_server server;
static struct fetch *fetch;

struct job {
        struct fetch_job *job;
        struct fetch_result result;
        bool done;
};

/* A range of the object, until the next one is made. */
static const struct store_read_range *range(uint64_t offset, uint64_t size) {
        static struct store_read_range range;

        range = (struct store_read_range){
                .name = NAME, .name_size = strlen(NAME), .offset = offset, .size_bytes = size
        };
        return &range;
}

static void on_done(void *userdata, const struct fetch_result *result) {
        struct job *job = userdata;

        ck_assert(!job->done);
        job->result = *result;
        job->done = true;
        /* else it would go on to wait for events if this was a timer's doing */
        uv_stop(&harness.loop);
}

static void must_not_be_called(void *userdata, const struct fetch_result *result) {
        (void)userdata;
        (void)result;
        ck_abort_msg("called after free");
}

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

static void begin(const struct fetch_options *options) {
        fault_server_start(&server);
        test_file_write(server.root, NAME, SIZE);
        store_harness_open_http(&harness, server.url, &impatient);
        ck_assert_int_eq(fetch_new(&harness.loop, options, &fetch), 0);
}

static void end_fetch(void) {
        bool closed = false;

        ck_assert_uint_eq(fetch_counters(fetch)->inflight_bytes, 0);
        fetch_close(fetch, on_closed, &closed);
        while (!closed)
                uv_run(&harness.loop, UV_RUN_ONCE);
}

static void end(void) {
        end_fetch();
        store_harness_close(&harness);
        fault_server_stop(&server);
}

static void wait_for(struct job *job) {
        while (!job->done)
                uv_run(&harness.loop, UV_RUN_ONCE);
}

static void read_job(struct job *job, uint64_t offset, uint64_t size) {
        *job = (struct job){ 0 };
        ck_assert(fetch_room(fetch, harness.store, size));
        ck_assert_int_eq(
                fetch_job_start(fetch, harness.store, range(offset, size), on_done, job, &job->job),
                0);
        ck_assert(!job->done);
        wait_for(job);
}

static const struct fetch_options patient = { .tries_max = 10, .give_up_ns = 60000000000 };

/*
 * Faults that pass: the job is whole afterwards, and the byte that was reached is not asked for
 * again.
 */
static const struct {
        const char *order;
        uint64_t offset, size;
        unsigned tries;
        uint64_t bytes; /* received in all */
} passing[] = {
        { "{'fault':'status','status':500,'times':1}", 0, SIZE, 2, SIZE },
        { "{'fault':'status','status':503,'times':2}", 0, SIZE, 3, SIZE },
        { "{'fault':'reset','after':1000,'times':1}", 0, SIZE, 2, SIZE },
        { "{'fault':'short','after':1000,'times':3}", 100, 8000, 4, 8000 },
        { "{'fault':'stall','after':4000,'times':1}", 0, SIZE + 500, 2, SIZE },
        { "{'fault':'silent','times':1}", 0, SIZE, 2, SIZE },
        /* of a connection that was kept: libcurl makes a new one itself */
        { "{'fault':'close','times':1}", 0, SIZE, 1, SIZE },
        { "{'fault':'wrong_range','times':1}", 0, SIZE, 2, SIZE },
        { "{'fault':'no_range'}", 0, SIZE, 1, SIZE },
};

START_TEST(passing_faults_are_overcome) {
        struct job job;

        begin(&patient);
        for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
                uint64_t bytes = fetch_counters(fetch)->bytes;

                fault_server_order(&server, "{'clear':true}");
                fault_server_order(&server, passing[i].order);
                read_job(&job, passing[i].offset, passing[i].size);
                ck_assert_msg(job.result.failure.class == STORE_OK, "%s: %s", passing[i].order,
                              job.result.failure.message);
                ck_assert_uint_eq(job.result.size_bytes,
                                  min_u64(passing[i].size, SIZE - passing[i].offset));
                ck_assert_uint_eq(job.result.total_bytes, SIZE);
                ck_assert_msg(job.result.tries == passing[i].tries, "%s: %u tries",
                              passing[i].order, job.result.tries);
                ck_assert_msg(fetch_counters(fetch)->bytes - bytes == passing[i].bytes,
                              "%s: %llu bytes", passing[i].order,
                              (unsigned long long)(fetch_counters(fetch)->bytes - bytes));
                assert_test_bytes(job.result.buffer, passing[i].offset, job.result.size_bytes);
                fetch_job_free(job.job);
        }
        end();
}
END_TEST

static const struct {
        const char *order;
        uint64_t offset;
        enum store_failure_class class;
        const char *code;
} lasting[] = {
        { "{'fault':'status','status':404}", 0, STORE_PERMANENT, "404" },
        { "{'fault':'status','status':403}", 0, STORE_PERMANENT, "403" },
        { "{'fault':'no_range'}", 5, STORE_NO_RANGE, "no-range" },
        { "{'fault':'delay','ms':0}", SIZE, STORE_END, "416" },
};

START_TEST(lasting_faults_end_at_once) {
        struct job job;

        begin(&patient);
        for (size_t i = 0; i < ARRAY_SIZE(lasting); i++) {
                fault_server_order(&server, "{'clear':true}");
                fault_server_order(&server, lasting[i].order);
                read_job(&job, lasting[i].offset, 100);
                ck_assert_int_eq(job.result.failure.class, lasting[i].class);
                ck_assert_str_eq(job.result.failure.code, lasting[i].code);
                ck_assert_uint_eq(job.result.tries, 1);
                ck_assert_uint_eq(job.result.size_bytes, 0);
                fetch_job_free(job.job);
        }
        end();
}
END_TEST

START_TEST(gives_up_after_tries) {
        static const struct fetch_options three = { .tries_max = 3, .give_up_ns = 60000000000 };
        struct job job;

        begin(&three);
        fault_server_order(&server, "{'fault':'status','status':500}");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_TRANSIENT);
        ck_assert_str_eq(job.result.failure.code, "500");
        ck_assert_uint_eq(job.result.tries, 3);
        ck_assert_uint_eq(fault_server_requests(&server, "/" NAME), 3);
        fetch_job_free(job.job);
        end();
}
END_TEST

START_TEST(gives_up_after_time) {
        static const struct fetch_options at_once = { .tries_max = 1000000, .give_up_ns = 1 };
        struct job job;

        begin(&at_once);
        fault_server_order(&server, "{'fault':'status','status':500}");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_TRANSIENT);
        ck_assert_uint_eq(job.result.tries, 2); /* the first failure begins the time */
        fetch_job_free(job.job);
        end();
}
END_TEST

/* Progress begins the count anew: ten bytes at a time, with three tries in a row allowed. */
START_TEST(progress_resets_the_count) {
        static const struct fetch_options three = { .tries_max = 3, .give_up_ns = 60000000000 };
        struct job job;

        begin(&three);
        fault_server_order(&server, "{'fault':'short','after':10,'times':10}");
        read_job(&job, 0, 200);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.tries, 11);
        ck_assert_uint_eq(job.result.size_bytes, 200);
        assert_test_bytes(job.result.buffer, 0, 200);
        fetch_job_free(job.job);
        end();
}
END_TEST

START_TEST(partial_bytes_survive_failure) {
        static const struct fetch_options two = { .tries_max = 2, .give_up_ns = 60000000000 };
        struct job job;

        begin(&two);
        fault_server_order(
                &server,
                "[{'fault':'short','after':500,'times':1},{'fault':'status','status':500}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_TRANSIENT);
        ck_assert_uint_eq(job.result.size_bytes, 500);
        assert_test_bytes(job.result.buffer, 0, 500);
        fetch_job_free(job.job);
        end();
}
END_TEST

/* Parts of different versions are never put together. */
START_TEST(changed_object_is_read_anew_once) {
        struct job job;

        begin(&patient);
        fault_server_order(&server,
                           "[{'fault':'short','after':500,'times':1},{'fault':'etag','times':1}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.tries, 3);
        ck_assert_uint_eq(job.result.size_bytes, SIZE);
        assert_test_bytes(job.result.buffer, 0, SIZE);
        fetch_job_free(job.job);
        fault_server_order(&server,
                           "[{'clear':true},{'fault':'short','after':500,'times':1},{'fault':'etag'"
                           ",'times':1},"
                           "{'fault':'short','after':500,'times':1},{'fault':'etag','times':1}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_TRANSIENT);
        ck_assert_str_eq(job.result.failure.code, "changed");
        fetch_job_free(job.job);
        end();
}
END_TEST

START_TEST(growing_object_is_read_as_far_as_it_goes) {
        struct job job;

        begin(&patient);
        fault_server_order(&server, "{'fault':'grow','from':1000,'by':500}");
        read_job(&job, 0, SIZE + 65536);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.size_bytes, 1000);
        ck_assert_uint_eq(job.result.total_bytes, 1000);
        fetch_job_free(job.job);
        read_job(&job, 1000, 65536);
        ck_assert_uint_eq(job.result.size_bytes, 500);
        assert_test_bytes(job.result.buffer, 1000, 500);
        fetch_job_free(job.job);
        end();
}
END_TEST

static unsigned rooms;

static void on_room(void *userdata) {
        (void)userdata;
        rooms++;
}

START_TEST(budget_is_never_passed) {
        static const struct fetch_options small = { .inflight_bytes_max = 1000,
                                                    .tries_max = 3,
                                                    .give_up_ns = 60000000000 };
        struct job first = { 0 }, second = { 0 };

        begin(&small);
        fetch_on_room(fetch, on_room, NULL);
        ck_assert(fetch_room(fetch, harness.store, 600));
        ck_assert_int_eq(
                fetch_job_start(fetch, harness.store, range(0, 600), on_done, &first, &first.job),
                0);
        ck_assert(!fetch_room(fetch, harness.store, 500));
        ck_assert(fetch_room(fetch, harness.store, 400));
        ck_assert_int_eq(
                fetch_job_start(fetch, harness.store, range(0, 400), on_done, &second, &second.job),
                0);
        ck_assert(!fetch_room(fetch, harness.store, 1));
        wait_for(&first);
        wait_for(&second);
        /* a ticket is held until its job is freed */
        ck_assert(!fetch_room(fetch, harness.store, 1));
        fetch_job_free(first.job);
        ck_assert(!fetch_room(fetch, harness.store, 5000));
        fetch_job_free(second.job);
        ck_assert(fetch_room(fetch, harness.store, 5000)); /* more than the budget, alone */
        rooms = 0;
        while (rooms == 0)
                uv_run(&harness.loop, UV_RUN_ONCE);
        read_job(&first, 0, 5000);
        ck_assert(!fetch_room(fetch, harness.store, 1));
        fetch_job_free(first.job);
        ck_assert_uint_eq(fetch_counters(fetch)->inflight_bytes_peak, 5000);
        end();
}
END_TEST

START_TEST(window_is_never_passed) {
        static const struct fetch_options five = { .connections_max = 5,
                                                   .tries_max = 3,
                                                   .give_up_ns = 60000000000 };
        static struct job jobs[40];
        struct fetch_endpoint_status status;
        size_t started = 0, freed = 0;

        begin(&five);
        fault_server_order(&server, "{'fault':'delay','ms':2}");
        while (freed < ARRAY_SIZE(jobs)) {
                while (started < ARRAY_SIZE(jobs) && fetch_room(fetch, harness.store, SIZE)) {
                        ck_assert_int_eq(fetch_job_start(fetch, harness.store, range(0, SIZE),
                                                         on_done, &jobs[started],
                                                         &jobs[started].job),
                                         0);
                        started++;
                }
                uv_run(&harness.loop, UV_RUN_ONCE);
                for (size_t i = 0; i < started; i++) {
                        if (jobs[i].done && jobs[i].job) {
                                ck_assert_int_eq(jobs[i].result.failure.class, STORE_OK);
                                jobs[i].job = fetch_job_free(jobs[i].job);
                                freed++;
                        }
                }
        }
        ck_assert_uint_eq(fault_server_in_flight_peak(&server), 5);
        ck_assert_uint_eq(fetch_endpoints(fetch, &status, 1), 1);
        ck_assert_str_eq(status.name, server.url);
        ck_assert_uint_eq(status.window, 5);
        ck_assert_uint_eq(status.in_flight, 0);
        ck_assert_uint_eq(fetch_counters(fetch)->reads, 40);
        ck_assert_uint_eq(fetch_counters(fetch)->retries, 0);
        ck_assert_uint_gt(fetch_counters(fetch)->request_ns, 0);
        end();
}
END_TEST

START_TEST(throttling_halves_the_window) {
        struct fetch_endpoint_status status;
        struct job job;

        begin(&patient);
        fault_server_order(&server, "{'fault':'status','status':503,'retry_after':'1','times':1}");
        job = (struct job){ 0 };
        ck_assert_int_eq(
                fetch_job_start(fetch, harness.store, range(0, SIZE), on_done, &job, &job.job), 0);
        do {
                uv_run(&harness.loop, UV_RUN_ONCE);
                fetch_endpoints(fetch, &status, 1);
        } while (status.waiting == 0);
        ck_assert_uint_eq(status.window, 64);
        ck_assert_uint_eq(status.errors, 1);
        ck_assert(!fetch_room(fetch, harness.store, 1)); /* Retry-After */
        wait_for(&job);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.tries, 2);
        fetch_job_free(job.job);
        end();
}
END_TEST

static void cancel_after(const char *order, unsigned turns) {
        struct job job = { 0 };

        fault_server_order(&server, "{'clear':true}");
        fault_server_order(&server, order);
        ck_assert_int_eq(fetch_job_start(fetch, harness.store, range(0, SIZE), must_not_be_called,
                                         &job, &job.job),
                         0);
        for (unsigned i = 0; i < turns; i++)
                uv_run(&harness.loop, UV_RUN_NOWAIT);
        fetch_job_free(job.job);
        ck_assert_uint_eq(fetch_counters(fetch)->inflight_bytes, 0);
}

START_TEST(free_at_every_moment) {
        begin(&patient);
        for (unsigned turns = 0; turns < 10; turns++) {
                cancel_after("{'fault':'trickle','piece':10,'ms':5}", turns);
                cancel_after("{'fault':'status','status':500}", turns * 50);
                cancel_after("{'fault':'silent'}", turns);
                cancel_after("{'fault':'short','after':10}", turns * 50);
        }
        fetch_job_free(NULL);
        end();
}
END_TEST

/* ---- Hedges ---- */

/* Enough answers to know what is late. */
static void warm_up(void) {
        struct job job;

        for (unsigned i = 0; i < 30; i++) {
                read_job(&job, 0, SIZE);
                fetch_job_free(job.job);
        }
}

START_TEST(late_answer_is_asked_for_once_more) {
        struct job job;
        unsigned requests;

        begin(&patient);
        warm_up();
        ck_assert_uint_eq(fetch_counters(fetch)->hedges, 0);
        requests = fault_server_requests(&server, NULL);
        fault_server_order(&server, "{'fault':'silent','times':1}");
        read_job(&job, 100, 5000);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.size_bytes, 5000);
        ck_assert_uint_eq(job.result.tries, 1); /* nothing has failed */
        assert_test_bytes(job.result.buffer, 100, 5000);
        fetch_job_free(job.job);
        ck_assert_uint_eq(fetch_counters(fetch)->hedges, 1);
        ck_assert_uint_eq(fetch_counters(fetch)->hedges_won, 1);
        ck_assert_uint_eq(fault_server_requests(&server, NULL), requests + 2);
        end();
}
END_TEST

/* The rest of a body that stopped is asked for by a retry, not by a hedge; both may be late. */
START_TEST(late_rest_is_put_behind_what_came) {
        struct job job;

        begin(&patient);
        warm_up();
        fault_server_order(&server, "[{'fault':'short','after':3000,'times':1},"
                                    "{'fault':'silent','times':1}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.size_bytes, SIZE);
        assert_test_bytes(job.result.buffer, 0, SIZE);
        fetch_job_free(job.job);
        ck_assert_uint_eq(fetch_counters(fetch)->hedges_won, 1);
        end();
}
END_TEST

START_TEST(hedge_that_fails_or_loses_changes_nothing) {
        struct job job;

        begin(&patient);
        warm_up();
        /* the hedge is answered with an error; the first one comes in the end */
        fault_server_order(&server, "[{'fault':'delay','ms':300,'times':1},"
                                    "{'fault':'status','status':500,'skip':1,'times':1}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        assert_test_bytes(job.result.buffer, 0, SIZE);
        fetch_job_free(job.job);
        /* the hedge is silent, too: a third one takes the place of the first */
        fault_server_order(&server, "[{'reset':true},{'fault':'delay','ms':300,'times':1},"
                                    "{'fault':'silent','skip':1,'times':1}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        assert_test_bytes(job.result.buffer, 0, SIZE);
        fetch_job_free(job.job);
        ck_assert_uint_eq(fetch_counters(fetch)->hedges, 3);
        ck_assert_uint_eq(fetch_counters(fetch)->hedges_won, 0);
        end();
}
END_TEST

START_TEST(freed_job_takes_its_hedge_along) {
        struct job job = { 0 };

        begin(&patient);
        warm_up();
        fault_server_order(&server, "{'fault':'silent'}");
        ck_assert_int_eq(fetch_job_start(fetch, harness.store, range(0, SIZE), must_not_be_called,
                                         &job, &job.job),
                         0);
        while (fetch_counters(fetch)->hedges == 0)
                uv_run(&harness.loop, UV_RUN_ONCE);
        fetch_job_free(job.job);
        end(); /* asserts that no ticket is left */
}
END_TEST

static struct fetch_endpoint_status endpoint(void) {
        struct fetch_endpoint_status row;

        ck_assert_uint_eq(fetch_endpoints(fetch, &row, 1), 1);
        return row;
}

/* The hedge has said that the endpoint wants fewer requests; that the first one comes is no comfort. */
START_TEST(hedge_that_is_throttled_halves_the_window) {
        struct job job;
        unsigned window;

        begin(&patient);
        warm_up();
        window = endpoint().window;
        fault_server_order(&server, "[{'fault':'delay','ms':300,'times':1},"
                                    "{'fault':'status','status':503,'skip':1,'times':1}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        fetch_job_free(job.job);
        ck_assert_uint_eq(fetch_counters(fetch)->hedges, 1);
        ck_assert_uint_eq(endpoint().window, window / 2);
        ck_assert_uint_eq(endpoint().errors, 1);
        end();
}
END_TEST

/* One connection is one request: not two because the first is late. */
START_TEST(hedges_keep_to_the_window) {
        static const struct fetch_options one = { .tries_max = 10,
                                                  .give_up_ns = 60000000000,
                                                  .connections_max = 1 };
        struct job job;

        begin(&one);
        warm_up();
        fault_server_order(&server, "{'fault':'delay','ms':300}");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        fetch_job_free(job.job);
        ck_assert_uint_eq(fetch_counters(fetch)->hedges, 0);
        end();
}
END_TEST

/* After a restart for another version nothing else is under way that would bring the job back. */
START_TEST(rate_does_not_forget_what_begins_anew) {
        static const struct fetch_options slow = { .tries_max = 10,
                                                   .give_up_ns = 60000000000,
                                                   .requests_per_second_max = 1 };
        struct job job;

        begin(&slow);
        fault_server_order(&server,
                           "[{'fault':'short','after':500,'times':1},{'fault':'etag','times':1}]");
        read_job(&job, 0, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.tries, 3);
        fetch_job_free(job.job);
        end();
}
END_TEST

static unsigned tokens(void) {
        return endpoint().retry_tokens;
}

START_TEST(retries_are_paid_for) {
        struct job job;

        begin(&patient);
        fault_server_order(&server, "{'fault':'status','status':503,'times':2}");
        read_job(&job, 0, SIZE);
        fetch_job_free(job.job);
        ck_assert_uint_eq(tokens(), FETCH_RETRY_TOKENS - 2 * 5 + 1);
        fault_server_order(&server, "{'fault':'status','status':500,'times':1}");
        read_job(&job, 0, SIZE);
        fetch_job_free(job.job);
        ck_assert_uint_eq(tokens(), FETCH_RETRY_TOKENS - 2 * 5 + 1 - 10 + 1);
        end();
}
END_TEST

/* ---- A store that answers when the test says ---- */

struct store_read {
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void *userdata;
        uint8_t *buffer;
        uint64_t offset, size_bytes;
        void (*on_released)(void *userdata);
};

static struct store_read scripted_read;
static unsigned scripted_reads;

static int scripted_start(struct store *store, const struct store_read_range *range,
                          void (*on_read)(void *userdata, const struct store_read_result *result),
                          void *userdata, struct store_read **ret_read) {
        (void)store;
        scripted_read = (struct store_read){ on_read,       userdata,          range->buffer,
                                             range->offset, range->size_bytes, NULL };
        scripted_reads++;
        *ret_read = &scripted_read;
        return 0;
}

/* A thread that hangs in the kernel. */
static bool scripted_cancel(struct store_read *read, void (*on_released)(void *userdata),
                            void *userdata) {
        read->on_released = on_released;
        read->userdata = userdata;
        return false;
}

static const struct store_operations scripted_operations = { .read = scripted_start,
                                                             .read_cancel = scripted_cancel };
static struct store scripted = { .operations = &scripted_operations,
                                 .endpoint = (char *)"file",
                                 .window_start = 2,
                                 .reads_hang = true };

static void begin_scripted(const struct fetch_options *options) {
        ck_assert_int_eq(uv_loop_init(&harness.loop), 0);
        ck_assert_int_eq(fetch_new(&harness.loop, options, &fetch), 0);
        scripted_reads = 0;
}

static void end_scripted(void) {
        end_fetch();
        ck_assert_int_eq(uv_loop_close(&harness.loop), 0);
}

START_TEST(buffer_outlives_a_read_that_hangs) {
        struct job job = { 0 };
        bool closed = false;

        begin_scripted(&patient);
        ck_assert_int_eq(fetch_job_start(fetch, &scripted, range(0, 1000), must_not_be_called, &job,
                                         &job.job),
                         0);
        fetch_job_free(job.job);
        scripted_read.buffer[999] = 1; /* still there */
        ck_assert_uint_eq(fetch_counters(fetch)->inflight_bytes, 1000);
        fetch_close(fetch, on_closed, &closed);
        uv_run(&harness.loop, UV_RUN_NOWAIT);
        ck_assert(!closed);
        scripted_read.on_released(scripted_read.userdata);
        uv_run(&harness.loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        ck_assert_int_eq(uv_loop_close(&harness.loop), 0);
}
END_TEST

/* Each failure is answered by the next try, until nothing is left to pay with. */
START_TEST(retries_without_budget_wait_longest) {
        static const struct fetch_options tireless = { .tries_max = 1000,
                                                       .give_up_ns = 3600000000000 };
        static const struct store_read_result failed = {
                .failure = { .class = STORE_TRANSIENT, .code = "500" }, .total_bytes = UINT64_MAX
        };
        struct job job = { 0 };

        begin_scripted(&tireless);
        ck_assert_int_eq(fetch_job_start(fetch, &scripted, range(0, 1000), must_not_be_called, &job,
                                         &job.job),
                         0);
        for (unsigned tries = 1; tokens() >= 10; tries++) {
                scripted_read.on_done(scripted_read.userdata, &failed);
                if (tokens() < 10)
                        break;
                /* The read before the next one is a while away: another job takes the budget. */
                fetch_job_free(job.job);
                ck_assert_int_eq(fetch_job_start(fetch, &scripted, range(0, 1000),
                                                 must_not_be_called, &job, &job.job),
                                 0);
        }
        fetch_job_free(job.job);
        ck_assert_int_eq(fetch_job_start(fetch, &scripted, range(0, 1000), must_not_be_called, &job,
                                         &job.job),
                         0);
        uv_update_time(&harness.loop);
        scripted_read.on_done(scripted_read.userdata, &failed);
        uv_run(&harness.loop, UV_RUN_NOWAIT);
        ck_assert_int_ge(uv_backend_timeout(&harness.loop), 4000);
        fetch_job_free(job.job);
        end_scripted();
}
END_TEST

START_TEST(hanging_read_is_given_up) {
        static const struct fetch_options at_once = { .tries_max = 10, .give_up_ns = 1 };
        struct job job = { 0 };

        begin_scripted(&at_once);
        ck_assert_int_eq(fetch_job_start(fetch, &scripted, range(0, 1000), on_done, &job, &job.job),
                         0);
        wait_for(&job);
        ck_assert_int_eq(job.result.failure.class, STORE_TRANSIENT);
        ck_assert_str_eq(job.result.failure.code, "ETIMEDOUT");
        fetch_job_free(job.job);
        ck_assert_uint_eq(fetch_counters(fetch)->inflight_bytes, 1000);
        scripted_read.on_released(scripted_read.userdata);
        end_scripted();
}
END_TEST

/* An answer with less than was asked for, of an object that goes on, is gone on with at once. */
START_TEST(short_answers_are_put_together) {
        struct job job = { 0 };

        begin_scripted(&patient);
        ck_assert_int_eq(
                fetch_job_start(fetch, &scripted, range(50, 1000), on_done, &job, &job.job), 0);
        for (unsigned i = 0; i < 10; i++) {
                const struct store_read_result part = { .size_bytes = 100,
                                                        .total_bytes = 2000,
                                                        .tag = "t" };

                ck_assert_uint_eq(scripted_reads, i + 1);
                ck_assert_uint_eq(scripted_read.offset, 50 + i * 100);
                ck_assert_uint_eq(scripted_read.size_bytes, 1000 - i * 100);
                memset(scripted_read.buffer, (int)i, 100);
                scripted_read.on_done(scripted_read.userdata, &part);
        }
        ck_assert(job.done);
        ck_assert_uint_eq(job.result.size_bytes, 1000);
        for (size_t i = 0; i < 1000; i++)
                ck_assert_uint_eq(job.result.buffer[i], i / 100);
        fetch_job_free(job.job);
        end_scripted();
}
END_TEST

/* A server without ranges breaks off: what it sends next begins at 0 again. */
START_TEST(whole_object_begins_anew) {
        const struct store_read_result part = { .failure = { .class = STORE_TRANSIENT,
                                                             .code = "reset" },
                                                .size_bytes = 100,
                                                .total_bytes = 500 };
        const struct store_read_result no_range = {
                .failure = { .class = STORE_NO_RANGE, .code = "no-range" }, .total_bytes = 500
        };
        const struct store_read_result whole = { .size_bytes = 500, .total_bytes = 500 };
        struct job job = { 0 };

        begin_scripted(&patient);
        ck_assert_int_eq(fetch_job_start(fetch, &scripted, range(0, 1000), on_done, &job, &job.job),
                         0);
        scripted_read.on_done(scripted_read.userdata, &part);
        while (scripted_reads < 2)
                uv_run(&harness.loop, UV_RUN_ONCE);
        ck_assert_uint_eq(scripted_read.offset, 100);
        scripted_read.on_done(scripted_read.userdata, &no_range);
        while (scripted_reads < 3)
                uv_run(&harness.loop, UV_RUN_ONCE);
        ck_assert_uint_eq(scripted_read.offset, 0);
        scripted_read.on_done(scripted_read.userdata, &whole);
        ck_assert(job.done);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.size_bytes, 500);
        fetch_job_free(job.job);
        end_scripted();
}
END_TEST

START_TEST(local_files_are_fetched) {
        struct job job;

        test_root_make(server.root);
        test_file_write(server.root, NAME, SIZE);
        store_harness_open(&harness, server.root);
        ck_assert_int_eq(fetch_new(&harness.loop, &patient, &fetch), 0);
        read_job(&job, 10, SIZE);
        ck_assert_int_eq(job.result.failure.class, STORE_OK);
        ck_assert_uint_eq(job.result.size_bytes, SIZE - 10);
        assert_test_bytes(job.result.buffer, 10, SIZE - 10);
        fetch_job_free(job.job);
        for (unsigned i = 0; i < 50; i++) {
                job = (struct job){ 0 };
                ck_assert_int_eq(fetch_job_start(fetch, harness.store, range(0, SIZE),
                                                 must_not_be_called, &job, &job.job),
                                 0);
                fetch_job_free(job.job);
        }
        while (fetch_counters(fetch)->inflight_bytes)
                uv_run(&harness.loop, UV_RUN_ONCE);
        end_fetch();
        store_harness_close(&harness);
        test_root_remove(server.root);
}
END_TEST

RUNNER_MAIN("fetch/fetch", retries_are_paid_for, retries_without_budget_wait_longest,
            late_answer_is_asked_for_once_more, late_rest_is_put_behind_what_came,
            hedge_that_fails_or_loses_changes_nothing, hedge_that_is_throttled_halves_the_window,
            hedges_keep_to_the_window, rate_does_not_forget_what_begins_anew,
            freed_job_takes_its_hedge_along, passing_faults_are_overcome,
            lasting_faults_end_at_once, gives_up_after_tries, gives_up_after_time,
            progress_resets_the_count, partial_bytes_survive_failure,
            changed_object_is_read_anew_once, growing_object_is_read_as_far_as_it_goes,
            budget_is_never_passed, window_is_never_passed, throttling_halves_the_window,
            free_at_every_moment, buffer_outlives_a_read_that_hangs, hanging_read_is_given_up,
            short_answers_are_put_together, whole_object_begins_anew, local_files_are_fetched)
