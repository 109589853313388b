/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What matches is written down by the rules of path_glob.h, and compared with fnmatch(3) and
 * FNM_PATHNAME where both have the same rules.
 */
#include "common/path_glob.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static bool matches(const char *text, const char *path) {
        struct path_glob *glob = NULL;
        bool result;

        ck_assert_int_eq(path_glob_new(text, &glob), 0);
        result = path_glob_matches(glob, path, strlen(path));
        path_glob_free(glob);
        return result;
}

START_TEST(what_matches) {
        static const struct {
                const char *glob, *path;
                bool matches;
        } cases[] = {
                { "a", "a", true },
                { "a", "a/b/c", true }, /* a directory covers what is below it */
                { "a", "ab", false },
                { "a", "b/a", false },
                { "/a/", "a/x", true },
                { "a/b", "a/b/c", true },
                { "a/b", "a", false },
                { "*", "x", true },
                { "*", "x/y/z", true },
                { "*/y", "x/y/z", true },
                { "*/z", "x/y/z", false },
                { "*.1", "events.out.tfevents.1", true },
                { "*.1", "run/events.out.tfevents.1", false },
                { "**/*.1", "run/deep/events.out.tfevents.1", true },
                { "**/*.1", "events.out.tfevents.1", true },
                { "**/old", "a/old/b", true },
                { "**/old", "old/b", true },
                { "**/old", "a/bold/b", false },
                { "a/**/z", "a/z", true },
                { "a/**/z", "a/b/c/z", true },
                { "a/**/z", "a/bz", false },
                { "a/**", "a/b/c", true },
                { "a/**", "a", false },
                { "a**z", "a/b/z", true },
                { "a**z", "az", true },
                { "**", "a/b", true },
                { "***", "a/b", true },
                { "**/**/c", "a/b/c", true },
                { "?", "/", false },
                { "a?c", "a/c", false },
                { "a?c", "abc", true },
                { "a[/]c", "a/c", false },
                { "a[!b]c", "a/c", false },
                { "a[!b]c", "abc", false },
                { "a[^b]c", "axc", true },
                { "a[]x]c", "a]c", true },
                { "a[b-d]c", "acc", true },
                { "a[b-]c", "a-c", true },
                { "a[\\]]c", "a]c", true },
                { "a\\*c", "a*c", true },
                { "a\\*c", "abc", false },
                { "\xff*", "\xff\xfe", true },
                { "a", "", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                ck_assert_msg(matches(cases[i].glob, cases[i].path) == cases[i].matches,
                              "%s and %s", cases[i].glob, cases[i].path);
}
END_TEST

START_TEST(wrong_globs) {
        static const char *const wrong[] = { "", "/", "///", "a[b", "[", "[]", "a\\", "[a\\" };
        char longest[PATH_GLOB_BYTES_MOST + 2];
        struct path_glob *glob = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                ck_assert_msg(path_glob_new(wrong[i], &glob) == -EINVAL, "%s", wrong[i]);
        memset(longest, 'a', sizeof(longest));
        longest[sizeof(longest) - 1] = '\0';
        ck_assert_int_eq(path_glob_new(longest, &glob), -EINVAL);
        longest[sizeof(longest) - 2] = '\0';
        ck_assert_int_eq(path_glob_new(longest, &glob), 0);
        path_glob_free(glob);
        fail_begin(1, FAIL_ANY_THREAD);
        ck_assert_int_eq(path_glob_new("a", &glob), -ENOMEM);
        ck_assert(fail_end());
}
END_TEST

/* All globs of up to five of these, against all paths of up to four. */
START_TEST(as_fnmatch) {
        static const char pieces[] = "ab/*?", bytes[] = "ab/";
        unsigned compared = 0;

        for (unsigned g = 0; g < 5 * 5 * 5 * 5 * 5; g++) {
                char glob[6];

                for (unsigned i = 0, rest = g; i < 5; i++, rest /= 5)
                        glob[i] = pieces[rest % 5];
                glob[5] = '\0';
                if (strstr(glob, "**") || glob[0] == '/' || glob[4] == '/')
                        continue;
                for (unsigned p = 0; p < 3 * 3 * 3 * 3; p++) {
                        char path[5];

                        for (unsigned i = 0, rest = p; i < 4; i++, rest /= 3)
                                path[i] = bytes[rest % 3];
                        path[4] = '\0';
                        if (path[0] == '/')
                                continue;
                        ck_assert_msg(
                                matches(glob, path) ==
                                        (fnmatch(glob, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0),
                                "%s and %s", glob, path);
                        compared++;
                }
        }
        ck_assert_uint_gt(compared, 10000);
}
END_TEST

/* What takes a matcher that goes back years is done before the runner's limit. */
START_TEST(no_glob_is_slow) {
        char glob[PATH_GLOB_BYTES_MOST + 1], path[4097];
        struct path_glob *compiled = NULL;

        for (size_t i = 0; i < sizeof(glob) - 1; i++)
                glob[i] = "**a/*a?*"[i % 8];
        glob[sizeof(glob) - 2] = 'z';
        glob[sizeof(glob) - 1] = '\0';
        memset(path, 'a', sizeof(path));
        for (size_t i = 7; i < sizeof(path); i += 8)
                path[i] = '/';
        ck_assert_int_eq(path_glob_new(glob, &compiled), 0);
        for (unsigned i = 0; i < 50; i++)
                ck_assert(!path_glob_matches(compiled, path, sizeof(path) - 1));
        path_glob_free(compiled);
}
END_TEST

RUNNER_MAIN("common/path_glob", what_matches, wrong_globs, as_fnmatch, no_glob_is_slow)
