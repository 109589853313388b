/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/work_pool.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "common/base.h"
#include "tests/unit/runner.h"

static uv_loop_t loop;
static struct work_pool *pool;
static sem_t gate;
static atomic_uint running;
static unsigned done_count;

struct item {
        struct work work;
        bool ran;
};

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

static void begin(unsigned threads_min, unsigned threads_max, uint64_t wait_ns, uint64_t idle_ns) {
        const struct work_pool_options options = { threads_min, threads_max, wait_ns, idle_ns };

        ck_assert_int_eq(uv_loop_init(&loop), 0);
        ck_assert_int_eq(sem_init(&gate, 0, 0), 0);
        ck_assert_int_eq(work_pool_new(&loop, &options, &pool), 0);
}

static void end(void) {
        bool closed = false;

        work_pool_close(pool, on_closed, &closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
        sem_destroy(&gate);
}

static void run_quick(struct work *work) {
        list_owner(work, struct item, work)->ran = true;
}

static void run_blocked(struct work *work) {
        atomic_fetch_add(&running, 1);
        while (sem_wait(&gate) < 0)
                ;
        list_owner(work, struct item, work)->ran = true;
}

static void on_done(struct work *work) {
        ck_assert(list_owner(work, struct item, work)->ran);
        done_count++;
}

START_TEST(runs_all) {
        static struct item items[1000];

        begin(4, 16, 0, 1000000000);
        ck_assert_uint_eq(work_pool_threads(pool), 0);
        for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
                items[i].work = (struct work){ .run = run_quick, .done = on_done };
                ck_assert_int_eq(work_pool_submit(pool, &items[i].work), 0);
        }
        while (done_count < ARRAY_SIZE(items))
                uv_run(&loop, UV_RUN_ONCE);
        ck_assert_uint_le(work_pool_threads(pool), 16);
        end();
}
END_TEST

/* Work that blocks needs a thread each, up to the most there may be. */
START_TEST(grows_while_work_waits) {
        static struct item items[64];

        begin(2, 8, 0, 1000000000);
        for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
                items[i].work = (struct work){ .run = run_blocked, .done = on_done };
                ck_assert_int_eq(work_pool_submit(pool, &items[i].work), 0);
        }
        while (atomic_load(&running) < 8)
                uv_run(&loop, UV_RUN_NOWAIT);
        ck_assert_uint_eq(work_pool_threads(pool), 8);
        for (size_t i = 0; i < ARRAY_SIZE(items); i++)
                sem_post(&gate);
        while (done_count < ARRAY_SIZE(items))
                uv_run(&loop, UV_RUN_ONCE);
        end();
}
END_TEST

START_TEST(shrinks_when_idle) {
        static struct item items[64];

        begin(2, 8, 0, 1);
        for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
                items[i].work = (struct work){ .run = run_blocked, .done = on_done };
                ck_assert_int_eq(work_pool_submit(pool, &items[i].work), 0);
                sem_post(&gate);
        }
        while (done_count < ARRAY_SIZE(items))
                uv_run(&loop, UV_RUN_ONCE);
        while (work_pool_threads(pool) > 2)
                uv_sleep(1);
        end();
}
END_TEST

START_TEST(withdraws_what_has_not_begun) {
        static struct item first, second;

        begin(1, 1, 0, 1000000000);
        first.work = second.work = (struct work){ .run = run_blocked, .done = on_done };
        ck_assert_int_eq(work_pool_submit(pool, &first.work), 0);
        ck_assert_int_eq(work_pool_submit(pool, &second.work), 0);
        while (atomic_load(&running) < 1)
                uv_sleep(1);
        ck_assert(!work_pool_withdraw(pool, &first.work));
        ck_assert(work_pool_withdraw(pool, &second.work));
        sem_post(&gate);
        while (done_count < 1)
                uv_run(&loop, UV_RUN_ONCE);
        ck_assert(!second.ran);
        end();
}
END_TEST

START_TEST(closes_unused) {
        begin(4, 16, 0, 1);
        end();
}
END_TEST

RUNNER_MAIN("store/work_pool", runs_all, grows_while_work_waits, shrinks_when_idle,
            withdraws_what_has_not_begun, closes_unused)
