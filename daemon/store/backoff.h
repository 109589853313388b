/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait after failures in a row, with full jitter: anything up to a bound that doubles
 * with each, so that those who failed together do not come back together. Pure.
 */
#pragma once

#include <stdint.h>

struct backoff {
        uint64_t chance; /* state of a generator of numbers; never 0 */
        unsigned failures;
};

/* seed: of numbers that nobody needs to be unable to guess. */
void backoff_init(struct backoff *backoff, uint64_t seed);

/* One more failure: less than first_ms after the first one, twice that after the next, ... most_ms. */
uint64_t backoff_next_ms(struct backoff *backoff, uint64_t first_ms, uint64_t most_ms);

/* It went well. */
void backoff_reset(struct backoff *backoff);
