/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/backoff.h"

#include "common/base.h"

#define BACKOFF_DOUBLINGS_MOST 20

void backoff_init(struct backoff *backoff, uint64_t seed) {
        *backoff = (struct backoff){ .chance = seed | 1 };
}

/* xorshift64*: jitter needs no better one. */
static uint64_t next_number(struct backoff *backoff) {
        backoff->chance ^= backoff->chance >> 12;
        backoff->chance ^= backoff->chance << 25;
        backoff->chance ^= backoff->chance >> 27;
        return backoff->chance * 0x2545f4914f6cdd1dull >> 11;
}

uint64_t backoff_next_ms(struct backoff *backoff, uint64_t first_ms, uint64_t most_ms) {
        uint64_t bound_ms = first_ms << min_u64(backoff->failures, BACKOFF_DOUBLINGS_MOST);

        backoff->failures++;
        return next_number(backoff) % max_u64(1, min_u64(bound_ms, most_ms));
}

void backoff_reset(struct backoff *backoff) {
        backoff->failures = 0;
}
