/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a source: lists it, compares the listing with the catalog, and says what is new, grown,
 * replaced or gone. A listing that fails changes nothing; it is tried again with back-off. Loop
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/discover/catalog.h"
#include "daemon/discover/poll.h"
#include "daemon/discover/row_change.h"

struct watch;

struct watch_events {
        /*
         * The file's row in the catalog is the new one already. -ENOMEM: the listing has failed,
         * and the next one tells it again.
         */
        int (*file_changed)(void *userdata, struct catalog_file *file, enum watch_change change);
        /*
         * Two complete listings did not have it. It stays in the catalog until the receiver removes
         * it.
         */
        void (*file_gone)(void *userdata, struct catalog_file *file);
        /* A listing ended; the source's state and failure say how. */
        void (*listed)(void *userdata, struct catalog_source *source, bool complete);
};

enum watch_interest {
        WATCH_NOBODY,   /* nobody follows */
        WATCH_FOLLOWED, /* a client follows */
};

struct watch_options {
        int64_t poll_ns; /* interval of polls, or POLL_* (poll.h) */
        /* to the source's endpoint: then there are no more polls until midnight UTC; 0: no limit */
        uint64_t requests_per_day_max;
        int64_t (*utc_s)(void); /* seconds since 1970; NULL: the system's clock */
        const char *remember; /* directory for what is known of sources; NULL: forget (recall.h) */
        /* requests at once that the source's endpoint takes now; NULL: nobody knows */
        unsigned (*window)(void *userdata, const struct catalog_source *source);
};

/* Lists at once, unless poll_ns is POLL_ON_DEMAND: then when somebody asks. -ENOMEM. */
int watch_new(uv_loop_t *loop, struct catalog_source *source, const struct watch_options *options,
              const struct watch_events *events, void *userdata, struct watch **ret_watch);

/*
 * Somebody asks for something that depends on storage: polls go on, or, if they rest, there is one
 * listing now. What was asked for is answered from memory.
 */
void watch_ask(struct watch *watch);

enum watch_polling {
        WATCH_POLLING_ON,
        WATCH_POLLING_RESTS,   /* until somebody asks */
        WATCH_POLLING_STOPPED, /* too many requests today */
        WATCH_POLLING_OFF,     /* as configured */
};

enum watch_polling watch_polling(const struct watch *watch);
const char *watch_polling_name(enum watch_polling polling); /* "on", "resting", "stopped", "off" */

/* Milliseconds until it looks by itself; UINT64_MAX: it does not. */
uint64_t watch_wait_ms(const struct watch *watch);

/*
 * Lists as soon as it can: a listing that begins after this call is complete, or has failed, when
 * `listed` comes for it.
 */
void watch_now(struct watch *watch);

/* The same, and everything is looked at, not only what is live. */
void watch_reload(struct watch *watch);

/*
 * Number of the listing that a call of watch_now() at this moment would lead to: compare with the
 * source's attempts.
 */
uint64_t watch_next_attempt(const struct watch *watch);

/* True: the last complete listing was the first one without some file; the next one decides. */
bool watch_misses_files(const struct watch *watch);

/*
 * True while the first listing is under way and gives the files in order: what it has given of a run
 * is the beginning of what there is.
 */
bool watch_begins_in_order(const struct watch *watch);

void watch_set_interest(struct watch *watch, enum watch_interest interest);

/* True while the store tells of changes beside the listings: somebody follows, and it can. */
bool watch_hears(const struct watch *watch);

void watch_close(struct watch *watch, void (*on_closed)(void *userdata), void *userdata);
