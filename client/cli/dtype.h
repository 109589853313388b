/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's data types: names, widths, and their elements as JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTYPE_FLOAT 1
#define DTYPE_STRING 7
#define DTYPE_INT64 9
#define DTYPE_BFLOAT16 14
#define DTYPE_HALF 19
#define DTYPE_UINT64 23
#define DTYPE_NAME_SIZE 16

/* "DT_FLOAT"; "DT_20" for one that has no name here. Fills the text where it needs one. */
const char *dtype_name(uint8_t dtype, char text[DTYPE_NAME_SIZE]);

uint32_t dtype_bytes(uint8_t dtype); /* of one element; 0: strings and unknown types */
bool dtype_is_real(uint8_t dtype);   /* its elements are one number each */

/*
 * Writes one element as JSON; complex ones are [re,im]. At most 2 * JSON_LINE_NUMBER_MOST + 3
 * bytes. Returns the end.
 */
char *dtype_put(char *out, uint8_t dtype, const void *element);
