/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to look at storage again: how long to wait until the next poll, by the configuration, by
 * what has changed lately, by who looks, and by what a poll costs. Pure: it has no clock, but adds
 * up the waits that it has given.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Instead of an interval in nanoseconds. */
#define POLL_AUTO 0
#define POLL_NEVER (-1)
#define POLL_ON_DEMAND (-2)

#define POLL_REST UINT64_MAX /* no poll until somebody asks */

struct poll {
        int64_t interval_ns; /* or POLL_AUTO ... */
        bool followed;       /* a client follows */
        uint64_t quiet_ms;   /* since storage changed last */
        uint64_t unasked_ms; /* since a client followed or asked last */
        uint64_t wait_ms;    /* the last one */
        uint64_t nano_usd;   /* what a listing costs, in 10^-9 dollars */
};

/* It counts as asked for now. */
void poll_init(struct poll *poll, int64_t interval_ns);

/* Somebody asked for something that depends on storage. */
void poll_ask(struct poll *poll);

/* Storage changed that long ago. */
void poll_changed(struct poll *poll, uint64_t age_ms);

/*
 * How long to wait after a complete listing, or POLL_REST. auto: 1 to 3 s while a client follows
 * and something changed within 5 minutes (longer where that would cost more than a quarter dollar a
 * day), then half as long again each time up to 60 s; 60 s while nobody follows, and nothing 10
 * minutes after the last request.
 */
uint64_t poll_next_ms(struct poll *poll);

/*
 * The same after a failure, of which the back-off is given: POLL_REST 10 minutes after the last
 * request, unless polls go on for ever.
 */
uint64_t poll_retry_ms(struct poll *poll, uint64_t wait_ms);
