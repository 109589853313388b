/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of TensorFlow's data types as JSON. */
#pragma once

#include <stdint.h>

#include "client/cli/json_line.h"

#define ELEMENT_TEXT_MOST (2 * JSON_LINE_NUMBER_MOST + 3)

/*
 * Writes one element of a type that has a width: a number; [re,im] of a complex one; the byte, as a
 * number, of a type of few bits. At most ELEMENT_TEXT_MOST bytes. Returns the end.
 */
char *element_text_put(char *out, uint8_t dtype, const void *element);
