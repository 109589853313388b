/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/filter.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

#define S INT64_C(1000000000)
#define NOW (1000000 * S)

static char old[] = "**/old", logs[] = "logs*", tmp[] = "**/*.tmp", week[] = "7d";
static char *include[] = { logs, NULL }, *exclude[] = { old, tmp, NULL }, *none[] = { NULL };

static const char *why(const struct filter *filter, const char *path, int64_t mtime_ns) {
        return filter_excludes(filter, path, strlen(path), mtime_ns);
}

START_TEST(each_says_why) {
        const struct config_filter options = { include, exclude, week };
        struct filter *filter = NULL;

        ck_assert_int_eq(filter_new(&options, NOW, &filter), 0);
        ck_assert_ptr_null(why(filter, "logs1/a/tfevents", NOW));
        ck_assert_str_eq(why(filter, "logs1/old/tfevents", NOW), "exclude **/old");
        ck_assert_str_eq(why(filter, "logs1/tfevents.tmp", NOW), "exclude **/*.tmp");
        ck_assert_str_eq(why(filter, "other/tfevents", NOW), "include");
        ck_assert_str_eq(why(filter, "logs1/a", NOW - 7 * 86400 * S - 1), "since 7d");
        ck_assert_ptr_null(why(filter, "logs1/a", NOW - 7 * 86400 * S));
        ck_assert_ptr_null(why(filter, "logs1/a", INT64_MIN)); /* it is not known */
        filter_free(filter);
}
END_TEST

START_TEST(none_leaves_nothing_out) {
        const struct config_filter empty = { none, none, NULL };
        struct filter *filter = (void *)&empty;

        ck_assert_int_eq(filter_new(NULL, NOW, &filter), 0);
        ck_assert_ptr_null(filter);
        ck_assert_int_eq(filter_new(&empty, NOW, &filter), 0);
        ck_assert_ptr_null(filter);
        ck_assert_ptr_null(why(NULL, "a", 0));
}
END_TEST

START_TEST(wrong_ones) {
        static char open[] = "[", never[] = "yesterday";
        char *wrong[] = { logs, open, NULL };
        const struct config_filter options[] = { { wrong, NULL, NULL },
                                                 { NULL, wrong, NULL },
                                                 { NULL, NULL, never } };
        struct filter *filter = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                ck_assert_int_eq(filter_new(&options[i], NOW, &filter), -EINVAL);
        ck_assert_ptr_null(filter);
}
END_TEST

START_TEST(without_memory) {
        const struct config_filter options = { include, exclude, week };
        struct filter *filter = NULL;

        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_ANY_THREAD);
                r = filter_new(&options, NOW, &filter);
                if (!fail_end()) {
                        ck_assert_int_eq(r, 0);
                        break;
                }
                ck_assert_int_eq(r, -ENOMEM);
        }
        filter_free(filter);
}
END_TEST

RUNNER_MAIN("daemon/discover/filter", each_says_why, none_leaves_nothing_out, wrong_ones,
            without_memory)
