/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the n-th allocation or system call fail. The linker leads those of the project (not of
 * libraries) here; which they are says the table in fail.c, and FAILING in the Makefile. A scenario
 * is run for n = 1, 2, 3 ... until it ends before its n-th call:
 *
 *      for (uint64_t n = 1; fail_begin(n, FAIL_ANY_THREAD), scenario(), fail_end(); n++)
 *              ;
 *
 * Between the two, functions of Check do not count, but a scenario should assert nothing that a
 * failure makes wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum fail_scope { FAIL_ANY_THREAD, FAIL_THIS_THREAD };

void fail_begin(uint64_t n, enum fail_scope scope); /* the n-th call from now on, once */
bool fail_happened(void);
bool fail_end(void);         /* no more; returns whether it has happened */
const char *fail_name(void); /* of the function that failed last */
