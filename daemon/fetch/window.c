/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/window.h"

#include <stdlib.h>

#include "common/base.h"

#define WINDOW_SLOW_GROWTH 8   /* successes for each place more, after it was halved */
#define WINDOW_ROUND_LEAST 32u /* answers: fewer say nothing of a median */

void window_init(struct window *window, unsigned start, unsigned max) {
        *window = (struct window){ .max = (unsigned)max_u64(1, max) };
        window->size = (unsigned)max_u64(1, min_u64(start, window->max));
}

bool window_has_place(const struct window *window, uint64_t now_ns) {
        return window->in_flight < window->size && now_ns >= window->not_before_ns;
}

uint64_t window_send(struct window *window) {
        window->in_flight++;
        return ++window->sent;
}

/* One more for each success while it is full makes twice as many in each round trip. */
static void grow(struct window *window, bool was_full) {
        if (!was_full || window->size >= window->max || window->is_shrunk)
                return;
        if (++window->successes < (window->grows_slowly ? WINDOW_SLOW_GROWTH : 1))
                return;
        window->successes = 0;
        window->size++;
}

static void halve(struct window *window, uint64_t serial) {
        if (serial <= window->halved_at)
                return; /* it was sent before the window was halved */
        window->size = (unsigned)max_u64(1, window->size / 2);
        window->halved_at = window->sent;
        window->grows_slowly = true;
        window->successes = 0;
}

void window_receive(struct window *window, uint64_t serial, enum window_outcome outcome) {
        /*
         * Half is enough: the places that came free in this turn of the loop are not filled again
         * yet.
         */
        bool was_full = window->in_flight >= window->size - window->size / 2;

        MUST(window->in_flight > 0);
        window->in_flight--;
        window->round.was_full |= was_full;
        if (window->in_flight == 0)
                window->round = (struct window_round){ 0 }; /* a pause is no part of a rate */
        if (outcome == WINDOW_SUCCESS)
                grow(window, was_full);
        else if (outcome == WINDOW_THROTTLED)
                halve(window, serial);
}

/* ---- Round trips ---- */

static int compare_u64(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static uint64_t median(struct window_round *round) {
        qsort(round->sample_ns, round->samples, sizeof(round->sample_ns[0]), compare_u64);
        return round->sample_ns[round->samples / 2];
}

static void shrink(struct window *window) {
        window->size = (unsigned)max_u64(1, window->size - (window->size + 9) / 10);
        window->is_shrunk = window->rests = window->grows_slowly = true;
}

static void judge(struct window *window, uint64_t now_ns) {
        struct window_round *round = &window->round;
        uint64_t median_ns = median(round);
        double rate = (double)round->bytes / (double)max_u64(1, now_ns - round->begin_ns);
        bool is_slow;

        if (window->rests) { /* much of this round was sent before the window shrank */
                window->rests = false;
                return;
        }
        if (!window->usual_median_ns || median_ns < window->usual_median_ns)
                window->usual_median_ns = median_ns;
        is_slow = 2 * median_ns > 3 * window->usual_median_ns;
        if (window->is_shrunk && rate < 0.95 * window->last_rate) {
                /* less comes of fewer requests: that is how this endpoint is now */
                window->usual_median_ns = median_ns;
                window->is_shrunk = false;
        } else if (is_slow && round->was_full && window->last_rate > 0 &&
                   rate < 1.1 * window->last_rate) {
                shrink(window);
        } else {
                window->is_shrunk = false;
        }
        window->last_rate = rate;
}

void window_measure(struct window *window, uint64_t first_byte_ns, uint64_t bytes,
                    uint64_t now_ns) {
        struct window_round *round = &window->round;

        if (window->in_flight == 0)
                return;
        if (round->size == 0)
                *round = (struct window_round){
                        .size = (unsigned)max_u64(window->size, WINDOW_ROUND_LEAST),
                        .begin_ns = now_ns,
                };
        round->bytes += bytes;
        if (round->samples < WINDOW_SAMPLES &&
            round->answers * WINDOW_SAMPLES >= round->samples * round->size)
                round->sample_ns[round->samples++] = first_byte_ns;
        if (++round->answers < round->size)
                return;
        judge(window, now_ns);
        *round = (struct window_round){ 0 };
}

void window_wait_until(struct window *window, uint64_t time_ns) {
        window->not_before_ns = max_u64(window->not_before_ns, time_ns);
}
