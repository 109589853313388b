/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/human.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/json_line.h"
#include "common/base.h"

const char *human_bytes(char text[HUMAN_SIZE], uint64_t bytes) {
        static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB", "EB" };
        double value = (double)bytes;
        size_t unit = 0;

        /* 999.5 would be shown as 1000. */
        while (value >= 999.5 && unit + 1 < ARRAY_SIZE(units)) {
                value /= 1000;
                unit++;
        }
        snprintf(text, HUMAN_SIZE, unit > 0 && value < 9.95 ? "%.1f %s" : "%.0f %s", value,
                 units[unit]);
        return text;
}

const char *human_count(char text[HUMAN_SIZE], int64_t count) {
        char digits[24];
        size_t size = (size_t)snprintf(digits, sizeof(digits), "%llu",
                                       count < 0 ? -(unsigned long long)count
                                                 : (unsigned long long)count);
        char *out = text;

        if (count < 0)
                *out++ = '-';
        for (size_t i = 0; i < size; i++) {
                if (i > 0 && (size - i) % 3 == 0)
                        *out++ = ' ';
                *out++ = digits[i];
        }
        *out = '\0';
        return text;
}

const char *human_age(char text[HUMAN_SIZE], double seconds) {
        static const struct {
                double until, unit;
                const char *name;
        } steps[] = { { 120, 1, "s" },
                      { 7200, 60, "min" },
                      { 172800, 3600, "h" },
                      { INFINITY, 86400, "d" } };

        if (!(seconds >= 0))
                seconds = 0;
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                if (seconds < steps[i].until) {
                        snprintf(text, HUMAN_SIZE, "%.0f %s", floor(seconds / steps[i].unit),
                                 steps[i].name);
                        break;
                }
        }
        return text;
}

const char *human_dollars(char text[HUMAN_SIZE], double dollars) {
        int decimals = 2;

        /* One digit that is not 0, at least, down to a millionth. */
        for (double least = 0.01; dollars < least && decimals < 6; least /= 10)
                decimals++;
        if (dollars < 0.0000005)
                snprintf(text, HUMAN_SIZE, "$0");
        else
                snprintf(text, HUMAN_SIZE, "$%.*f", decimals, dollars);
        return text;
}

const char *human_clock(char text[HUMAN_SIZE], double seconds) {
        unsigned long total = seconds >= 0 && seconds < 3.6e6 ? (unsigned long)ceil(seconds)
                                                              : 3599999;

        if (total >= 3600)
                snprintf(text, HUMAN_SIZE, "%lu:%02lu:%02lu", total / 3600, total / 60 % 60,
                         total % 60);
        else
                snprintf(text, HUMAN_SIZE, "%lu:%02lu", total / 60, total % 60);
        return text;
}

char *human_name(const char *bytes, size_t size) {
        char *name = malloc(size + 1);
        bool is_text = json_line_is_utf8(bytes, size);

        if (!name)
                return NULL;
        for (size_t i = 0; i < size; i++) {
                uint8_t c = (uint8_t)bytes[i];

                /* C1 controls are two bytes in UTF-8, the first of them 0xc2. */
                if (c < 0x20 || c == 0x7f || (c >= 0x80 && !is_text) ||
                    (c == 0xc2 && (uint8_t)bytes[i + 1] < 0xa0))
                        name[i] = '?';
                else if (i > 0 && (uint8_t)bytes[i - 1] == 0xc2 && c < 0xa0 && c >= 0x80)
                        name[i] = '?';
                else
                        name[i] = (char)c;
        }
        name[size] = '\0';
        return name;
}
