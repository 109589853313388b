/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mutex guards what goes in (tasks, granted segments) and what comes out (a bounded ring of
 * events). Nothing is allocated on the way: tasks are the owner's, events are slots, a decoder that
 * finds no free slot waits until the loop has drained them.
 */
#include "daemon/pipeline/decoder_pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "common/base.h"

#define EVENT_SLOTS 256u
#define BATCH 32u

struct decoder {
        struct decoder_pool *pool;
        pthread_t thread;
        uint32_t segment; /* RING_SEGMENT_NONE: none is open */
        uint64_t used_bytes;
};

struct decoder_pool {
        struct ring *ring;
        void (*on_segment)(void *userdata, const struct decoder_event *event);
        void (*on_batch)(void *userdata);
        void *userdata;
        void (*on_closed)(void *userdata);
        void *closed_userdata;
        uv_async_t async;
        struct decoder *decoders;
        /* running: tasks submitted and not done (loop thread's count) */
        unsigned decoder_count, running;

        pthread_mutex_t lock; /* guards all below */
        pthread_cond_t work;  /* a task, a segment, a free slot, or the end */
        struct list tasks;
        uint32_t *grants;
        unsigned grant_count;
        struct decoder_event *events;
        unsigned event_first, event_count;
        bool closing;
};

/* Waits for a task; NULL at the end. */
static struct decoder_task *pool_take_task(struct decoder_pool *pool) {
        struct decoder_task *task = NULL;

        pthread_mutex_lock(&pool->lock);
        while (!pool->closing && list_is_empty(&pool->tasks))
                pthread_cond_wait(&pool->work, &pool->lock);
        if (!pool->closing) {
                task = list_owner(pool->tasks.next, struct decoder_task, node);
                list_remove(&task->node);
        }
        pthread_mutex_unlock(&pool->lock);
        return task;
}

/* Puts an event into the next slot and wakes the loop. False at the end. */
static bool pool_post(struct decoder_pool *pool, const struct decoder_event *event) {
        bool posted;

        pthread_mutex_lock(&pool->lock);
        while (!pool->closing && pool->event_count == EVENT_SLOTS)
                pthread_cond_wait(&pool->work, &pool->lock);
        posted = !pool->closing;
        if (posted)
                pool->events[(pool->event_first + pool->event_count++) % EVENT_SLOTS] = *event;
        pthread_mutex_unlock(&pool->lock);
        if (posted)
                uv_async_send(&pool->async);
        return posted;
}

/* Waits for a granted segment; RING_SEGMENT_NONE at the end. */
static uint32_t pool_take_grant(struct decoder_pool *pool) {
        uint32_t segment = RING_SEGMENT_NONE;
        bool asked = false;

        pthread_mutex_lock(&pool->lock);
        while (!pool->closing && pool->grant_count == 0) {
                if (!asked)
                        uv_async_send(&pool->async);
                asked = true;
                pthread_cond_wait(&pool->work, &pool->lock);
        }
        if (!pool->closing)
                segment = pool->grants[--pool->grant_count];
        pthread_mutex_unlock(&pool->lock);
        return segment;
}

/* Opens a segment that has memory. False at the end. */
static bool decoder_open_segment(struct decoder *decoder) {
        while (decoder->segment == RING_SEGMENT_NONE) {
                uint32_t segment = pool_take_grant(decoder->pool);

                if (segment == RING_SEGMENT_NONE)
                        return false;
                if (ring_segment_prepare(decoder->pool->ring, segment) < 0) {
                        if (!pool_post(decoder->pool,
                                       &(struct decoder_event){ .type = DECODER_SEGMENT_ABSENT,
                                                                .segment = segment }))
                                return false;
                        continue;
                }
                decoder->segment = segment;
                decoder->used_bytes = 0;
        }
        return true;
}

static bool decoder_close_segment(struct decoder *decoder) {
        struct decoder_event event = { .type = DECODER_SEGMENT_FULL, .segment = decoder->segment };

        decoder->segment = RING_SEGMENT_NONE;
        return pool_post(decoder->pool, &event);
}

/*
 * Too little room for the task's next extent to be worth beginning: a scrap of an extent costs more
 * than the scrap of memory.
 */
static bool decoder_room_is_scrap(const struct decoder *decoder, const struct decoder_task *task) {
        uint64_t room = task->input.segment_bytes - decoder->used_bytes;
        uint64_t left = task->input.bytes_offset + task->input.size_bytes -
                        task->input.begin.offset;

        if (decoder->used_bytes == 0)
                return false;
        return room < task->room_min_bytes ||
               (room < task->input.segment_bytes / 16 && room < 2 * left);
}

static bool task_pauses(const struct decoder_task *task, uint64_t made_bytes) {
        return task->pause_bytes > 0 && made_bytes >= task->pause_bytes &&
               (task->input.begin.index > 0 || !task->pause_within_record);
}

/* Decodes until the bytes are used up, or it is to pause. False at the end of the pool. */
static bool decoder_run(struct decoder *decoder, struct decoder_task *task) {
        struct block_input *input = &task->input;
        uint64_t made_bytes = 0;

        for (;;) {
                struct decoder_event event = { .type = DECODER_EXTENT, .task = task };

                if (decoder->segment != RING_SEGMENT_NONE && decoder_room_is_scrap(decoder, task) &&
                    !decoder_close_segment(decoder))
                        return false;
                if (!decoder_open_segment(decoder))
                        return false;
                event.segment = decoder->segment;
                event.offset_bytes = (uint32_t)decoder->used_bytes;
                task->result = block_decode(
                        input,
                        ring_segment_memory(decoder->pool->ring, decoder->segment) +
                                decoder->used_bytes,
                        input->segment_bytes - decoder->used_bytes, &event.output);
                task->need_bytes = event.output.need_bytes;
                task->doubted = event.output.doubted;
                input->begin = event.output.next;
                input->search_offset = event.output.search_offset;
                input->search_damage = event.output.search_damage;
                input->resume = event.output.resume;
                MUST(task->result != STAGE_FULL || event.output.extent_bytes > 0 ||
                     decoder->used_bytes > 0);
                decoder->used_bytes += align_up(event.output.extent_bytes, EXTENT_ALIGNMENT);
                made_bytes += event.output.extent_bytes;
                if ((event.output.extent_bytes > 0 || event.output.tail.reason) &&
                    !pool_post(decoder->pool, &event))
                        return false;
                if (task->result != STAGE_FULL)
                        return true;
                if (!decoder_close_segment(decoder))
                        return false;
                if (task_pauses(task, made_bytes))
                        return true;
        }
}

static void *decoder_thread(void *argument) {
        struct decoder *decoder = argument;
        struct decoder_task *task;

        while ((task = pool_take_task(decoder->pool)))
                if (!decoder_run(decoder, task) ||
                    !pool_post(decoder->pool,
                               &(struct decoder_event){ .type = DECODER_DONE, .task = task }))
                        break;
        return NULL;
}

/* Moves a batch out, so that on_event runs without the lock. */
static unsigned pool_drain(struct decoder_pool *pool, struct decoder_event *ret_events) {
        unsigned count = 0;

        pthread_mutex_lock(&pool->lock);
        while (count < BATCH && pool->event_count > 0) {
                ret_events[count++] = pool->events[pool->event_first];
                pool->event_first = (pool->event_first + 1) % EVENT_SLOTS;
                pool->event_count--;
        }
        if (count > 0)
                pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->lock);
        return count;
}

static void pool_on_async(uv_async_t *async) {
        struct decoder_pool *pool = async->data;
        struct decoder_event events[BATCH];
        unsigned count;

        do {
                count = pool_drain(pool, events);
                for (unsigned i = 0; i < count; i++) {
                        if (events[i].type == DECODER_DONE)
                                pool->running--;
                        if (events[i].task)
                                events[i].task->on_event(events[i].task, &events[i]);
                        else
                                pool->on_segment(pool->userdata, &events[i]);
                }
                pool->on_batch(pool->userdata);
        } while (count == BATCH);
}

static void pool_free(struct decoder_pool *pool) {
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->lock);
        free(pool->decoders);
        free(pool->grants);
        free(pool->events);
        free(pool);
}

static void pool_on_closed(uv_handle_t *handle) {
        struct decoder_pool *pool = handle->data;
        void (*on_closed)(void *userdata) = pool->on_closed;
        void *userdata = pool->closed_userdata;

        pool_free(pool);
        if (on_closed)
                on_closed(userdata);
}

/* Signals are the loop thread's. */
static int pool_start_threads(struct decoder_pool *pool, unsigned threads) {
        sigset_t all, before;
        int r = 0;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (r == 0 && pool->decoder_count < threads) {
                struct decoder *decoder = &pool->decoders[pool->decoder_count];

                *decoder = (struct decoder){ .pool = pool, .segment = RING_SEGMENT_NONE };
                r = -pthread_create(&decoder->thread, NULL, decoder_thread, decoder);
                if (r == 0)
                        pool->decoder_count++;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

int decoder_pool_new(uv_loop_t *loop, struct ring *ring, unsigned threads,
                     void (*on_segment)(void *userdata, const struct decoder_event *event),
                     void (*on_batch)(void *userdata), void *userdata,
                     struct decoder_pool **ret_pool) {
        struct decoder_pool *pool = calloc(1, sizeof(*pool));
        int r = -ENOMEM;

        if (!pool)
                return r;
        pthread_mutex_init(&pool->lock, NULL);
        pthread_cond_init(&pool->work, NULL);
        list_init(&pool->tasks);
        pool->ring = ring;
        pool->on_segment = on_segment;
        pool->on_batch = on_batch;
        pool->userdata = userdata;
        pool->decoders = calloc(threads, sizeof(pool->decoders[0]));
        pool->grants = calloc(threads, sizeof(pool->grants[0]));
        pool->events = calloc(EVENT_SLOTS, sizeof(pool->events[0]));
        if (pool->decoders && pool->grants && pool->events)
                r = uv_async_init(loop, &pool->async, pool_on_async);
        if (r < 0) {
                pool_free(pool);
                return r;
        }
        pool->async.data = pool;
        r = pool_start_threads(pool, threads);
        if (r < 0) {
                decoder_pool_close(pool, NULL, NULL);
                return r;
        }
        *ret_pool = pool;
        return 0;
}

void decoder_pool_close(struct decoder_pool *pool, void (*on_closed)(void *userdata),
                        void *userdata) {
        pthread_mutex_lock(&pool->lock);
        pool->closing = true;
        pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->lock);
        for (unsigned i = 0; i < pool->decoder_count; i++)
                pthread_join(pool->decoders[i].thread, NULL);
        pool->on_closed = on_closed;
        pool->closed_userdata = userdata;
        uv_close((uv_handle_t *)&pool->async, pool_on_closed);
}

void decoder_pool_submit(struct decoder_pool *pool, struct decoder_task *task) {
        pool->running++;
        pthread_mutex_lock(&pool->lock);
        list_append(&pool->tasks, &task->node);
        pthread_cond_broadcast(&pool->work); /* who waits for a segment waits there, too */
        pthread_mutex_unlock(&pool->lock);
}

unsigned decoder_pool_wants(const struct decoder_pool *pool) {
        struct decoder_pool *p = (struct decoder_pool *)(uintptr_t)pool;
        unsigned wants;

        if (pool->running == 0)
                return 0;
        pthread_mutex_lock(&p->lock);
        wants = pool->decoder_count - pool->grant_count;
        pthread_mutex_unlock(&p->lock);
        return wants;
}

void decoder_pool_grant(struct decoder_pool *pool, uint32_t segment) {
        pthread_mutex_lock(&pool->lock);
        MUST(pool->grant_count < pool->decoder_count);
        pool->grants[pool->grant_count++] = segment;
        pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->lock);
}

bool decoder_pool_has_idle(const struct decoder_pool *pool) {
        return pool->running < pool->decoder_count;
}

unsigned decoder_pool_threads(const struct decoder_pool *pool) {
        return pool->decoder_count;
}
