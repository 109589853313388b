/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the pipeline share: one struct, made and unmade by pipeline.c. Loop thread. */
#pragma once

#include "daemon/core/list.h"
#include "daemon/discover/watch.h"
#include "daemon/pipeline/decoder_pool.h"
#include "daemon/pipeline/pipeline.h"

struct pipeline {
        uv_loop_t *loop;
        struct pipeline_options options;
        struct catalog catalog;
        struct ring *ring;
        struct fetch *fetch;
        struct decoder_pool *pool;
        uint32_t segment_count;
        /*
         * fewer, when the machine has no memory for more: what is shared out is reckoned of these
         */
        uint32_t segments_usable;
        uint64_t segment_bytes;

        struct list *segment_blocks; /* for each segment: the resident blocks in it */
        /*
         * for each segment: blocks in it that stand in some reader's read-ahead, as of ahead_marked
         */
        uint32_t *segment_ahead;
        bool ahead_marked; /* in this pass */
        /* for each segment: blocks in it that some reader still wants, once for each reader */
        uint32_t *segment_need;
        struct list readers; /* of struct reader */
        unsigned reader_count, follower_count;
        /* feeds with bytes in storage that nobody has asked for yet, in order of arrival */
        struct list hungry;
        struct list unread; /* files without a feed that may get one, likewise (unread.h) */
        struct list failed; /* feeds that are tried again later */
        struct list
                archived; /* likewise, an hour after the last try: in the order of their tries */
        struct list removals; /* sources that are being removed (source_removal.h) */
        struct list requests; /* reload, wait_loaded, payload, damage */
        unsigned waiting;     /* of them: wait_loaded, which make demand */
        uint64_t pass_count;
        uint64_t serial;          /* of the last block that was published */
        uint64_t committed_bytes; /* of the ring: what jobs that are issued will fill */
        uint64_t trimmed_at;      /* files and extents when the heap was trimmed last */

        uv_idle_t pass; /* runs once in the next turn of the loop when something was touched */
        uv_timer_t retry;
        struct list ahead;     /* parts that are decoded before their turn (part_ahead.h) */
        uv_timer_t reread;     /* looks at: */
        struct list rereading; /* feeds that wait for bytes to be read again (reread.h) */
        uv_timer_t hold;       /* looks at: */
        struct list holding;   /* feeds that hold tickets (hold.h) */
        const struct pipeline_events *events;
        void *events_userdata;
        struct pipeline_counters counters;

        bool closing;
        unsigned open_parts; /* that still have to close */
        void (*on_closed)(void *userdata);
        void *closed_userdata;
};

/* Something changed that may let a reader or a job go on: looks at all of them, soon. */
void pipeline_touch(struct pipeline *pipeline);

/* A feed has failed: it is looked at again when its time has come. */
void pipeline_watch_failed(struct pipeline *pipeline);

/* Tries those again whose time has come. */
void pipeline_retry_due(struct pipeline *pipeline);

/* The clock of tries that failed. */
static inline uint64_t pipeline_now_ns(const struct pipeline *pipeline) {
        return pipeline->options.now_ns ? pipeline->options.now_ns() : uv_hrtime();
}

/* Something that kept the pipeline from closing is closed, and no longer counted in open_parts. */
void pipeline_part_closed(struct pipeline *pipeline);

#define PIPELINE_TELL(pipeline, event, ...) \
        do { \
                if ((pipeline)->events && (pipeline)->events->event) \
                        (pipeline)->events->event((pipeline)->events_userdata, __VA_ARGS__); \
        } while (0)
