/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder threads and the one hand-over between them and the loop thread. Tasks and segments go
 * in, events come out. A decoder fills one open segment front to back; when it is full it takes the
 * next one that the loop has granted. The loop keeps a stock of granted segments, so that a decoder
 * that has begun does not wait for a reader, only (rarely) for the loop.
 *
 * All functions are for the loop thread. A task belongs to the pool from decoder_pool_submit()
 * until its DECODER_DONE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/extent_format.h"
#include "daemon/core/list.h"
#include "daemon/pipeline/block_decode.h"
#include "daemon/publish/ring.h"

struct decoder_pool;
struct decoder_event;

struct decoder_task {
        struct list node;
        struct block_input input; /* begin and search_offset move on while it runs */
        /* do not begin an extent in less room than this (a block fetched again must fit whole) */
        uint64_t room_min_bytes;
        /*
         * Not 0: when its extents have that many bytes, and the next one would take another
         * segment, it is done with the result STAGE_FULL; within_record: only where the next one
         * begins inside of a TFRecord.
         */
        uint64_t pause_bytes;
        bool pause_within_record;
        int result;          /* of the last block_decode(); valid when done */
        uint64_t need_bytes; /* likewise */
        enum damage doubted; /* likewise */
        /* DECODER_EXTENT and DECODER_DONE */
        void (*on_event)(struct decoder_task *task, const struct decoder_event *event);
        void *owner;
};

enum decoder_event_type {
        DECODER_EXTENT,         /* output describes it; it lies at offset_bytes of segment */
        DECODER_SEGMENT_FULL,   /* the decoder is done with the segment */
        DECODER_SEGMENT_ABSENT, /* there is no memory for the segment */
        DECODER_DONE,           /* the task is the owner's again */
};

struct decoder_event {
        enum decoder_event_type type;
        struct decoder_task *task;
        uint32_t segment;
        uint32_t offset_bytes;
        struct block_output output;
};

/*
 * Starts the threads. A task's on_event is called on the loop thread, in the order in which it made
 * its events; on_segment likewise for those of segments; on_batch after a batch of them. -errno of
 * the thread or the handle that could not be made.
 */
int decoder_pool_new(uv_loop_t *loop, struct ring *ring, unsigned threads,
                     void (*on_segment)(void *userdata, const struct decoder_event *event),
                     void (*on_batch)(void *userdata), void *userdata,
                     struct decoder_pool **ret_pool);

/*
 * Ends the threads when each has finished the extent that it is at; tasks that are not done are
 * forgotten.
 */
void decoder_pool_close(struct decoder_pool *pool, void (*on_closed)(void *userdata),
                        void *userdata);

void decoder_pool_submit(struct decoder_pool *pool, struct decoder_task *task);

/* How many more segments the stock should have: 0 while no task is there that could need one. */
unsigned decoder_pool_wants(const struct decoder_pool *pool);
void decoder_pool_grant(struct decoder_pool *pool, uint32_t segment);

/* A decoder has nothing to do. */
bool decoder_pool_has_idle(const struct decoder_pool *pool);

unsigned decoder_pool_threads(const struct decoder_pool *pool);
