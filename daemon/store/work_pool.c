/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock over two queues: work to be run, and work that is done and waits for the loop. A thread
 * that ends joins nobody: it is detached, and the last thing it does with the pool is to count
 * itself out under the lock and wake the loop.
 */
#include "daemon/store/work_pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "common/base.h"

#define WORK_POOL_STACK_BYTES (256u << 10)

struct work_pool {
        struct work_pool_options options;
        uv_async_t wake; /* something is in done, or the last thread ended */
        void (*on_closed)(void *userdata);
        void *userdata;

        pthread_mutex_t lock;
        pthread_cond_t queued; /* work, or closing */
        struct list queue, done;
        unsigned threads, idle;
        size_t waiting; /* in queue */
        bool closing;
};

static int start_thread(struct work_pool *pool);

/*
 * With the lock. Whether the work at the head of the queue has waited so long that one more thread
 * is wanted.
 */
static bool is_crowded(const struct work_pool *pool, uint64_t now_ns) {
        const struct work *head;

        if (pool->waiting <= pool->idle || pool->threads >= pool->options.threads_max)
                return false;
        head = list_owner(pool->queue.next, struct work, node);
        return pool->threads < pool->options.threads_min ||
               now_ns - head->queued_ns > pool->options.wait_ns;
}

/* With the lock. Waits for work; NULL if this thread is to end. */
static struct work *next_work(struct work_pool *pool) {
        struct work *work;

        while (list_is_empty(&pool->queue)) {
                bool surplus = pool->threads > pool->options.threads_min;
                int r = 0;

                if (pool->closing)
                        return NULL;
                pool->idle++;
                if (surplus) {
                        uint64_t until_ns = uv_hrtime() + pool->options.idle_ns;
                        struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
                                                  .tv_nsec = (long)(until_ns % 1000000000) };

                        r = pthread_cond_timedwait(&pool->queued, &pool->lock, &until);
                } else {
                        r = pthread_cond_wait(&pool->queued, &pool->lock);
                }
                pool->idle--;
                if (r == ETIMEDOUT && list_is_empty(&pool->queue) &&
                    pool->threads > pool->options.threads_min)
                        return NULL;
        }
        work = list_owner(pool->queue.next, struct work, node);
        list_remove(&work->node);
        pool->waiting--;
        return work;
}

static void *thread_main(void *userdata) {
        struct work_pool *pool = userdata;
        struct work *work;

        pthread_mutex_lock(&pool->lock);
        while ((work = next_work(pool))) {
                uint64_t begin_ns, end_ns;

                pthread_mutex_unlock(&pool->lock);
                begin_ns = uv_hrtime();
                work->run(work);
                end_ns = uv_hrtime();
                pthread_mutex_lock(&pool->lock);
                /*
                 * If it did not wait for storage, it used a core, and more threads do not make more
                 * cores.
                 */
                if (end_ns - begin_ns > work->slow_ns && is_crowded(pool, end_ns))
                        start_thread(pool);
                if (list_is_empty(&pool->done))
                        uv_async_send(&pool->wake);
                list_append(&pool->done, &work->node);
        }
        pool->threads--;
        if (pool->closing && pool->threads == 0)
                uv_async_send(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
        return NULL;
}

/* With the lock. */
static int start_thread(struct work_pool *pool) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r;

        r = pthread_attr_init(&attributes);
        if (r)
                return -r;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, WORK_POOL_STACK_BYTES);
        sigfillset(&all); /* signals are the loop thread's */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, &attributes, thread_main, pool);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        if (r == 0)
                pool->threads++;
        return -r;
}

static void on_wake_closed(uv_handle_t *handle) {
        struct work_pool *pool = handle->data;

        /* The last thread may still hold the lock that it counted itself out under. */
        pthread_mutex_lock(&pool->lock);
        pthread_mutex_unlock(&pool->lock);
        pthread_cond_destroy(&pool->queued);
        pthread_mutex_destroy(&pool->lock);
        pool->on_closed(pool->userdata);
        free(pool);
}

static void on_wake(uv_async_t *wake) {
        struct work_pool *pool = wake->data;
        struct list done;
        bool ended;

        list_init(&done);
        pthread_mutex_lock(&pool->lock);
        while (!list_is_empty(&pool->done)) {
                struct list *node = pool->done.next;

                list_remove(node);
                list_append(&done, node);
        }
        ended = pool->closing && pool->threads == 0;
        pthread_mutex_unlock(&pool->lock);
        while (!list_is_empty(&done)) {
                struct work *work = list_owner(done.next, struct work, node);

                list_remove(&work->node);
                work->done(work);
        }
        if (ended && !uv_is_closing((uv_handle_t *)wake))
                uv_close((uv_handle_t *)wake, on_wake_closed);
}

int work_pool_new(uv_loop_t *loop, const struct work_pool_options *options,
                  struct work_pool **ret_pool) {
        struct work_pool *pool = calloc(1, sizeof(*pool));
        pthread_condattr_t attributes;
        int r;

        if (!pool)
                return -ENOMEM;
        pool->options = *options;
        list_init(&pool->queue);
        list_init(&pool->done);
        r = uv_async_init(loop, &pool->wake, on_wake);
        if (r < 0) {
                free(pool);
                return r;
        }
        pool->wake.data = pool;
        pthread_mutex_init(&pool->lock, NULL);
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* uv_hrtime()'s */
        pthread_cond_init(&pool->queued, &attributes);
        pthread_condattr_destroy(&attributes);
        *ret_pool = pool;
        return 0;
}

void work_pool_close(struct work_pool *pool, void (*on_closed)(void *userdata), void *userdata) {
        pool->on_closed = on_closed;
        pool->userdata = userdata;
        pthread_mutex_lock(&pool->lock);
        MUST(list_is_empty(&pool->queue));
        pool->closing = true;
        pthread_cond_broadcast(&pool->queued);
        pthread_mutex_unlock(&pool->lock);
        uv_async_send(&pool->wake); /* there may be no thread to do it */
}

int work_pool_submit(struct work_pool *pool, struct work *work) {
        int r = 0;

        pthread_mutex_lock(&pool->lock);
        MUST(!pool->closing);
        work->queued_ns = uv_hrtime();
        list_append(&pool->queue, &work->node);
        pool->waiting++;
        if (is_crowded(pool, work->queued_ns))
                r = start_thread(pool);
        if (r && pool->threads == 0) {
                list_remove(&work->node);
                pool->waiting--;
        } else {
                r = 0; /* fewer threads than wanted will do */
        }
        pthread_cond_signal(&pool->queued);
        pthread_mutex_unlock(&pool->lock);
        return r;
}

bool work_pool_withdraw(struct work_pool *pool, struct work *work) {
        bool found = false;

        pthread_mutex_lock(&pool->lock);
        for (struct list *node = pool->queue.next; node != &pool->queue && !found;
             node = node->next)
                found = node == &work->node;
        if (found) {
                list_remove(&work->node);
                pool->waiting--;
        }
        pthread_mutex_unlock(&pool->lock);
        return found;
}

unsigned work_pool_threads(struct work_pool *pool) {
        unsigned threads;

        pthread_mutex_lock(&pool->lock);
        threads = pool->threads;
        pthread_mutex_unlock(&pool->lock);
        return threads;
}
