/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/json_line.h"

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

/* Reproducible bytes (xorshift64). */
static uint64_t chance = 88172645463325252u;

static uint64_t next_chance(void) {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        return chance ^= chance << 17;
}

/* ---- Strings --------------------------------------------------------------------------------- */

static json_t *parse_string(const void *bytes, size_t size) {
        char *text = malloc(json_line_string_most(size));
        char *end = json_line_string(text, bytes, size);
        json_t *value = json_loadb(text, (size_t)(end - text), JSON_DECODE_ANY | JSON_ALLOW_NUL,
                                   NULL);

        ck_assert_uint_le((size_t)(end - text), json_line_string_most(size));
        ck_assert_msg(json_is_string(value), "not JSON: %.*s", (int)(end - text), text);
        free(text);
        return value;
}

/* What Python makes of the bytes: .decode("utf-8", "replace"). */
static const struct {
        const char *bytes, *shown;
} names[] = {
#define R "\xef\xbf\xbd"
        { "", "" },
        { "loss/train", "loss/train" },
        { "\"\\\x01\x1f\x7f\b\f\n\r\t</script>", "\"\\\x01\x1f\x7f\b\f\n\r\t</script>" },
        { "\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbf", "\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbf" },
        { "a\xff"
          "b",
          "a" R "b" },
        { "\xe2\x82", R },
        { "\xe2\x28\xa1", R "\x28" R },
        { "\xf0\x9f\x98", R },
        { "\xed\xa0\x80", R R R },
        { "\xc0\xaf", R R },
        { "\xf4\x90\x80\x80", R R R R },
        { "\xf0\x80\x80\x80", R R R R },
        { "\xe0\x9f\xbf", R R R },
        { "\xf8\x88\x80\x80\x80", R R R R R },
        { "x\xc3", "x" R },
        { "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A" },
};

START_TEST(strings_as_python_decodes_them) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                json_t *value = parse_string(names[i].bytes, strlen(names[i].bytes));

                ck_assert_str_eq(json_string_value(value), names[i].shown);
                ck_assert_int_eq(json_line_is_utf8(names[i].bytes, strlen(names[i].bytes)),
                                 strcmp(names[i].bytes, names[i].shown) == 0);
                json_decref(value);
        }
}
END_TEST

START_TEST(any_bytes_are_json) {
        uint8_t bytes[24];

        for (int i = 0; i < 100000; i++) {
                size_t size = next_chance() % sizeof(bytes);
                json_t *value, *same;

                for (size_t j = 0; j < size; j++)
                        bytes[j] = next_chance() % 3 ? (uint8_t)(0x80 | next_chance())
                                                     : (uint8_t)next_chance();
                value = parse_string(bytes, size);
                /* jansson has its own opinion of what UTF-8 is. */
                same = json_stringn((const char *)bytes, size);
                ck_assert_int_eq(json_line_is_utf8(bytes, size), same != NULL);
                if (same)
                        ck_assert(json_equal(value, same));
                json_decref(value);
                json_decref(same);
        }
}
END_TEST

START_TEST(hex_and_keys) {
        char text[64];

        *json_line_hex(text, "\x00\xff\x1a", 3) = '\0';
        ck_assert_str_eq(text, "\"00ff1a\"");
        *json_line_key(text, "step") = '\0';
        ck_assert_str_eq(text, ",\"step\":");
}
END_TEST

/* ---- Numbers --------------------------------------------------------------------------------- */

static const char *shown(double value) {
        static char text[JSON_LINE_NUMBER_MOST + 1];

        *json_line_double(text, value) = '\0';
        return text;
}

START_TEST(whole_numbers) {
        char text[32];

        *json_line_signed(text, INT64_MIN) = '\0';
        ck_assert_str_eq(text, "-9223372036854775808");
        *json_line_signed(text, INT64_MAX) = '\0';
        ck_assert_str_eq(text, "9223372036854775807");
        *json_line_unsigned(text, UINT64_MAX) = '\0';
        ck_assert_str_eq(text, "18446744073709551615");
        *json_line_signed(text, 0) = '\0';
        ck_assert_str_eq(text, "0");
}
END_TEST

/* Python's repr() of each. */
START_TEST(doubles_as_python_shows_them) {
        static const struct {
                double value;
                const char *text;
        } cases[] = {
                { 0.0, "0.0" },
                { -0.0, "-0.0" },
                { 1, "1.0" },
                { -1.5, "-1.5" },
                { 0.1, "0.1" },
                { 0.1f, "0.10000000149011612" },
                { 1.0 / 3, "0.3333333333333333" },
                { 0x1.5555555555556p-2, "0.33333333333333337" },
                { 1714557600.25, "1714557600.25" },
                { 100, "100.0" },
                { 1e15, "1000000000000000.0" },
                { 9999999999999998, "9999999999999998.0" },
                { 1e16, "1e+16" },
                { 1.5e300, "1.5e+300" },
                { 0.0001, "0.0001" },
                { 0.00001, "1e-05" },
                { 1.5e-7, "1.5e-07" },
                { 9007199254740993.0, "9007199254740992.0" },
                { 2251799813685248.5, "2251799813685248.5" },
                { 5e-324, "5e-324" },
                { 2.2250738585072014e-308, "2.2250738585072014e-308" },
                { 1.7976931348623157e308, "1.7976931348623157e+308" },
                { 3.4028234663852886e+38, "3.4028234663852886e+38" },
                { NAN, "\"NaN\"" },
                { INFINITY, "\"Infinity\"" },
                { -INFINITY, "\"-Infinity\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                ck_assert_str_eq(shown(cases[i].value), cases[i].text);
}
END_TEST

static int digits_of(const char *text) {
        int count = 0, zeros = 0;

        for (; *text && *text != 'e'; text++) {
                if (*text < '0' || *text > '9' || (count == 0 && *text == '0'))
                        continue;
                count++;
                zeros = *text == '0' ? zeros + 1 : 0;
        }
        return count - zeros;
}

/* The C library's way to the same: the smallest precision that reads back. */
static void check_double(double value) {
        const char *text = shown(value);
        char libc[40];
        int precision = 1;

        ck_assert_msg(strtod(text, NULL) == value, "%a is shown as %s", value, text);
        do
                snprintf(libc, sizeof(libc), "%.*e", precision - 1, value);
        while (strtod(libc, NULL) != value && precision++ < 17);
        ck_assert_msg(digits_of(text) == digits_of(libc), "%s is longer than %s", text, libc);
}

START_TEST(doubles_read_back_and_are_short) {
        for (int i = 0; i < 50000; i++) {
                uint64_t bits = next_chance();
                uint32_t half = (uint32_t)bits;
                double value;
                float single;

                memcpy(&value, &bits, sizeof(value));
                memcpy(&single, &half, sizeof(single));
                if (isfinite(value) && value != 0)
                        check_double(value);
                if (isfinite(single) && single != 0)
                        check_double(single);
                check_double((double)(bits >> 11) * 0x1p-53 + 1e-9);
                check_double(1714557600 + (double)(bits >> 40) * 0.001);
                check_double((double)(bits >> (bits & 63)) / 1000 + 1);
        }
}
END_TEST

START_TEST(neighbours_of_powers) {
        for (int exponent = -30; exponent < 30; exponent++) {
                for (int step = -3; step <= 3; step++) {
                        double ten = pow(10, exponent), two = ldexp(1, exponent * 2);

                        for (int i = 0; i < abs(step); i++) {
                                ten = nextafter(ten, step < 0 ? 0 : INFINITY);
                                two = nextafter(two, step < 0 ? 0 : INFINITY);
                        }
                        check_double(ten);
                        check_double(two);
                }
        }
}
END_TEST

RUNNER_MAIN("client/json_line", strings_as_python_decodes_them, any_bytes_are_json, hex_and_keys,
            whole_numbers, doubles_as_python_shows_them, doubles_read_back_and_are_short,
            neighbours_of_powers)
