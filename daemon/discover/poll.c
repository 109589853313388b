/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/poll.h"

#include "common/base.h"

#define MS_PER_NS 1000000
#define DAY_MS 86400000ull
#define FIRST_MS 1000u  /* just after a change */
#define SHORT_MS 3000u  /* while changes are to be expected */
#define LAST_MS 60000u  /* when nothing changes */
#define LIVE_MS 300000u /* for so long after a change the next one is expected */
#define SLOWER 50u      /* within that: a wait grows by this part of the time since */
#define FORGET_MS 600000u
#define DAILY_NANO_USD 250000000ull /* what the short polls of a day may cost */

void poll_init(struct poll *poll, int64_t interval_ns) {
        *poll = (struct poll){ .interval_ns = interval_ns };
}

void poll_ask(struct poll *poll) {
        poll->unasked_ms = 0;
}

void poll_changed(struct poll *poll, uint64_t age_ms) {
        poll->quiet_ms = age_ms;
}

static bool is_forgotten(const struct poll *poll) {
        return !poll->followed && poll->unasked_ms >= FORGET_MS;
}

static uint64_t take(struct poll *poll, uint64_t wait_ms) {
        poll->wait_ms = wait_ms;
        poll->quiet_ms += wait_ms;
        if (poll->followed)
                poll->unasked_ms = 0;
        else
                poll->unasked_ms += wait_ms;
        return wait_ms;
}

static uint64_t auto_ms(const struct poll *poll) {
        uint64_t fair_ms = poll->nano_usd * DAY_MS / DAILY_NANO_USD, wait_ms;

        if (!poll->followed)
                return LAST_MS;
        if (poll->quiet_ms < LIVE_MS)
                wait_ms = min_u64(FIRST_MS + poll->quiet_ms / SLOWER, SHORT_MS);
        else
                wait_ms = max_u64(poll->wait_ms, SHORT_MS) * 3 / 2;
        return min_u64(max_u64(wait_ms, fair_ms), LAST_MS);
}

uint64_t poll_next_ms(struct poll *poll) {
        if (poll->interval_ns > 0)
                return take(poll, max_u64((uint64_t)poll->interval_ns / MS_PER_NS, 1));
        if (poll->interval_ns != POLL_AUTO || is_forgotten(poll))
                return POLL_REST;
        return take(poll, auto_ms(poll));
}

uint64_t poll_retry_ms(struct poll *poll, uint64_t wait_ms) {
        if (poll->interval_ns > 0)
                return take(poll, min_u64(wait_ms, (uint64_t)poll->interval_ns / MS_PER_NS + 1));
        return is_forgotten(poll) ? POLL_REST : take(poll, wait_ms);
}
