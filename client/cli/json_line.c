/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/json_line.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/utf8.h"

/* ---- Strings --------------------------------------------------------------------------------- */

bool json_line_is_utf8(const void *bytes, size_t size) {
        const uint8_t *at = bytes, *end = at + size;

        while (at < end) {
                size_t want, part = utf8_part(at, (size_t)(end - at), &want);

                if (part < want)
                        return false;
                at += part;
        }
        return true;
}

static char *put_control(char *out, uint8_t c) {
        static const char hex[] = "0123456789abcdef";
        static const char shorts[32] = {
                ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
        };

        *out++ = '\\';
        if (shorts[c]) {
                *out++ = shorts[c];
                return out;
        }
        memcpy(out, "u00", 3);
        out[3] = hex[c >> 4];
        out[4] = hex[c & 15];
        return out + 5;
}

static char *put_ascii(char *out, uint8_t c) {
        if (c < 0x20)
                return put_control(out, c);
        if (c == '"' || c == '\\')
                *out++ = '\\';
        *out++ = (char)c;
        return out;
}

char *json_line_string(char *out, const void *bytes, size_t size) {
        const uint8_t *at = bytes, *end = at + size;

        *out++ = '"';
        while (at < end) {
                size_t want, part;

                if (*at < 0x80) {
                        out = put_ascii(out, *at++);
                        continue;
                }
                part = utf8_part(at, (size_t)(end - at), &want);
                memcpy(out, part == want ? (const char *)at : "\xef\xbf\xbd",
                       part == want ? part : 3);
                out += part == want ? part : 3;
                at += part;
        }
        *out++ = '"';
        return out;
}

char *json_line_hex(char *out, const void *bytes, size_t size) {
        static const char hex[] = "0123456789abcdef";
        const uint8_t *at = bytes;

        *out++ = '"';
        for (size_t i = 0; i < size; i++) {
                *out++ = hex[at[i] >> 4];
                *out++ = hex[at[i] & 15];
        }
        *out++ = '"';
        return out;
}

char *json_line_key(char *out, const char *key) {
        size_t size = strlen(key);

        *out++ = ',';
        *out++ = '"';
        memcpy(out, key, size);
        memcpy(out + size, "\":", 2);
        return out + size + 2;
}

/* ---- Whole numbers --------------------------------------------------------------------------- */

/* Writes the digits of value; returns how many. */
static size_t put_digits(char digits[20], uint64_t value) {
        char reversed[20];
        size_t count = 0;

        do
                reversed[count++] = (char)('0' + value % 10);
        while (value /= 10);
        for (size_t i = 0; i < count; i++)
                digits[i] = reversed[count - 1 - i];
        return count;
}

char *json_line_unsigned(char *out, uint64_t value) {
        return out + put_digits(out, value);
}

char *json_line_signed(char *out, int64_t value) {
        if (value < 0)
                *out++ = '-';
        return json_line_unsigned(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* ---- Doubles --------------------------------------------------------------------------------- */

/* value = digits (count of them, without zeros at the end) * 10^exponent */
struct decimal {
        uint64_t digits;
        int exponent;
};

static const uint64_t power_of_ten[] = {
        1,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000u,
};

static unsigned __int128 wide_power_of_ten(int exponent) {
        return exponent < 20 ? power_of_ten[exponent]
                             : (unsigned __int128)power_of_ten[19] * power_of_ten[exponent - 19];
}

/*
 * The shortest decimal, exactly, in 128-bit arithmetic, for 1e-5 <= value < 1e17. value is m *
 * 2^-shift; everything between the middles to its two neighbours reads back as value (the middles
 * too where m is even). Scaled by 10^scale to 17 or 18 whole digits, digits are cut off as long as
 * a multiple of ten is left between the bounds, and the one nearest to value is taken.
 */
static struct decimal shortest_of_common(double value) {
        uint64_t bits, m, low, high, middle, up;
        unsigned __int128 factor, product, mask;
        int shift, scale, cut = 0;
        bool even;

        memcpy(&bits, &value, sizeof(bits));
        m = (bits & ((1ull << 52) - 1)) | 1ull << 52;
        even = !(m & 1);
        /* In quarters of the last place, as a power of two has a nearer neighbour below. */
        shift = 1075 - (int)(bits >> 52) + 2;
        scale = 16 - (int)floor(log10(value));
        if (scale < 0)
                scale = 0;
        factor = wide_power_of_ten(scale);
        mask = shift > 0 ? ((unsigned __int128)1 << shift) - 1 : 0;

        product = (unsigned __int128)(4 * m - (m == 1ull << 52 ? 1 : 2)) * factor;
        low = (uint64_t)(product >> shift) + (even && !(product & mask) ? 0 : 1);
        product = (unsigned __int128)(4 * m + 2) * factor;
        high = (uint64_t)(product >> shift) - (even || product & mask ? 0 : 1);
        product = (unsigned __int128)(4 * m) * factor;
        middle = (uint64_t)(product >> shift);
        up = (product & mask) > mask / 2 + 1 || ((product & mask) == mask / 2 + 1 && middle & 1);

        for (uint64_t power = 10; (high / power) * power >= low && high / power > 0; power *= 10)
                cut++;
        if (cut > 0) {
                uint64_t power = power_of_ten[cut], rest = middle % power;
                bool exact = !(product & mask);

                middle /= power;
                up = rest > power / 2 || (rest == power / 2 && (!exact || middle & 1));
                low = (low + power - 1) / power;
                high /= power;
        }
        middle += up;
        if (middle < low)
                middle = low;
        if (middle > high)
                middle = high;
        return (struct decimal){ middle, cut - scale };
}

/*
 * Any finite positive value: asks the C library for 15, 16 and 17 digits (fewer where the format is
 * short of bits).
 */
static struct decimal shortest_of_rare(double value) {
        struct decimal decimal = { 0 };
        char text[40];

        for (int digits = value < DBL_MIN ? 0 : 14; digits <= 16; digits++) {
                snprintf(text, sizeof(text), "%.*e", digits, value);
                if (strtod(text, NULL) == value)
                        break;
        }
        for (const char *c = text; *c != 'e'; c++) {
                if (*c == '.')
                        continue;
                decimal.digits = decimal.digits * 10 + (uint64_t)(*c - '0');
        }
        decimal.exponent = atoi(strchr(text, 'e') + 1);
        if (text[1] == '.')
                decimal.exponent -= (int)(strchr(text, 'e') - text - 2);
        return decimal;
}

static char *put_decimal(char *out, struct decimal decimal) {
        char digits[20];
        int count, point;

        while (decimal.digits % 10 == 0) {
                decimal.digits /= 10;
                decimal.exponent++;
        }
        count = (int)put_digits(digits, decimal.digits);
        point = count + decimal.exponent; /* digits before the point */
        if (point < -3 || point > 16) {
                *out++ = digits[0];
                if (count > 1) {
                        *out++ = '.';
                        memcpy(out, digits + 1, (size_t)count - 1);
                        out += count - 1;
                }
                return out + sprintf(out, "e%+03d", point - 1);
        }
        if (point <= 0) {
                memcpy(out, "0.000", 5);
                out += 2 - point;
                memcpy(out, digits, (size_t)count);
                return out + count;
        }
        if (point >= count) {
                memcpy(out, digits, (size_t)count);
                memset(out + count, '0', (size_t)(point - count));
                memcpy(out + point, ".0", 2);
                return out + point + 2;
        }
        memcpy(out, digits, (size_t)point);
        out[point] = '.';
        memcpy(out + point + 1, digits + point, (size_t)(count - point));
        return out + count + 1;
}

char *json_line_double(char *out, double value) {
        if (isnan(value))
                return (char *)memcpy(out, "\"NaN\"", 5) + 5;
        if (isinf(value))
                return out + sprintf(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        if (signbit(value)) {
                *out++ = '-';
                value = -value;
        }
        if (value == 0)
                return (char *)memcpy(out, "0.0", 3) + 3;
        if (value >= 1e-5 && value < 1e16)
                return put_decimal(out, shortest_of_common(value));
        return put_decimal(out, shortest_of_rare(value));
}
