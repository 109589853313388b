/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/iso_time.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS 1000000000

/* ".123", up to nanoseconds; moves *at behind it. */
static int64_t fraction_ns(const char **at) {
        int64_t unit_ns = NS, sum_ns = 0;

        if (**at != '.')
                return 0;
        for ((*at)++; isdigit((unsigned char)**at); (*at)++) {
                unit_ns /= 10;
                sum_ns += unit_ns * (**at - '0');
        }
        return sum_ns;
}

/* "Z", "+01:00", "-0530", or nothing, which is UTC too. False: something else. */
static bool offset_s(const char *at, int64_t *ret_offset_s) {
        int hours, minutes, end = 0;

        *ret_offset_s = 0;
        if (*at == '\0' || strcmp(at, "Z") == 0)
                return true;
        if (*at != '+' && *at != '-')
                return false;
        if (sscanf(at + 1, "%2d:%2d%n", &hours, &minutes, &end) != 2 &&
            sscanf(at + 1, "%2d%2d%n", &hours, &minutes, &end) != 2)
                return false;
        *ret_offset_s = (*at == '-' ? -1 : 1) * ((int64_t)hours * 3600 + minutes * 60);
        return at[1 + end] == '\0';
}

int64_t iso_time_parse(const char *text) {
        struct tm parts = { 0 };
        const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
        int64_t time_s, ns, offset;

        if (!at)
                return INT64_MIN;
        ns = fraction_ns(&at);
        if (!offset_s(at, &offset))
                return INT64_MIN;
        time_s = (int64_t)timegm(&parts) - offset;
        if (time_s > INT64_MAX / NS - 1 || time_s < INT64_MIN / NS + 1)
                return INT64_MIN;
        return time_s * NS + ns;
}
