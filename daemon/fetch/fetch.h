/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching: reads of ranges, each one tried again until it succeeds, is refused for good, or has
 * had no progress for too long; a window of requests in flight for each endpoint; and byte tickets,
 * reserved before a request is sent. Loop thread.
 *
 * The caller asks fetch_room() before it starts a job, so that the order in which jobs go out is
 * the caller's alone: nothing queues here but retries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/store/store.h"

struct fetch;
struct fetch_job;

#define FETCH_RETRY_TOKENS 500

struct fetch_options {
        uint64_t inflight_bytes_max; /* the budget of all tickets (default 256 MiB) */
        unsigned connections_max;    /* cap of every window; also bounded by the descriptor limit */
        unsigned window_start;       /* requests in flight to begin with; 0: as the store says */
        uint64_t requests_per_second_max, bytes_per_second_max; /* of each endpoint; 0: any */
        unsigned tries_max;  /* in a row without one byte of progress: 10 */
        uint64_t give_up_ns; /* likewise, since the first of them: 120 s */
};

struct fetch_result {
        struct store_failure failure; /* class STORE_OK: success; else the last try's */
        uint8_t *buffer;              /* the ticket's memory: stays valid until fetch_job_free() */
        /* contiguous from the job's offset; may be less than asked at the end of the object */
        uint64_t size_bytes;
        uint64_t total_bytes; /* of the object as the answer says; UINT64_MAX: unknown */
        char tag[64];
        unsigned tries;
};

struct fetch_counters {
        uint64_t reads; /* requests sent, retries included */
        uint64_t retries;
        uint64_t hedges, hedges_won; /* second requests for late answers; that came first */
        uint64_t bytes;              /* received */
        uint64_t inflight_bytes;     /* tickets held now */
        uint64_t inflight_bytes_peak;
        uint64_t request_ns; /* sum of the requests' times */
};

struct fetch_endpoint_status {
        const char *name;
        unsigned window, in_flight, waiting; /* waiting: for a back-off to end */
        /* of FETCH_RETRY_TOKENS: without enough of them every retry waits as long as it can */
        unsigned retry_tokens;
        uint64_t errors;
};

int fetch_new(uv_loop_t *loop, const struct fetch_options *options, struct fetch **ret_fetch);

/*
 * All jobs must be freed before. NULL is taken; returns NULL. on_closed follows when the last
 * handle is closed.
 */
void fetch_close(struct fetch *fetch, void (*on_closed)(void *userdata), void *userdata);

/*
 * True if a job of size bytes may start now: the endpoint's window has a place and the budget has
 * the ticket. A job larger than the whole budget may start when no other ticket is held (one at a
 * time), so that nothing waits for ever.
 */
bool fetch_room(struct fetch *fetch, struct store *store, uint64_t size);

/*
 * Called whenever a place in a window or bytes of the budget came free, and not from inside another
 * call of this module.
 */
void fetch_on_room(struct fetch *fetch, void (*on_room)(void *userdata), void *userdata);

/*
 * Starts a job: reserves the ticket (fetch_room() must have said yes), reads the range, which has no
 * buffer yet and is borrowed for the call. on_done is called once, never from inside. A short body or
 * a reset resumes at the byte reached. The job fails with STORE_CHANGED, and at once, if the object
 * has not the range's tag. -ENOMEM.
 */
int fetch_job_start(struct fetch *fetch, struct store *store, const struct store_read_range *range,
                    void (*on_done)(void *userdata, const struct fetch_result *result),
                    void *userdata, struct fetch_job **ret_job);

/*
 * Frees a finished job and its ticket, or cancels a running one without a callback. NULL is taken;
 * returns NULL.
 */
struct fetch_job *fetch_job_free(struct fetch_job *job);

const struct fetch_counters *fetch_counters(const struct fetch *fetch);

/* Requests at once that the store's endpoint takes now; 0: nothing was asked of it yet. */
unsigned fetch_window(const struct fetch *fetch, const struct store *store);

/* Fills up to most rows, returns how many endpoints there are. Names are borrowed. */
size_t fetch_endpoints(const struct fetch *fetch, struct fetch_endpoint_status *ret_rows,
                       size_t most);
