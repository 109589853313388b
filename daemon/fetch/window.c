/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/window.h"

#include "common/base.h"

#define WINDOW_SLOW_GROWTH 8 /* successes for each place more, after it was halved */

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
        if (!was_full || window->size >= window->max)
                return;
        if (++window->successes < (window->was_halved ? WINDOW_SLOW_GROWTH : 1))
                return;
        window->successes = 0;
        window->size++;
}

static void halve(struct window *window, uint64_t serial) {
        if (serial <= window->halved_at)
                return; /* it was sent before the window was halved */
        window->size = (unsigned)max_u64(1, window->size / 2);
        window->halved_at = window->sent;
        window->was_halved = true;
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
        if (outcome == WINDOW_SUCCESS)
                grow(window, was_full);
        else if (outcome == WINDOW_THROTTLED)
                halve(window, serial);
}

void window_wait_until(struct window *window, uint64_t time_ns) {
        window->not_before_ns = max_u64(window->not_before_ns, time_ns);
}
