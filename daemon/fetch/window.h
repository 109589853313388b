/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests an endpoint may have in flight. It starts where the store says and doubles with
 * every round trip; after the endpoint has asked for less, the window is halved, once for all
 * requests that were on their way then, and grows slowly. A window that is not used up does not
 * grow. No clock: time is the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct window {
        unsigned size, max;
        unsigned in_flight;
        bool was_halved;        /* slow growth from now on */
        unsigned successes;     /* since it last grew */
        uint64_t sent;          /* requests so far: the serial of the last one */
        uint64_t halved_at;     /* value of sent when it was halved */
        uint64_t not_before_ns; /* Retry-After; 0: now */
};

void window_init(struct window *window, unsigned start, unsigned max);

bool window_has_place(const struct window *window, uint64_t now_ns);

/* One more request goes out. Returns its serial, for window_receive(). */
uint64_t window_send(struct window *window);

enum window_outcome {
        WINDOW_SUCCESS,   /* an answer, whatever it was */
        WINDOW_FAILURE,   /* no answer, or one that says nothing of the load */
        WINDOW_THROTTLED, /* fewer requests, please */
};

void window_receive(struct window *window, uint64_t serial, enum window_outcome outcome);

/* Nothing goes out before then. */
void window_wait_until(struct window *window, uint64_t time_ns);
