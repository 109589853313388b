/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in JSON. Names are bytes; JSON knows only characters. A name is shown with U+FFFD in place
 * of what is no UTF-8 (or NUL, which many readers of JSON refuse), and then a member KEY_hex says
 * it exactly.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Sets object[key], and object[key_hex] where needed. 0, -ENOMEM. */
int name_set(json_t *object, const char *key, const char *bytes, size_t size);

/* The bytes as a JSON string of hex digits. NULL: no memory. */
json_t *name_hex(const void *bytes, size_t size);

/* Bytes of hex digits; the caller's, NUL-terminated. NULL: not hex, or no memory. */
char *name_from_hex(const char *hex, size_t hex_size, size_t *ret_size);

/* An id as 16 hex digits. NULL: no memory. */
json_t *name_id(uint64_t id);
