/* SPDX-License-Identifier: Apache-2.0 */
#include "common/source_url.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "tests/unit/runner.h"

static const struct {
        const char *url, *normal; /* NULL: -EINVAL */
} cases[] = {
        { "/data/logs", "/data/logs" },
        { "/data//logs///", "/data/logs" },
        { "/data/./logs/.", "/data/logs" },
        { "/no-such/a/../b", "/no-such/b" },
        { "/../../no-such", "/no-such" },
        { "/", "/" },
        { "//", "/" },
        { "/a...b/..c/", "/a...b/..c" },
        { "file:///data/logs/", "/data/logs" },
        { "FILE:///data/logs", "/data/logs" },
        { "file://localhost/data", "/data" },
        { "file:/data", "/data" },
        { "file:///a%20b%2fc", "/a b/c" },
        { "file:///a%2", "/a%2" },
        { "file:///a%zz", "/a%zz" },
        { "file://other/data", NULL },
        { "file:///a%00b", NULL },
        { "/a%20b", "/a%20b" },
        { "HTTP://Example.COM/Path/", "http://example.com/Path" },
        { "http://example.com", "http://example.com" },
        { "http://example.com/", "http://example.com" },
        { "http://example.com:80/x", "http://example.com/x" },
        { "https://example.com:443/x", "https://example.com/x" },
        { "http://example.com:443/x", "http://example.com:443/x" },
        { "http://[::1]:8080/x", "http://[::1]:8080/x" },
        { "https://me:pass%40@host/x?token=1#here", "https://host/x" },
        { "https://a@b@host/x", "https://host/x" },
        { "https://host/a@b", "https://host/a@b" },
        { "https://host?token=a/b", "https://host" },
        { "s3://Bucket/a//b/", "s3://bucket/a//b" },
        { "http:///x", NULL },
        { "http://user@/x", NULL },
        { "", NULL },
};

static void check_normal_form(const char *url, const char *expected) {
        char *normal = NULL;
        int r = source_url_normalize(url, &normal);

        if (!expected) {
                ck_assert_msg(r == -EINVAL && !normal, "%s is taken", url);
                return;
        }
        ck_assert_msg(r == 0, "%s is refused", url);
        ck_assert_str_eq(normal, expected);
        free(normal);
}

START_TEST(normal_form) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_normal_form(cases[i].url, cases[i].normal);
}
END_TEST

START_TEST(normal_form_is_stable) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                if (cases[i].normal)
                        check_normal_form(cases[i].normal, cases[i].normal);
        }
}
END_TEST

START_TEST(relative_path) {
        char *normal = NULL;

        ck_assert_int_eq(chdir("/usr"), 0);
        ck_assert_int_eq(source_url_normalize("./no-such//x", &normal), 0);
        ck_assert_str_eq(normal, "/usr/no-such/x");
        free(normal);
}
END_TEST

/* "link/.." is where the link leads, as it is for every program that opens it. */
START_TEST(dot_dot_behind_a_link) {
        char directory[] = "/tmp/source-url-XXXXXX";
        char inner[64], link[64], url[96], *normal = NULL;

        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(inner, sizeof(inner), "%s/a", directory);
        snprintf(link, sizeof(link), "%s/link", directory);
        snprintf(url, sizeof(url), "%s/link/../bin", directory);
        ck_assert_int_eq(mkdir(inner, 0700), 0);
        ck_assert_int_eq(symlink("/usr/lib", link), 0);
        ck_assert_int_eq(source_url_normalize(url, &normal), 0);
        ck_assert_str_eq(normal, "/usr/bin");
        free(normal);
        unlink(link);
        rmdir(inner);
        rmdir(directory);
}
END_TEST

START_TEST(below) {
        size_t size = 99;

        ck_assert(source_url_is_below("/data", "/data", &size));
        ck_assert_uint_eq(size, 5);
        ck_assert(source_url_is_below("/data", "/data/a/b", &size));
        ck_assert_uint_eq(size, 6);
        ck_assert(source_url_is_below("/", "/data", &size));
        ck_assert_uint_eq(size, 1);
        ck_assert(source_url_is_below("http://host", "http://host/x", &size));
        size = 99;
        ck_assert(!source_url_is_below("/data", "/database", &size));
        ck_assert(!source_url_is_below("/data/a", "/data", &size));
        ck_assert(!source_url_is_below("http://host", "http://hosts/x", &size));
        ck_assert_uint_eq(size, 99);
}
END_TEST

START_TEST(scheme) {
        ck_assert(source_url_has_scheme("http://host"));
        ck_assert(!source_url_has_scheme("/data"));
        ck_assert(!source_url_has_scheme("/http://host"));
}
END_TEST

START_TEST(link_local_in_any_notation) {
        static const char *const yes[] = {
                "http://169.254.169.254/latest",
                "https://u:p@169.254.0.1:80",
                "HTTP://0xA9FEA9FE/",
                "http://2852039166/",
                "http://[fe80::1]:80/x",
                "http://[::ffff:169.254.1.1]/",
                "http://169.254.43518",
        };
        static const char *const no[] = {
                "http://169.253.0.1/",        "http://example.org/169.254.1.1",
                "https://[fd00::1]/",         "/169.254.169.254",
                "s3://169.254.1.1/x",         "http://",
                "http://169.254.1.1.example/"
        };

        for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
                ck_assert_msg(source_url_is_link_local(yes[i]), "%s", yes[i]);
        for (size_t i = 0; i < ARRAY_SIZE(no); i++)
                ck_assert_msg(!source_url_is_link_local(no[i]), "%s", no[i]);
}
END_TEST

RUNNER_MAIN("common/source_url", normal_form, normal_form_is_stable, relative_path,
            dot_dot_behind_a_link, below, scheme, link_local_in_any_notation)
