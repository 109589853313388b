/* SPDX-License-Identifier: Apache-2.0 */
/* What was withdrawn, against a model that keeps every point. */
#include <errno.h>
#include <string.h>

#include "client/include/headrace.h"
#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static struct hr_series series[3];
static struct hr_file files[3];

START_TEST(from_a_step_on_and_only_before) {
        struct hr_withdrawn *withdrawn = hr_withdrawn_new();
        uint64_t before = hr_withdrawn_count(withdrawn);

        ck_assert_int_eq(hr_withdrawn_add(withdrawn, &series[0], &files[0], 5), 0);
        ck_assert(hr_withdrawn_has(withdrawn, &series[0], &files[0], 5, before));
        ck_assert(hr_withdrawn_has(withdrawn, &series[0], &files[0], INT64_MAX, before));
        ck_assert(!hr_withdrawn_has(withdrawn, &series[0], &files[0], 4, before));
        ck_assert(!hr_withdrawn_has(withdrawn, &series[1], &files[0], 5, before));
        ck_assert(!hr_withdrawn_has(withdrawn, &series[0], &files[1], 5, before));
        ck_assert(!hr_withdrawn_has(withdrawn, &series[0], &files[0], 5,
                                    hr_withdrawn_count(withdrawn)));
        hr_withdrawn_free(withdrawn);
}
END_TEST

START_TEST(all_series_and_all_files) {
        struct hr_withdrawn *withdrawn = hr_withdrawn_new();

        hr_withdrawn_add(withdrawn, NULL, &files[0], INT64_MIN);
        ck_assert(hr_withdrawn_has(withdrawn, &series[2], &files[0], INT64_MIN, 0));
        ck_assert(!hr_withdrawn_has(withdrawn, &series[2], &files[1], 0, 0));
        hr_withdrawn_add(withdrawn, &series[1], NULL, 3);
        ck_assert(hr_withdrawn_has(withdrawn, &series[1], &files[1], 3, 0));
        ck_assert(!hr_withdrawn_has(withdrawn, &series[0], &files[1], 3, 0));
        hr_withdrawn_add(withdrawn, NULL, NULL, 10);
        ck_assert(hr_withdrawn_has(withdrawn, &series[0], &files[1], 10, 2));
        ck_assert(!hr_withdrawn_has(withdrawn, &series[0], &files[1], 9, 2));
        ck_assert_ptr_null(hr_withdrawn_free(withdrawn));
        ck_assert_ptr_null(hr_withdrawn_free(NULL));
}
END_TEST

struct noted {
        unsigned series, file; /* 3: all */
        int64_t from_step;
};

static bool model_has(const struct noted *notes, uint64_t count, uint64_t from, unsigned s,
                      unsigned f, int64_t step) {
        for (uint64_t i = from; i < count; i++) {
                if ((notes[i].series == 3 || notes[i].series == s) &&
                    (notes[i].file == 3 || notes[i].file == f) && step >= notes[i].from_step)
                        return true;
        }
        return false;
}

START_TEST(any_notes_are_as_the_model_says) {
        struct hr_withdrawn *withdrawn = hr_withdrawn_new();
        struct noted notes[200];
        uint64_t state = 1;

        for (unsigned i = 0; i < ARRAY_SIZE(notes); i++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                notes[i] = (struct noted){ (state >> 33) % 4, (state >> 37) % 4,
                                           (int64_t)((state >> 41) % 30) + i / 10 };
                hr_withdrawn_add(withdrawn, notes[i].series < 3 ? &series[notes[i].series] : NULL,
                                 notes[i].file < 3 ? &files[notes[i].file] : NULL,
                                 notes[i].from_step);
                MUST(hr_withdrawn_count(withdrawn) == i + 1);
        }
        for (uint64_t at = 0; at <= ARRAY_SIZE(notes); at++) {
                for (unsigned k = 0; k < 9 * 60; k++) {
                        unsigned s = k % 3, f = k / 3 % 3;

                        if (hr_withdrawn_has(withdrawn, &series[s], &files[f], k / 9, at) !=
                            model_has(notes, ARRAY_SIZE(notes), at, s, f, k / 9))
                                ck_abort_msg("after %u: series %u, file %u, step %u", (unsigned)at,
                                             s, f, k / 9);
                }
        }
        hr_withdrawn_free(withdrawn);
}
END_TEST

/* What could not be noted is not there, and what was noted before still is. */
START_TEST(no_memory_is_told) {
        for (uint64_t n = 1;; n++) {
                struct hr_withdrawn *withdrawn;
                unsigned noted = 0;
                bool failed;

                fail_begin(n, FAIL_THIS_THREAD);
                withdrawn = hr_withdrawn_new();
                while (withdrawn && noted < 60 &&
                       hr_withdrawn_add(withdrawn, &series[noted % 3], &files[noted / 3 % 3],
                                        noted) == 0)
                        noted++;
                failed = fail_end();
                if (withdrawn && hr_withdrawn_count(withdrawn) != noted)
                        ck_abort_msg("%u of %u", noted, (unsigned)hr_withdrawn_count(withdrawn));
                if (noted && !hr_withdrawn_has(withdrawn, &series[0], &files[0], 0, 0))
                        ck_abort_msg("the first one of %u", noted);
                hr_withdrawn_free(withdrawn);
                if (!failed) {
                        ck_assert_uint_eq(noted, 60);
                        break;
                }
                if (noted == 60)
                        ck_abort_msg("%s failed in silence", fail_name());
        }
}
END_TEST

RUNNER_MAIN("client/withdrawn", from_a_step_on_and_only_before, all_series_and_all_files,
            any_notes_are_as_the_model_says, no_memory_is_told)
