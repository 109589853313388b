/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test program is made of. Each test runs in a process of its own, and fails if it
 * leaves a descriptor open that was closed when it began, or the other way round (also in programs
 * that make their own suite with Check).
 *
 *      START_TEST(ring_refuses_zero) { ... } END_TEST
 *
 *      RUNNER_MAIN("publish/ring", ring_refuses_zero, ring_grows)
 *
 * A program takes the names of tests as arguments, and then runs only those.
 */
#pragma once

#include <check.h>
#include <stddef.h>

/* Runs the tests and prints Check's closing lines. Returns the program's exit code. */
int runner_run(const char *name, const TTest *const *tests, size_t test_count, int argc,
               char **argv);

/* For loop tests and fixtures: takes a test case that the caller filled, and runs it. */
int runner_run_case(const char *name, TCase *take_case);

#define RUNNER_MAIN(name, ...) \
        int main(int argc, char **argv) { \
                const TTest *const runner_tests_[] = { __VA_ARGS__ }; \
\
                return runner_run(name, runner_tests_, \
                                  sizeof(runner_tests_) / sizeof(*runner_tests_), argc, argv); \
        }
