/* SPDX-License-Identifier: Apache-2.0 */
/* Times as object stores write them: ISO 8601 / RFC 3339, "2013-05-24T00:00:00.123Z". */
#pragma once

#include <stdint.h>

/* Nanoseconds since 1970; INT64_MIN: it is no such time. */
int64_t iso_time_parse(const char *text);
