/* SPDX-License-Identifier: Apache-2.0 */
#include "common/since.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "common/base.h"

#define NS_PER_S INT64_C(1000000000)
#define AGO_MOST_S (INT64_C(100) * 366 * 86400)

/* Exactly so many digits. NULL: they are not there. */
static const char *read_digits(const char *text, unsigned digits, int *ret_number) {
        *ret_number = 0;
        for (; digits > 0; digits--, text++) {
                if (!isdigit((unsigned char)*text))
                        return NULL;
                *ret_number = *ret_number * 10 + (*text - '0');
        }
        return text;
}

static const char *read_char(const char *text, const char *allowed) {
        return text && *text && strchr(allowed, *text) ? text + 1 : NULL;
}

/* ".5" and the like, as nanoseconds; what is finer is cut off. */
static const char *read_fraction(const char *text, int64_t *ret_ns) {
        int64_t unit = NS_PER_S / 10;

        *ret_ns = 0;
        if (!text || *text != '.')
                return text;
        if (!isdigit((unsigned char)*++text))
                return NULL;
        for (; isdigit((unsigned char)*text); text++, unit /= 10)
                *ret_ns += unit * (*text - '0');
        return text;
}

/* "Z" or "+01:00", as seconds that the clock there is ahead. */
static const char *read_zone(const char *text, int *ret_ahead_s) {
        int hours, minutes, sign = text && *text == '-' ? -1 : 1;

        *ret_ahead_s = 0;
        if (text && (*text == 'Z' || *text == 'z'))
                return text + 1;
        text = read_char(text, "+-");
        text = text ? read_char(read_digits(text, 2, &hours), ":") : NULL;
        text = text ? read_digits(text, 2, &minutes) : NULL;
        if (!text || hours > 23 || minutes > 59)
                return NULL;
        *ret_ahead_s = sign * (hours * 3600 + minutes * 60);
        return text;
}

static bool is_date(const struct tm *time) {
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        int year = time->tm_year + 1900;
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return year >= 1970 && year <= 2261 && time->tm_mon >= 0 && time->tm_mon < 12 &&
               time->tm_mday >= 1 &&
               time->tm_mday <= days[time->tm_mon] + (leap && time->tm_mon == 1);
}

static const char *read_date(const char *text, struct tm *ret_time) {
        text = read_char(read_digits(text, 4, &ret_time->tm_year), "-");
        text = text ? read_char(read_digits(text, 2, &ret_time->tm_mon), "-") : NULL;
        text = text ? read_digits(text, 2, &ret_time->tm_mday) : NULL;
        ret_time->tm_year -= 1900;
        ret_time->tm_mon--;
        return text && is_date(ret_time) ? text : NULL;
}

static const char *read_clock(const char *text, struct tm *ret_time) {
        text = read_char(read_digits(text, 2, &ret_time->tm_hour), ":");
        text = text ? read_char(read_digits(text, 2, &ret_time->tm_min), ":") : NULL;
        text = text ? read_digits(text, 2, &ret_time->tm_sec) : NULL;
        return text && ret_time->tm_hour < 24 && ret_time->tm_min < 60 && ret_time->tm_sec <= 60
                       ? text
                       : NULL;
}

static int parse_date(const char *text, int64_t *ret_ns) {
        struct tm time = { 0 };
        int64_t fraction_ns = 0;
        int ahead_s = 0;

        text = read_date(text, &time);
        if (text && *text) {
                text = read_char(text, "Tt ");
                text = text ? read_clock(text, &time) : NULL;
                text = read_zone(read_fraction(text, &fraction_ns), &ahead_s);
        }
        if (!text || *text)
                return -EINVAL;
        *ret_ns = ((int64_t)timegm(&time) - ahead_s) * NS_PER_S + fraction_ns;
        return 0;
}

static int parse_ago(const char *text, int64_t now_ns, int64_t *ret_ns) {
        static const struct {
                char unit;
                int64_t seconds;
        } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 7 * 86400 } };
        int64_t number = 0;

        for (; isdigit((unsigned char)*text); text++) {
                number = number * 10 + (*text - '0');
                if (number > AGO_MOST_S)
                        return -EINVAL;
        }
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                if (*text != units[i].unit || text[1])
                        continue;
                if (number * units[i].seconds > AGO_MOST_S)
                        return -EINVAL;
                *ret_ns = now_ns - number * units[i].seconds * NS_PER_S;
                return 0;
        }
        return -EINVAL;
}

int since_parse(const char *text, int64_t now_ns, int64_t *ret_ns) {
        size_t digits = strspn(text, "0123456789");

        if (digits == 0)
                return -EINVAL;
        return text[digits] == '-' ? parse_date(text, ret_ns) : parse_ago(text, now_ns, ret_ns);
}
