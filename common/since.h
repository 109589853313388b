/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as `since` has them. Pure. */
#pragma once

#include <stdint.h>

/*
 * Reads a point in time: RFC 3339 ("2026-11-24T08:00:00Z", "2026-11-24T09:00:00.5+01:00"), a day
 * ("2026-11-24": its begin in UTC), or how long ago, a whole number with s, m, h, d or w behind it
 * ("12h", "7d"). now_ns and *ret_ns are nanoseconds since 1970. -EINVAL.
 */
int since_parse(const char *text, int64_t now_ns, int64_t *ret_ns);
