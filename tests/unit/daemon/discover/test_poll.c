/* SPDX-License-Identifier: Apache-2.0 */
/* Time is what the waits add up to. */
#include "daemon/discover/poll.h"

#include "common/base.h"
#include "tests/unit/runner.h"

#define DAY_MS 86400000ull

/* Polls for that long, as poll_next_ms() says. */
static unsigned polls_within(struct poll *poll, uint64_t ms) {
        unsigned polls = 0;

        for (uint64_t now = 0, wait; (wait = poll_next_ms(poll)) != POLL_REST; polls++) {
                now += wait;
                if (now > ms)
                        break;
        }
        return polls;
}

START_TEST(short_while_files_grow) {
        struct poll poll;

        poll_init(&poll, POLL_AUTO);
        poll.followed = true;
        ck_assert_uint_eq(poll_next_ms(&poll), 1000);
        ck_assert_uint_eq(poll_next_ms(&poll), 1020);
        /* A file that is gone is told after the second listing, 2 s later: within 5 s in all. */
        for (uint64_t waited = 2020; waited < 300000; waited += poll.wait_ms) {
                uint64_t wait = poll_next_ms(&poll);

                ck_assert_uint_ge(wait, 1000);
                ck_assert_uint_le(wait, 3000);
        }
        poll_changed(&poll, 0);
        ck_assert_uint_eq(poll_next_ms(&poll), 1000);
}
END_TEST

START_TEST(up_to_a_minute_when_nothing_changes) {
        struct poll poll;
        uint64_t last = 0;

        poll_init(&poll, POLL_AUTO);
        poll.followed = true;
        poll_changed(&poll, 3600000); /* as old as the newest file */
        ck_assert_uint_eq(poll_next_ms(&poll), 4500);
        ck_assert_uint_eq(poll_next_ms(&poll), 6750);
        for (int i = 0; i < 100; i++)
                last = poll_next_ms(&poll);
        ck_assert_uint_eq(last, 60000);
        ck_assert_uint_le(polls_within(&poll, DAY_MS), 1440);
        poll_changed(&poll, 0);
        ck_assert_uint_eq(poll_next_ms(&poll), 1000);
}
END_TEST

/* A listing of one page costs $0.000005, one of 100 pages $0.0005. */
START_TEST(what_costs_is_polled_less_often) {
        struct poll poll;

        poll_init(&poll, POLL_AUTO);
        poll.followed = true;
        poll.nano_usd = 5000;
        ck_assert_uint_eq(poll_next_ms(&poll), 1728);
        poll.nano_usd = 50000;
        ck_assert_uint_eq(poll_next_ms(&poll), 17280);
        poll.nano_usd = 500000;
        ck_assert_uint_eq(poll_next_ms(&poll), 60000);
}
END_TEST

START_TEST(nothing_when_nobody_looks) {
        struct poll poll;

        poll_init(&poll, POLL_AUTO);
        ck_assert_uint_eq(polls_within(&poll, DAY_MS), 10);
        ck_assert_uint_eq(poll_next_ms(&poll), POLL_REST);
        ck_assert_uint_eq(poll_retry_ms(&poll, 10000), POLL_REST);
        poll_ask(&poll);
        ck_assert_uint_eq(poll_retry_ms(&poll, 10000), 10000);
        ck_assert_uint_eq(poll_next_ms(&poll), 60000);
        poll.followed = true;
        poll_changed(&poll, 0);
        ck_assert_uint_eq(poll_next_ms(&poll), 1000);
        for (int i = 0; i < 100; i++)
                poll_next_ms(&poll);
        poll.followed = false; /* the last client has left: 10 minutes from now */
        ck_assert_uint_eq(polls_within(&poll, DAY_MS), 10);
}
END_TEST

START_TEST(by_the_configuration) {
        struct poll poll;

        poll_init(&poll, POLL_NEVER);
        poll.followed = true;
        ck_assert_uint_eq(poll_next_ms(&poll), POLL_REST);
        ck_assert_uint_eq(poll_retry_ms(&poll, 100), 100);
        poll_init(&poll, POLL_ON_DEMAND);
        poll.followed = true;
        ck_assert_uint_eq(poll_next_ms(&poll), POLL_REST);
        poll_init(&poll, 250 * 1000000);
        for (int i = 0; i < 10000; i++)
                ck_assert_uint_eq(poll_next_ms(&poll), 250);
        ck_assert_uint_eq(poll_retry_ms(&poll, 10000), 251);
        ck_assert_uint_eq(poll_retry_ms(&poll, 100), 100);
}
END_TEST

RUNNER_MAIN("discover/poll", short_while_files_grow, up_to_a_minute_when_nothing_changes,
            what_costs_is_polled_less_often, nothing_when_nobody_looks, by_the_configuration)
