/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding of names and values, and back (RFC 3986, section 2). */
#pragma once

#include <stddef.h>
#include <stdio.h>

/*
 * Decodes %XX in place; a % without two digits stands for itself. Returns the new size; what is
 * behind it is a NUL if there was one. The result may hold NULs.
 */
size_t percent_decode(char *text, size_t size);

/* The same for application/x-www-form-urlencoded: a plus is a space, too. */
size_t percent_decode_form(char *text, size_t size);

/* Writes a value of a query, encoded (RFC 3986: all but unreserved characters). */
void percent_write(FILE *out, const char *text, size_t size);

/* The same for a path, whose slashes stay. */
void percent_write_path(FILE *out, const char *text, size_t size);
