/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors are remembered by number and by what they lead to, so that a test that closes one and
 * opens another under the same number is caught as well. The linker leads every call of
 * tcase_create() here, so that no test program can do without.
 */
#include "tests/unit/runner.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/unit/fail.h"

#define DESCRIPTORS_MOST 1024
/* for a test under a sanitizer on a busy machine; none waits for time to pass */
#define TIMEOUT_S 120

struct descriptors {
        char target[DESCRIPTORS_MOST][64]; /* "": closed */
};

static struct descriptors at_begin; /* of this process: each test has its own */

static void descriptors_read(struct descriptors *ret_descriptors) {
        DIR *directory = opendir("/proc/self/fd");
        struct dirent *entry;

        memset(ret_descriptors, 0, sizeof(*ret_descriptors));
        ck_assert_ptr_nonnull(directory);
        while ((entry = readdir(directory))) {
                int fd = atoi(entry->d_name);

                if (entry->d_name[0] == '.' || fd == dirfd(directory))
                        continue;
                ck_assert_int_lt(fd, DESCRIPTORS_MOST);
                ck_assert_int_gt(readlinkat(dirfd(directory), entry->d_name,
                                            ret_descriptors->target[fd],
                                            sizeof(ret_descriptors->target[fd]) - 1),
                                 0);
        }
        closedir(directory);
}

static void test_begins(void) {
        fail_end(); /* nothing fails unless a test says so */
        descriptors_read(&at_begin);
}

static void test_ends(void) {
        static struct descriptors now;

        descriptors_read(&now);
        for (int fd = 0; fd < DESCRIPTORS_MOST; fd++) {
                if (strcmp(at_begin.target[fd], now.target[fd]) != 0)
                        ck_abort_msg(
                                "descriptor %d was '%s' and is '%s' after the test (empty: closed)",
                                fd, at_begin.target[fd], now.target[fd]);
        }
}

TCase *__real_tcase_create(const char *name);
TCase *__wrap_tcase_create(const char *name);

TCase *__wrap_tcase_create(const char *name) {
        TCase *test_case = __real_tcase_create(name);

        tcase_set_timeout(test_case, TIMEOUT_S);
        /* the first to begin, the last to end */
        tcase_add_checked_fixture(test_case, test_begins, test_ends);
        return test_case;
}

static bool is_wanted(const char *test_name, int argc, char **argv) {
        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], test_name))
                        return true;
        }
        return argc < 2;
}

int runner_run_case(const char *name, TCase *take_case) {
        Suite *suite = suite_create(name);
        SRunner *runner = srunner_create(suite);
        int run, failed;

        suite_add_tcase(suite, take_case);
        srunner_set_fork_status(runner, CK_FORK);
        srunner_run_all(runner, CK_NORMAL);
        run = srunner_ntests_run(runner);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int runner_run(const char *name, const TTest *const *tests, size_t test_count, int argc,
               char **argv) {
        TCase *test_case = tcase_create(name);

        for (size_t i = 0; i < test_count; i++) {
                if (is_wanted(tests[i]->name, argc, argv))
                        tcase_add_test(test_case, tests[i]);
        }
        return runner_run_case(name, test_case);
}
