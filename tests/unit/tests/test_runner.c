/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner must fail a test that leaves a descriptor open: it runs itself as another program to
 * see that.
 */
#include "tests/unit/runner.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"

START_TEST(leaves_nothing) {
        close(open("/dev/null", O_RDONLY | O_CLOEXEC));
}
END_TEST

START_TEST(leaves_descriptor_open) {
        ck_assert_int_ge(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
}
END_TEST

START_TEST(closes_what_was_open) {
        close(STDIN_FILENO);
}
END_TEST

START_TEST(opens_another_under_the_number) {
        close(STDIN_FILENO);
        ck_assert_int_eq(open("/", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
}
END_TEST

/* Runs one of the tests above in a runner of its own; its exit code. */
static int run_one(const TTest *test) {
        pid_t child = fork();
        int status = -1;

        ck_assert_int_ge(child, 0);
        if (child == 0) {
                char *argv[] = { (char *)"test", NULL };
                int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

                dup2(null, STDOUT_FILENO);
                _exit(runner_run("inner", &test, 1, 1, argv));
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status));
        return WEXITSTATUS(status);
}

START_TEST(runner_passes_clean_test) {
        ck_assert_int_eq(run_one(leaves_nothing), EXIT_SUCCESS);
}
END_TEST

START_TEST(runner_fails_on_descriptors) {
        ck_assert_int_eq(run_one(leaves_descriptor_open), EXIT_FAILURE);
        ck_assert_int_eq(run_one(closes_what_was_open), EXIT_FAILURE);
        ck_assert_int_eq(run_one(opens_another_under_the_number), EXIT_FAILURE);
}
END_TEST

RUNNER_MAIN("tests/runner", runner_passes_clean_test, runner_fails_on_descriptors)
