/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/window.h"

#include "common/base.h"
#include "tests/unit/runner.h"

/* Fills the window, and answers all of it with one outcome: a round trip. */
static void round_trip(struct window *window, enum window_outcome outcome) {
        uint64_t serials[4096];
        unsigned count = 0;

        while (window_has_place(window, 0))
                serials[count++] = window_send(window);
        for (unsigned i = 0; i < count; i++)
                window_receive(window, serials[i], outcome);
        ck_assert_uint_eq(window->in_flight, 0);
}

START_TEST(starts_as_told) {
        struct window window;

        window_init(&window, 128, 1024);
        ck_assert_uint_eq(window.size, 128);
        window_init(&window, 128, 64);
        ck_assert_uint_eq(window.size, 64);
        window_init(&window, 0, 0);
        ck_assert_uint_eq(window.size, 1);
        ck_assert(window_has_place(&window, 0));
        window_send(&window);
        ck_assert(!window_has_place(&window, 0));
}
END_TEST

/*
 * At least by half, at most twofold, in a round trip whose answers all come before the next
 * request.
 */
START_TEST(grows_with_each_round_trip) {
        struct window window;

        window_init(&window, 16, 1024);
        for (unsigned before = window.size; before < 1024; before = window.size) {
                round_trip(&window, WINDOW_SUCCESS);
                ck_assert_uint_ge(window.size, min_u64(1024, before + before / 4));
                ck_assert_uint_le(window.size, 2 * before);
        }
        round_trip(&window, WINDOW_SUCCESS);
        ck_assert_uint_eq(window.size, 1024);
}
END_TEST

/* When each place is filled again at once it doubles. */
START_TEST(doubles_while_it_is_full) {
        struct window window;
        uint64_t serials[64];

        window_init(&window, 16, 1024);
        for (int i = 0; i < 16; i++)
                serials[i] = window_send(&window);
        for (int i = 0; i < 16; i++) {
                window_receive(&window, serials[i], WINDOW_SUCCESS);
                while (window_has_place(&window, 0))
                        window_send(&window);
        }
        ck_assert_uint_eq(window.size, 32);
}
END_TEST

START_TEST(does_not_grow_unused) {
        struct window window;

        window_init(&window, 16, 1024);
        for (int i = 0; i < 1000; i++)
                window_receive(&window, window_send(&window), WINDOW_SUCCESS);
        ck_assert_uint_eq(window.size, 16);
}
END_TEST

START_TEST(is_halved_once_a_round_trip) {
        struct window window;

        window_init(&window, 128, 1024);
        round_trip(&window, WINDOW_THROTTLED);
        ck_assert_uint_eq(window.size, 64);
        round_trip(&window, WINDOW_THROTTLED);
        ck_assert_uint_eq(window.size, 32);
        for (int i = 0; i < 10; i++)
                round_trip(&window, WINDOW_THROTTLED);
        ck_assert_uint_eq(window.size, 1);
        round_trip(&window, WINDOW_FAILURE);
        ck_assert_uint_eq(window.size, 1);
}
END_TEST

START_TEST(grows_slowly_afterwards) {
        struct window window;

        window_init(&window, 128, 1024);
        round_trip(&window, WINDOW_THROTTLED);
        for (int i = 0; i < 4; i++) {
                unsigned before = window.size;

                round_trip(&window, WINDOW_SUCCESS);
                ck_assert_uint_gt(window.size, before);
                ck_assert_uint_le(window.size, before + before / 8);
        }
}
END_TEST

START_TEST(waits_until) {
        struct window window;

        window_init(&window, 16, 16);
        window_wait_until(&window, 1000);
        window_wait_until(&window, 500);
        ck_assert(!window_has_place(&window, 999));
        ck_assert(window_has_place(&window, 1000));
}
END_TEST

/*
 * A server that works at so many requests at once, each of them for so long; the others wait
 * (Little's law: the time of each is what is in flight by the rate).
 */
static unsigned serve(struct window *window, unsigned at_once, uint64_t base_ns, unsigned answers) {
        static uint64_t serials[1u << 20];
        static uint64_t now_ns = 1;
        static unsigned sent, received;
        unsigned most = 0;

        for (unsigned i = 0; i < answers; i++) {
                uint64_t gap_ns, in_flight;

                while (window_has_place(window, 0) && sent - received < ARRAY_SIZE(serials))
                        serials[sent++ % ARRAY_SIZE(serials)] = window_send(window);
                in_flight = window->in_flight;
                gap_ns = base_ns / min_u64(in_flight, at_once);
                now_ns += gap_ns;
                window_receive(window, serials[received++ % ARRAY_SIZE(serials)], WINDOW_SUCCESS);
                window_measure(window, in_flight * gap_ns, 42000, now_ns);
                most = (unsigned)max_u64(most, window->size);
        }
        return most;
}

START_TEST(shrinks_where_requests_wait_for_each_other) {
        struct window window;

        window_init(&window, 16, 1024);
        serve(&window, 200, 100000000, 100000);
        /* half as late again is 300 in flight; it shrinks from one tenth above that at the latest */
        ck_assert_uint_ge(window.size, 200);
        ck_assert_uint_le(window.size, 400);
}
END_TEST

START_TEST(does_not_shrink_for_a_server_that_is_slower_now) {
        struct window window;

        window_init(&window, 16, 512);
        serve(&window, 1024, 100000000, 20000);
        ck_assert_uint_eq(window.size, 512);
        serve(&window, 1024, 250000000, 20000);
        ck_assert_uint_eq(window.size, 512); /* shrunk once at most, and full again */
}
END_TEST

START_TEST(does_not_shrink_while_more_comes_of_it) {
        struct window window;

        window_init(&window, 16, 512);
        serve(&window, 100, 100000000, 20000);
        ck_assert_uint_lt(window.size, 250);
        serve(&window, 1024, 100000000, 100000);
        ck_assert_uint_eq(window.size, 512); /* the server has grown, too */
}
END_TEST

RUNNER_MAIN("fetch/window", shrinks_where_requests_wait_for_each_other,
            does_not_shrink_for_a_server_that_is_slower_now, does_not_shrink_while_more_comes_of_it,
            starts_as_told, grows_with_each_round_trip, doubles_while_it_is_full,
            does_not_grow_unused, is_halved_once_a_round_trip, grows_slowly_afterwards, waits_until)
