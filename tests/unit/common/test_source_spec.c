/* SPDX-License-Identifier: Apache-2.0 */
#include "common/source_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static void check(const char *text, size_t count, const char *const *names,
                  const char *const *urls) {
        struct source_spec spec = { 0 };

        ck_assert_msg(source_spec_parse(text, &spec) == 0, "%s", text);
        ck_assert_uint_eq(spec.count, count);
        for (size_t i = 0; i < count; i++) {
                ck_assert_pstr_eq(spec.items[i].name, names[i]);
                ck_assert_str_eq(spec.items[i].url, urls[i]);
        }
        source_spec_deinit(&spec);
}

#define LIST(...) \
        (const char *const[]) { \
                __VA_ARGS__ \
        }

START_TEST(one_and_several) {
        check("runs", 1, LIST(NULL), LIST("runs"));
        check("/a,b", 1, LIST(NULL), LIST("/a,b"));
        check("s3://b/p,q", 1, LIST(NULL), LIST("s3://b/p,q"));
        check("/a:b,c", 1, LIST(NULL), LIST("/a:b,c"));
        check("file:/x", 1, LIST(NULL), LIST("file:/x"));
        check("https://h:80/x", 1, LIST(NULL), LIST("https://h:80/x"));
        check("a:/x", 1, LIST("a"), LIST("/x"));
        check("a:/x,b:s3://y/z", 2, LIST("a", "b"), LIST("/x", "s3://y/z"));
        check("a:/x:y,http://h/z", 2, LIST("a", NULL), LIST("/x:y", "http://h/z"));
        check("a:file:/x,rel", 2, LIST("a", NULL), LIST("file:/x", "rel"));
}
END_TEST

START_TEST(wrong_ones) {
        static const char *const wrong[] = { "a:", "a:/x,", "a:/x,,b:/y", "a:/x,b:", "a:/x,a:/y" };
        struct source_spec spec = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                ck_assert_msg(source_spec_parse(wrong[i], &spec) == -EINVAL, "%s", wrong[i]);
        ck_assert_ptr_null(spec.items);
}
END_TEST

START_TEST(a_path_that_is_there) {
        CLEANUP(close_fdp) int fd = -1;
        char directory[] = "/tmp/headrace-spec-XXXXXX";

        ck_assert_ptr_nonnull(mkdtemp(directory));
        ck_assert_int_eq(chdir(directory), 0);
        fd = open("a:x,b", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        check("a:x,b", 1, LIST(NULL), LIST("a:x,b"));
        check("a:x,c", 2, LIST("a", NULL), LIST("x", "c"));
        ck_assert_int_eq(unlink("a:x,b"), 0);
        ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(without_memory) {
        struct source_spec spec = { 0 };

        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_ANY_THREAD);
                r = source_spec_parse("a:/x,b:/y", &spec);
                if (!fail_end()) {
                        ck_assert_int_eq(r, 0);
                        break;
                }
                ck_assert_int_eq(r, -ENOMEM);
        }
        source_spec_deinit(&spec);
}
END_TEST

RUNNER_MAIN("common/source_spec", one_and_several, wrong_ones, a_path_that_is_there, without_memory)
