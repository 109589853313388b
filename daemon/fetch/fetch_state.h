/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share of a fetch and its jobs. Nobody else looks at it. */
#pragma once

#include "daemon/core/budget.h"
#include "daemon/core/list.h"
#include "daemon/fetch/buffers.h"
#include "daemon/fetch/fetch.h"
#include "daemon/fetch/hedge_budget.h"
#include "daemon/fetch/rate.h"
#include "daemon/fetch/window.h"

struct endpoint {
        struct list node;
        char *name;
        struct window window;
        struct list ready; /* jobs */
        unsigned waiting;  /* for their back-off to end */
        uint64_t errors;
        struct hedge_budget hedging;
        struct rate requests, bytes;
        unsigned retry_tokens; /* each retry takes some, each success gives one back */
};

struct fetch {
        uv_loop_t *loop;
        struct fetch_options options;
        struct budget budget;
        struct buffers buffers;
        struct fetch_counters counters;
        struct list endpoints;
        struct list reading; /* jobs, those that are only released by their store included */
        struct list waiting; /* jobs */
        size_t jobs;
        uint64_t random;
        void (*on_room)(void *userdata);
        void *on_room_userdata;
        uv_idle_t room;   /* active once: on_room is called from the loop */
        uv_timer_t due;   /* the end of the next back-off */
        uv_timer_t watch; /* for reads that hang, while any is under way */
        uv_timer_t late;  /* for answers that are late, while any may be (hedge.h) */
        unsigned open_handles;
        bool closing, handles_closing;
        void (*on_closed)(void *userdata);
        void *userdata;
};

enum job_state { JOB_READING, JOB_WAITING, JOB_READY, JOB_DONE, JOB_ABANDONED };

struct fetch_job {
        struct list node; /* in the list of its state */
        struct fetch *fetch;
        struct endpoint *endpoint;
        struct store *store;
        struct store_read *read; /* NULL: none */
        enum job_state state;
        bool held;      /* the store still has the buffer of a read that was cancelled */
        bool restarted; /* the object changed once already */
        bool whole;     /* the server ignores ranges: nothing to resume */
        uint8_t *buffer;
        uint64_t offset, size_bytes, reached_bytes, total_bytes;
        char tag[64];
        char guard[64]; /* the version that is wanted; "": any */
        unsigned tries;
        unsigned failures; /* in a row without progress */
        uint64_t first_failure_ns, sent_ns, due_ns, ready_ns;
        uint64_t serial; /* of the window */
        /* a second request for the same bytes; NULL: none (hedge.h) */
        struct store_read *hedge;
        uint8_t *hedge_buffer;
        uint64_t hedge_bytes, hedge_serial;
        unsigned hedges; /* of this try */
        void (*on_done)(void *userdata, const struct fetch_result *result);
        void *userdata;
        size_t name_size;
        char name[];
};

/* Tells whoever waits that a place or bytes came free, from the loop. */
void fetch_tell_room(struct fetch *fetch);

/* The job's read has been answered, by itself or by its hedge, and is in no list. */
void fetch_job_answered(struct fetch_job *job, const struct store_read_result *result);

/*
 * False: the window is full, or the endpoint is not to be asked before some time has gone by; the
 * due timer brings us back then.
 */
bool fetch_has_place(struct fetch *fetch, struct endpoint *endpoint, uint64_t now_ns);

/* What a window makes of an answer. */
enum window_outcome fetch_outcome_of(enum store_failure_class class);

/* Counts what an endpoint has failed at, and waits as long as it says. */
void fetch_note_failure(struct fetch *fetch, struct endpoint *endpoint,
                        const struct store_failure *failure);

/* Takes a read away from a store that gives its buffer back at once. */
void fetch_job_drop_read(struct fetch_job *job);

/* Sends the same read once more in the place of one that was dropped. -errno of the store. */
int fetch_job_send_again(struct fetch_job *job);
