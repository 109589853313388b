/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long an endpoint lately took to begin its answers: the last of them, and quantiles of these. Of
 * a burst the slow ones come last: there must be room for most of it, or all seem slow.
 * No clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LATENCY_SAMPLES 1024
#define LATENCY_ENOUGH 20 /* fewer say nothing */

struct latency {
        uint64_t sample_ns[LATENCY_SAMPLES]; /* in a circle */
        uint64_t count;                      /* in all */
        uint64_t sorted_at;                  /* count when the quantiles were found */
        uint64_t p50_ns, p99_ns;
        /*
         * The least of all that were found while few answers were still to come, as those that come
         * first are the fast ones; 0: none yet.
         */
        uint64_t best_p50_ns;
};

void latency_add(struct latency *latency, uint64_t sample_ns);

/*
 * Finds the quantiles, unless there is next to nothing new, while so many requests are not answered
 * yet. False: too few samples.
 */
bool latency_measure(struct latency *latency, unsigned unanswered);
