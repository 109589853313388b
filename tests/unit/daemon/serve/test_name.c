/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Python's bytes.decode("utf-8") accepts must be shown as it is; the strings here were checked
 * with it.
 */
#include "daemon/serve/name.h"

#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

static void check(const char *bytes, size_t size, const char *expected, const char *expected_hex) {
        json_t *object = json_object();

        ck_assert_int_eq(name_set(object, "tag", bytes, size), 0);
        ck_assert_str_eq(json_string_value(json_object_get(object, "tag")), expected);
        if (expected_hex)
                ck_assert_str_eq(json_string_value(json_object_get(object, "tag_hex")),
                                 expected_hex);
        else
                ck_assert_ptr_null(json_object_get(object, "tag_hex"));
        json_decref(object);
}

START_TEST(text_is_shown_as_it_is) {
        static const char *const texts[] = { "",
                                             "loss",
                                             "a\nb\"",
                                             "Gr\xC3\xB6\xC3\x9Fx",
                                             "\xE6\x97\xA5",
                                             "\xF0\x9F\x98\x80",
                                             "\xF4\x8F\xBF\xBF" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                check(texts[i], strlen(texts[i]), texts[i], NULL);
}
END_TEST

START_TEST(other_bytes_are_replaced_and_told) {
        check("a\xff"
              "b",
              3,
              "a\xEF\xBF\xBD"
              "b",
              "61ff62");
        check("\xC3", 1, "\xEF\xBF\xBD", "c3");
        check("\xC0\x80", 2, "\xEF\xBF\xBD\xEF\xBF\xBD", "c080");                   /* overlong */
        check("\xED\xA0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", "eda080"); /* surrogate */
        check("\xF4\x90\x80\x80", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD",
              "f4908080");
        check("a\0b", 3,
              "a\xEF\xBF\xBD"
              "b",
              "610062");
}
END_TEST

START_TEST(hex_is_read_back) {
        size_t size;
        char *bytes = name_from_hex("00fFa1", 6, &size);

        ck_assert_ptr_nonnull(bytes);
        ck_assert_uint_eq(size, 3);
        ck_assert_mem_eq(bytes, "\x00\xff\xa1", 4);
        free(bytes);
        ck_assert_ptr_null(name_from_hex("0", 1, &size));
        ck_assert_ptr_null(name_from_hex("0g", 2, &size));
        bytes = name_from_hex("", 0, &size);
        ck_assert_str_eq(bytes, "");
        free(bytes);
}
END_TEST

RUNNER_MAIN("serve/name", text_is_shown_as_it_is, other_bytes_are_replaced_and_told,
            hex_is_read_back)
