/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are sent at times that the test chooses; what they cost is reckoned by hand. */
#include "daemon/store/request_count.h"

#include "daemon/store/price.h"
#include "tests/unit/runner.h"

#define MIDNIGHT (20000 * 86400ll)

START_TEST(a_day_ends_at_midnight_utc) {
        struct request_count count = { 0 };
        uint64_t sums[REQUEST_KINDS] = { 0 };

        request_count_add(&count, REQUEST_LIST, 3, MIDNIGHT - 1);
        request_count_add(&count, REQUEST_READ, 5, MIDNIGHT - 1);
        request_count_today(&count, MIDNIGHT - 1, sums);
        ck_assert_uint_eq(sums[REQUEST_LIST], 3);
        ck_assert_uint_eq(sums[REQUEST_READ], 5);
        ck_assert_uint_eq(sums[REQUEST_CREDENTIALS], 0);
        request_count_today(&count, MIDNIGHT, sums);
        ck_assert_uint_eq(sums[REQUEST_LIST], 3); /* none more */
        request_count_add(&count, REQUEST_CREDENTIALS, 1, MIDNIGHT);
        request_count_today(&count, MIDNIGHT + 5, sums);
        ck_assert_uint_eq(sums[REQUEST_LIST], 3);
        ck_assert_uint_eq(sums[REQUEST_CREDENTIALS], 1);
        ck_assert_uint_eq(count.total[REQUEST_LIST], 3);
}
END_TEST

START_TEST(the_rate_is_that_of_the_last_minutes) {
        struct request_count count = { 0 };
        uint64_t sums[REQUEST_KINDS] = { 0 };

        ck_assert(!request_count_per_day(&count, MIDNIGHT, sums));
        request_count_add(&count, REQUEST_READ, 546, MIDNIGHT); /* the first load */
        ck_assert(!request_count_per_day(&count, MIDNIGHT + 599, sums));
        /* One listing every ten seconds: 8 640 a day. */
        for (int64_t s = 0; s < 1800; s += 10)
                request_count_add(&count, REQUEST_LIST, 1, MIDNIGHT + s);
        ck_assert(request_count_per_day(&count, MIDNIGHT + 1800, sums));
        ck_assert_uint_eq(sums[REQUEST_LIST], 60 * 86400 / 600);
        ck_assert_uint_eq(sums[REQUEST_READ], 0);
        sums[REQUEST_LIST] = 0;
        ck_assert(request_count_per_day(&count, MIDNIGHT + 1799, sums));
        ck_assert_uint_eq(sums[REQUEST_LIST], 120 * 86400 / 1199);
        sums[REQUEST_LIST] = 0;
        ck_assert(request_count_per_day(&count, MIDNIGHT + 3000, sums)); /* it rests */
        ck_assert_uint_eq(sums[REQUEST_LIST], 0);
}
END_TEST

/* The second slot begins in the middle of the first load: only what is older counts as its time. */
START_TEST(the_rate_of_a_young_count) {
        struct request_count count = { 0 };
        uint64_t sums[REQUEST_KINDS] = { 0 };

        request_count_add(&count, REQUEST_LIST, 7, MIDNIGHT + 500);
        ck_assert(request_count_per_day(&count, MIDNIGHT + 1150, sums));
        ck_assert_uint_eq(sums[REQUEST_LIST], 7 * 86400 / 650);
}
END_TEST

/* The example of the manual: one listing and 546 reads. */
START_TEST(a_price) {
        const uint64_t requests[REQUEST_KINDS] = {
                [REQUEST_LIST] = 1, [REQUEST_READ] = 546, [REQUEST_CREDENTIALS] = 2
        };

        ck_assert_uint_eq(store_price_of(&store_price_s3, requests), 223400);
        ck_assert_uint_eq(store_price_of(&store_price_gcs, requests), 223400);
        ck_assert_uint_eq(store_price_of(NULL, requests), 0);
}
END_TEST

RUNNER_MAIN("store/request_count", a_day_ends_at_midnight_utc, the_rate_is_that_of_the_last_minutes,
            the_rate_of_a_young_count, a_price)
