/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. Each function fills a text that the caller gives, and returns it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HUMAN_SIZE 32

const char *human_bytes(char text[HUMAN_SIZE],
                        uint64_t bytes); /* "42 KB", "1.8 GB": powers of 1000 */
const char *human_count(char text[HUMAN_SIZE], int64_t count);  /* "18 400" */
const char *human_age(char text[HUMAN_SIZE], double seconds);   /* "12 s", "5 min", "3 h", "2 d" */
const char *human_clock(char text[HUMAN_SIZE], double seconds); /* "0:07", "1:02:03" */

/* "$0.0002", "$12.30"; "$0" of nothing */
const char *human_dollars(char text[HUMAN_SIZE], double dollars);

/*
 * Prepares bytes of storage for a terminal: what is no printable UTF-8 becomes "?", so that a name
 * can move no cursor. The caller frees it; NULL: out of memory.
 */
char *human_name(const char *bytes, size_t size);
