/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests an endpoint may have in flight. It starts where the store says and doubles with
 * every round trip; after the endpoint has asked for less, the window is halved, once for all
 * requests that were on their way then, and grows slowly. A window that is not used up does not
 * grow. Where answers begin half as late again as they did, and no more comes for it, requests only
 * wait for each other: the window shrinks by a tenth each round trip, until that is over or turns
 * out not to be its doing. No clock: time is the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_SAMPLES 64

/* What one round trip was like: as many answers as the window has places. */
struct window_round {
        unsigned size; /* places when it began; 0: it has not */
        unsigned answers;
        uint64_t begin_ns;
        bool was_full;
        uint64_t bytes;
        uint64_t sample_ns[WINDOW_SAMPLES]; /* of the times to the first byte, evenly spread */
        unsigned samples;
};

struct window {
        unsigned size, max;
        unsigned in_flight;
        bool grows_slowly;      /* since it had to shrink */
        unsigned successes;     /* since it last grew */
        uint64_t sent;          /* requests so far: the serial of the last one */
        uint64_t halved_at;     /* value of sent when it was halved */
        uint64_t not_before_ns; /* Retry-After; 0: now */
        struct window_round round;
        double last_rate;         /* bytes a nanosecond, in the last round; 0: none */
        uint64_t usual_median_ns; /* of times to the first byte; 0: not known */
        bool is_shrunk;           /* since the last round: it does not grow */
        bool rests;               /* the round after that says nothing yet */
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

/* An answer began after so long, and had so many bytes. After its window_receive(). */
void window_measure(struct window *window, uint64_t first_byte_ns, uint64_t bytes, uint64_t now_ns);

/* Nothing goes out before then. */
void window_wait_until(struct window *window, uint64_t time_ns);
