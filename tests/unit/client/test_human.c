/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/human.h"

#include <math.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

START_TEST(bytes) {
        static const struct {
                uint64_t bytes;
                const char *text;
        } cases[] = {
                { 0, "0 B" },          { 999, "999 B" },         { 1000, "1.0 KB" },
                { 1400, "1.4 KB" },    { 9949, "9.9 KB" },       { 9950, "10 KB" },
                { 42000, "42 KB" },    { 999499, "999 KB" },     { 999500, "1.0 MB" },
                { 23000000, "23 MB" }, { 1800000000, "1.8 GB" }, { UINT64_MAX, "18 EB" },
        };
        char text[HUMAN_SIZE];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                ck_assert_str_eq(human_bytes(text, cases[i].bytes), cases[i].text);
}
END_TEST

START_TEST(counts) {
        char text[HUMAN_SIZE];

        ck_assert_str_eq(human_count(text, 0), "0");
        ck_assert_str_eq(human_count(text, 999), "999");
        ck_assert_str_eq(human_count(text, 18400), "18 400");
        ck_assert_str_eq(human_count(text, -1234567), "-1 234 567");
        ck_assert_str_eq(human_count(text, INT64_MIN), "-9 223 372 036 854 775 808");
}
END_TEST

START_TEST(ages_and_clocks) {
        char text[HUMAN_SIZE];

        ck_assert_str_eq(human_age(text, -3), "0 s");
        ck_assert_str_eq(human_age(text, NAN), "0 s");
        ck_assert_str_eq(human_age(text, 12.9), "12 s");
        ck_assert_str_eq(human_age(text, 300), "5 min");
        ck_assert_str_eq(human_age(text, 10800), "3 h");
        ck_assert_str_eq(human_age(text, 200000), "2 d");
        ck_assert_str_eq(human_clock(text, 0), "0:00");
        ck_assert_str_eq(human_clock(text, 6.2), "0:07");
        ck_assert_str_eq(human_clock(text, 3723), "1:02:03");
        ck_assert_str_eq(human_clock(text, INFINITY), "999:59:59");
}
END_TEST

/* A name in storage must not move a cursor or change a colour. */
START_TEST(printable_names) {
        static const struct {
                const char *bytes, *text;
        } cases[] = {
                { "a/b", "a/b" },
                { "a\033[2Jb\n\x7f", "a?[2Jb??" },
                { "\xc3\xa9", "\xc3\xa9" },
                { "\xc2\x9b"
                  "31m",
                  "??31m" },
                { "bad\xff\xc3\xa9", "bad???" },
                { "\xc2\xa0", "\xc2\xa0" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *name = human_name(cases[i].bytes, strlen(cases[i].bytes));

                ck_assert_str_eq(name, cases[i].text);
                free(name);
        }
}
END_TEST

RUNNER_MAIN("client/human", bytes, counts, ages_and_clocks, printable_names)
