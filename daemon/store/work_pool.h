/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for the kernel in place of the loop: as many as slow storage needs, none that
 * nobody needs. The pool starts empty, has up to threads_min threads as soon as there is work for
 * them, grows on while work waits in its queue behind work that is slow, and shrinks when threads
 * find nothing to do. libuv's own pool has a fixed, small size that name resolution shares.
 *
 * Everything but run() is called on the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/core/list.h"

struct work_pool;

/* Embedded in what is worked on; the owner fills run, done and slow_ns. */
struct work {
        struct list node;
        void (*run)(struct work *work);  /* on a thread of the pool */
        void (*done)(struct work *work); /* on the loop thread afterwards; may free the work */
        /* a run() that takes longer waits for storage: more threads would help */
        uint64_t slow_ns;
        uint64_t queued_ns;
};

struct work_pool_options {
        unsigned threads_min, threads_max;
        uint64_t wait_ns; /* in the queue, from which on more threads are wanted */
        uint64_t idle_ns; /* without work, after which a thread above threads_min ends */
};

int work_pool_new(uv_loop_t *loop, const struct work_pool_options *options,
                  struct work_pool **ret_pool);

/*
 * Only without submitted work. Ends the threads; on_closed is called, and the pool freed, when none
 * is left.
 */
void work_pool_close(struct work_pool *pool, void (*on_closed)(void *userdata), void *userdata);

/* -errno if there is no thread and none can be made; the work is then not taken. */
int work_pool_submit(struct work_pool *pool, struct work *work);

/* Takes back work that no thread has begun; done() is not called. False: too late. */
bool work_pool_withdraw(struct work_pool *pool, struct work *work);

unsigned work_pool_threads(struct work_pool *pool);
