/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-decoding of names in listings. Encoding is http_url.h's. */
#pragma once

#include <stddef.h>

/*
 * Decodes %XX in place; a % without two digits stands for itself. Returns the new size; what is
 * behind it is a NUL if there was one. The result may hold NULs.
 */
size_t percent_decode(char *text, size_t size);

/* The same for application/x-www-form-urlencoded: a plus is a space, too. */
size_t percent_decode_form(char *text, size_t size);
