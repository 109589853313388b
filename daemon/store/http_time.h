/* SPDX-License-Identifier: Apache-2.0 */
/* Times as HTTP writes them: RFC 9110, 5.6.7, "Sun, 06 Nov 1994 08:49:37 GMT" and older forms. */
#pragma once

#include <stdint.h>

/* Nanoseconds since 1970; INT64_MIN: it is no such time, or none that fits. */
int64_t http_time_parse(const char *text);
