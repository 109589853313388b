/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a JSON line, written straight into memory that the caller has reserved. Writing
 * only; reading JSON is jansson's. Each function returns the end of what it wrote.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_LINE_NUMBER_MOST 32 /* bytes of any number */

/* Bytes that a string of that size takes at most: every byte may become six. */
static inline size_t json_line_string_most(size_t size) {
        return 6 * size + 2;
}

/*
 * A string with its quotes. What is not UTF-8 becomes U+FFFD, one for each maximal part, as Unicode
 * recommends.
 */
char *json_line_string(char *out, const void *bytes, size_t size);

/* True if the bytes are UTF-8: json_line_string() then says them exactly. */
bool json_line_is_utf8(const void *bytes, size_t size);

/* A string of hexadecimal digits with its quotes: 2 * size + 2 bytes. */
char *json_line_hex(char *out, const void *bytes, size_t size);

/* "KEY": of a member that is not the first: the comma in front, the colon behind. */
char *json_line_key(char *out, const char *key);

char *json_line_unsigned(char *out, uint64_t value);
char *json_line_signed(char *out, int64_t value);

/*
 * The shortest decimal that reads back to the same double, always with a point or an exponent (so
 * that -0.0 keeps its sign and a reader its type); "NaN", "Infinity", "-Infinity" with quotes.
 */
char *json_line_double(char *out, double value);
