/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/hedge_budget.h"

#include "common/base.h"
#include "tests/unit/runner.h"

#define MS 1000000ull

static struct hedge_budget budget;

static void begin(void) {
        budget = (struct hedge_budget){ 0 };
}

static void answer(unsigned count, uint64_t first_byte_ns, bool is_error) {
        for (unsigned i = 0; i < count; i++)
                hedge_budget_answer(&budget, HEDGE_SMALL, first_byte_ns, is_error);
}

START_TEST(nothing_is_late_before_it_is_known_what_is_usual) {
        begin();
        answer(LATENCY_ENOUGH - 1, 100 * MS, false);
        ck_assert_uint_eq(hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0), UINT64_MAX);
        answer(1, 100 * MS, false);
        ck_assert_uint_eq(hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0), 250 * MS);
        ck_assert_uint_eq(hedge_budget_wait_ns(&budget, HEDGE_PART, 0), UINT64_MAX);
}
END_TEST

START_TEST(late_is_behind_the_99th_percentile) {
        begin();
        answer(196, 100 * MS, false);
        answer(4, 400 * MS, false);
        ck_assert_uint_eq(hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0), 400 * MS);
        begin();
        answer(100, MS, false);
        ck_assert_uint_eq(hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0), 50 * MS); /* the least */
}
END_TEST

START_TEST(budget_is_a_part_of_the_requests) {
        unsigned hedges = 0;

        begin();
        answer(400, 100 * MS, false);
        hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0);
        for (; hedge_budget_allows(&budget, HEDGE_SMALL); hedges++)
                hedge_budget_sent(&budget);
        ck_assert_uint_eq(hedges, 400 / 20 + 10);
}
END_TEST

START_TEST(failing_or_slow_servers_get_none) {
        begin();
        answer(200, 100 * MS, false);
        hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0);
        ck_assert(hedge_budget_allows(&budget, HEDGE_SMALL));
        answer(3, 0, true);
        ck_assert(!hedge_budget_allows(&budget, HEDGE_SMALL));
        answer(HEDGE_RECENT, 100 * MS, false); /* they are forgotten */
        ck_assert(hedge_budget_allows(&budget, HEDGE_SMALL));
        answer(LATENCY_SAMPLES, 201 * MS, false);
        hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0);
        ck_assert(!hedge_budget_allows(&budget, HEDGE_SMALL));
}
END_TEST

/*
 * Of a burst the fast answers come first: the median of the first few is no measure for the rest, and
 * the end of the burst no sign of a server that became slower.
 */
START_TEST(a_burst_is_not_slow_at_its_end) {
        begin();
        for (unsigned i = 0; i < 512; i++) {
                answer(1, 40 * MS + i * 400000, false);
                hedge_budget_wait_ns(&budget, HEDGE_SMALL, 511 - i);
        }
        ck_assert_uint_ge(budget.latency[HEDGE_SMALL].p50_ns, 2 * 45 * MS);
        ck_assert(hedge_budget_allows(&budget, HEDGE_SMALL));
}
END_TEST

START_TEST(hedges_that_never_win_stop) {
        begin();
        answer(2000, 100 * MS, false);
        hedge_budget_wait_ns(&budget, HEDGE_SMALL, 0);
        for (unsigned i = 0; i < HEDGE_OUTCOMES; i++) {
                ck_assert(hedge_budget_allows(&budget, HEDGE_SMALL));
                hedge_budget_sent(&budget);
                hedge_budget_ended(&budget, i < HEDGE_OUTCOMES / 10 - 1);
        }
        ck_assert(!hedge_budget_allows(&budget, HEDGE_SMALL));
        hedge_budget_ended(&budget, true); /* of the last fifty, as many as before */
        ck_assert(!hedge_budget_allows(&budget, HEDGE_SMALL));
        answer(1000, 100 * MS, false);
        ck_assert(hedge_budget_allows(&budget, HEDGE_SMALL)); /* to see whether they do now */
}
END_TEST

RUNNER_MAIN("fetch/hedge_budget", nothing_is_late_before_it_is_known_what_is_usual,
            late_is_behind_the_99th_percentile, budget_is_a_part_of_the_requests,
            failing_or_slow_servers_get_none, a_burst_is_not_slow_at_its_end,
            hedges_that_never_win_stop)
