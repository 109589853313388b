/* SPDX-License-Identifier: Apache-2.0 */
#include "common/settings_id.h"

#include "common/base.h"
#include "tests/unit/runner.h"

/*
 * Expected ids are of the xxhsum tool (xxhash 0.8.1): printf 'AWS_PROFILE=a\0S3_ENDPOINT=b' |
 * xxhsum -H3
 */
#define ID_OF_NOTHING 0x2d06800538d394c2u
#define ID_OF_TWO 0x17cad3022ec448d7u

static uint64_t id(char *const *environment) {
        uint64_t value = 0;

        ck_assert_int_eq(settings_id_compute(environment, &value), 0);
        return value;
}

START_TEST(nothing_set) {
        char *const none[] = { NULL };
        char *const others[] = { "HOME=/x",        "AWS=1", "xAWS_PROFILE=a", "AWS_", "S3=",
                                 "http_proxy_x=1", NULL };

        ck_assert_uint_eq(id(none), ID_OF_NOTHING);
        ck_assert_uint_eq(id(others), ID_OF_NOTHING);
}
END_TEST

START_TEST(order_does_not_matter) {
        char *const one[] = { "S3_ENDPOINT=b", "HOME=/x", "AWS_PROFILE=a", NULL };
        char *const other[] = { "AWS_PROFILE=a", "S3_ENDPOINT=b", "AWS_PROFILE=shadowed", NULL };

        ck_assert_uint_eq(id(one), ID_OF_TWO);
        ck_assert_uint_eq(id(other), ID_OF_TWO);
}
END_TEST

START_TEST(every_name_counts) {
        static char *const names[] = { "AWS_PROFILE=a",
                                       "S3_ENDPOINT=a",
                                       "AZURE_X=a",
                                       "GOOGLE_APPLICATION_CREDENTIALS=a",
                                       "STORAGE_EMULATOR_HOST=a",
                                       "http_proxy=a",
                                       "https_proxy=a",
                                       "no_proxy=a",
                                       "HTTP_PROXY=a",
                                       "HTTPS_PROXY=a",
                                       "NO_PROXY=a",
                                       "CURL_CA_BUNDLE=a",
                                       "SSL_CERT_FILE=a" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *const environment[] = { names[i], NULL };

                ck_assert_uint_ne(id(environment), ID_OF_NOTHING);
        }
}
END_TEST

START_TEST(value_counts) {
        char *const one[] = { "AWS_PROFILE=a", NULL };
        char *const other[] = { "AWS_PROFILE=b", NULL };
        char *const empty[] = { "AWS_PROFILE=", NULL };

        ck_assert_uint_ne(id(one), id(other));
        ck_assert_uint_ne(id(empty), ID_OF_NOTHING);
}
END_TEST

RUNNER_MAIN("common/settings_id", nothing_set, order_does_not_matter, every_name_counts,
            value_counts)
