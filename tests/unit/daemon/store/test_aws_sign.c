/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors: the signature version 4 test suite of AWS ("get-vanilla" and its kin), and the examples
 * of "Authenticating Requests: Using the Authorization Header" in the S3 API Reference.
 */
#include "daemon/store/aws_sign.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

#define SUITE_DATE "20150830T123600Z"

static struct aws_sign_key key;
static struct credentials_value suite = { .id = (char *)"AKIDEXAMPLE",
                                          .secret = (char *)"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEK"
                                                            "EY" };
static struct credentials_value s3 = { .id = (char *)"AKIAIOSFODNN7EXAMPLE",
                                       .secret = (char *)"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKE"
                                                         "Y" };

static void check(const struct credentials_value *credentials, const struct aws_sign_input *input,
                  const char *signature) {
        CLEANUP(freep) char *authorization = NULL;

        ck_assert_int_eq(aws_sign(&key, credentials, input, &authorization), 0);
        ck_assert_msg(strstr(authorization, signature), "%s is not %s", authorization, signature);
}

static void check_suite(const char *method, const char *path, const char *query,
                        const char *signature) {
        static const struct aws_sign_header headers[] = { { "x-amz-date", SUITE_DATE },
                                                          { "host", "example.amazonaws.com" } };

        check(&suite,
              &(struct aws_sign_input){ .method = method,
                                        .path = path,
                                        .query = query,
                                        .headers = headers,
                                        .header_count = 2,
                                        .payload_sha256 = AWS_SIGN_EMPTY_SHA256,
                                        .region = "us-east-1",
                                        .service = "service",
                                        .date = SUITE_DATE },
              signature);
}

START_TEST(suite_of_aws) {
        check_suite("GET", "/", "",
                    "SignedHeaders=host;x-amz-date, Signature="
                    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
        check_suite("POST", "/", "",
                    "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        /* get-vanilla-query-order-key-case: parameters are sorted */
        check_suite("GET", "/", "Param2=value2&Param1=value1",
                    "Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}
END_TEST

static void check_s3(const char *path, const char *query, const char *range,
                     const char *signature) {
        struct aws_sign_header headers[] = {
                { "host", "examplebucket.s3.amazonaws.com" },
                { "x-amz-content-sha256", AWS_SIGN_EMPTY_SHA256 },
                { "x-amz-date", "20130524T000000Z" },
                { "range", range },
        };

        check(&s3,
              &(struct aws_sign_input){ .method = "GET",
                                        .path = path,
                                        .query = query,
                                        .headers = headers,
                                        .header_count = range ? 4 : 3,
                                        .payload_sha256 = AWS_SIGN_EMPTY_SHA256,
                                        .region = "us-east-1",
                                        .service = "s3",
                                        .date = "20130524T000000Z" },
              signature);
}

START_TEST(examples_of_s3) {
        check_s3("/test.txt", "", "bytes=0-9",
                 "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
        check_s3("/", "lifecycle", NULL,
                 "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
        check_s3("/", "max-keys=2&prefix=J", NULL,
                 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
        check_s3("/", "prefix=J&max-keys=2", NULL,
                 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}
END_TEST

START_TEST(dates_and_digests) {
        char date[17], digest[AWS_SIGN_HEX_SHA256_SIZE];

        aws_sign_date(1369353600, date);
        ck_assert_str_eq(date, "20130524T000000Z");
        aws_sign_sha256("", 0, digest);
        ck_assert_str_eq(digest, AWS_SIGN_EMPTY_SHA256);
        /* FIPS 180-2, B.1 */
        aws_sign_sha256("abc", 3, digest);
        ck_assert_str_eq(digest,
                         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
END_TEST

START_TEST(too_much_is_refused) {
        static struct aws_sign_header headers[AWS_SIGN_HEADERS_MOST + 1];
        struct aws_sign_input input = { .method = "GET",
                                        .path = "/",
                                        .query = "a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q&r&s&t&u&v&w&x&"
                                                 "y&z&1&2&3&4&5&6&7&8",
                                        .headers = headers,
                                        .payload_sha256 = AWS_SIGN_EMPTY_SHA256,
                                        .region = "r",
                                        .service = "s",
                                        .date = SUITE_DATE };
        char *authorization;

        ck_assert_int_eq(aws_sign(&key, &suite, &input, &authorization), -EINVAL);
        input.query = "";
        input.header_count = AWS_SIGN_HEADERS_MOST + 1;
        ck_assert_int_eq(aws_sign(&key, &suite, &input, &authorization), -EINVAL);
}
END_TEST

static bool signs(void) {
        static const struct aws_sign_header headers[] = { { "host", "h" } };
        struct aws_sign_key fresh = { .is_made = false };
        char *authorization = NULL;
        int r = aws_sign(&fresh, &suite,
                         &(struct aws_sign_input){ .method = "GET",
                                                   .path = "/",
                                                   .query = "a=b",
                                                   .headers = headers,
                                                   .header_count = 1,
                                                   .payload_sha256 = AWS_SIGN_EMPTY_SHA256,
                                                   .region = "r",
                                                   .service = "s",
                                                   .date = SUITE_DATE },
                         &authorization);

        free(authorization);
        return r == 0;
}

START_TEST(memory_that_is_not_there) {
        for (uint64_t n = 1;; n++) {
                bool well;

                fail_begin(n, FAIL_THIS_THREAD);
                well = signs();
                if (!fail_end())
                        break;
                ck_assert(!well);
        }
}
END_TEST

RUNNER_MAIN("store/aws_sign", suite_of_aws, examples_of_s3, dates_and_digests, too_much_is_refused,
            memory_that_is_not_there)
