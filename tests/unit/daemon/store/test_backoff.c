/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/backoff.h"

#include "common/base.h"
#include "tests/unit/runner.h"

/* "Full jitter": uniform between nothing and the bound. The mean of 1000 is good to 3 % of it, 3 sigma. */
START_TEST(waits_are_anything_up_to_a_bound_that_doubles) {
        static const uint64_t bounds[] = { 100, 200, 400, 800, 1000, 1000 };
        uint64_t sums[ARRAY_SIZE(bounds)] = { 0 };

        for (uint64_t seed = 0; seed < 1000; seed++) {
                struct backoff backoff;

                backoff_init(&backoff, seed * 1000003);
                for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
                        uint64_t wait_ms = backoff_next_ms(&backoff, 100, 1000);

                        ck_assert_uint_lt(wait_ms, bounds[i]);
                        sums[i] += wait_ms;
                }
        }
        for (size_t i = 1; i < ARRAY_SIZE(bounds); i++) {
                ck_assert_uint_ge(sums[i] / 1000, bounds[i] * 45 / 100);
                ck_assert_uint_le(sums[i] / 1000, bounds[i] * 55 / 100);
        }
}
END_TEST

START_TEST(success_begins_anew) {
        struct backoff backoff;

        backoff_init(&backoff, 7);
        for (unsigned i = 0; i < 1000; i++)
                ck_assert_uint_lt(backoff_next_ms(&backoff, 100, UINT64_MAX / 2),
                                  100ull << min_u64(i, 20));
        backoff_reset(&backoff);
        ck_assert_uint_lt(backoff_next_ms(&backoff, 1, 1000), 1);
}
END_TEST

RUNNER_MAIN("store/backoff", waits_are_anything_up_to_a_bound_that_doubles, success_begins_anew)
