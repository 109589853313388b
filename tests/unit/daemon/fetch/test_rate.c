/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/rate.h"

#include "tests/unit/runner.h"

#define SECOND 1000000000ull

START_TEST(no_limit_never_waits) {
        struct rate rate;

        rate_init(&rate, 0);
        rate_spend(&rate, UINT64_MAX, 5);
        ck_assert_uint_eq(rate_ready_ns(&rate, 7), 7);
}
END_TEST

START_TEST(a_second_goes_out_at_once_and_then_as_time_goes_by) {
        uint64_t now = 1000 * SECOND;
        struct rate rate;

        rate_init(&rate, 10);
        for (unsigned i = 0; i < 10; i++) {
                ck_assert_uint_eq(rate_ready_ns(&rate, now), now);
                rate_spend(&rate, 1, now);
        }
        ck_assert_uint_gt(rate_ready_ns(&rate, now), now);
        rate_spend(&rate, 1, now);
        ck_assert_uint_ge(rate_ready_ns(&rate, now), now + SECOND / 10);
        ck_assert_uint_le(rate_ready_ns(&rate, now), now + SECOND / 10 + 2);
        ck_assert_uint_eq(rate_ready_ns(&rate, now + SECOND / 5), now + SECOND / 5);
}
END_TEST

START_TEST(over_many_seconds_it_is_the_rate) {
        uint64_t now = SECOND, sent = 0;
        struct rate rate;

        rate_init(&rate, 1000);
        while (now < 11 * SECOND) {
                rate_spend(&rate, 300, now); /* much at once */
                sent += 300;
                now = rate_ready_ns(&rate, now);
        }
        ck_assert_uint_le(sent, 11 * 1000 + 300);
        ck_assert_uint_ge(sent, 10 * 1000);
}
END_TEST

RUNNER_MAIN("fetch/rate", no_limit_never_waits, a_second_goes_out_at_once_and_then_as_time_goes_by,
            over_many_seconds_it_is_the_rate)
