/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the chain fails and heals, over a directory of files that stands for the servers; sources one by
 * one, with servers that check what they are sent, are in tests/integration/test_aws_credentials.py.
 */
#include "daemon/store/aws_credentials.h"

#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/daemon/store/credentials_harness.h"
#include "tests/unit/runner.h"

#define ANSWER \
        "{\"AccessKeyId\":\"AKIDEXAMPLE\",\"SecretAccessKey\":\"x\",\"Token\":\"y\"," \
        "\"Expiration\":\"2100-01-01T00:00:00Z\"}"

static struct credentials_harness harness;

static void set_url(const char *variable, const char *path) {
        char url[128];

        snprintf(url, sizeof(url), "%s%s", harness.server.url, path);
        setenv(variable, url, 1);
}

/* Nothing of the machine's own. */
static void begin(void) {
        static const char *const names[] = {
                "AWS_ACCESS_KEY_ID",
                "AWS_PROFILE",
                "AWS_DEFAULT_PROFILE",
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                "AWS_CONFIG_FILE",
                "AWS_SHARED_CREDENTIALS_FILE",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                unsetenv(names[i]);
        setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
        credentials_harness_begin(&harness);
        setenv("HOME", harness.server.root, 1);
        ck_assert_int_eq(aws_credentials_new(&harness.loop, NULL, false, &harness.credentials), 0);
}

static const struct credentials_value *wait_for_value(void) {
        return credentials_harness_wait(&harness);
}

static void anew(void) {
        credentials_close(harness.credentials, NULL, NULL);
        ck_assert_int_eq(aws_credentials_new(&harness.loop, NULL, false, &harness.credentials), 0);
}

/* Each request that is sent, those that failed, too. */
START_TEST(what_passes_is_no_reason_to_give_up) {
        begin();
        credentials_harness_write(&harness, "container", ANSWER);
        set_url("AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
        fault_server_order(&harness.server, "{'fault':'status','status':429}");
        ck_assert_ptr_null(wait_for_value());
        ck_assert_int_eq(harness.outcome.class, STORE_TRANSIENT);
        ck_assert_uint_eq(credentials_take_requests(harness.credentials),
                          fault_server_requests(&harness.server, NULL));
        ck_assert_uint_eq(credentials_take_requests(harness.credentials), 0);
        anew();
        fault_server_order(&harness.server, "[{'reset':true},{'fault':'status','status':403}]");
        ck_assert_ptr_null(wait_for_value());
        ck_assert_int_eq(harness.outcome.class, STORE_PERMANENT);
        ck_assert_uint_eq(credentials_take_requests(harness.credentials), 1);
        anew();
        fault_server_order(&harness.server,
                           "[{'reset':true},{'fault':'status','status':503,'times':1}]");
        ck_assert_str_eq(wait_for_value()->id, "AKIDEXAMPLE");
        ck_assert_uint_eq(credentials_take_requests(harness.credentials), 2);
        credentials_harness_end(&harness);
}
END_TEST

/* A server that nobody listens at is not the storage: its window is not to shrink. */
START_TEST(what_is_refused_is_not_throttled) {
        begin();
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/", 1);
        ck_assert_ptr_null(wait_for_value());
        ck_assert_int_eq(harness.outcome.class, STORE_TRANSIENT);
        ck_assert_str_eq(harness.outcome.code, "refused");
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(codes_that_pass) {
        static const struct {
                long status;
                const char *code;
                enum store_failure_class class;
        } cases[] = {
                { 400, "Throttling", STORE_TRANSIENT },
                { 400, "IDPCommunicationError", STORE_TRANSIENT },
                { 429, NULL, STORE_TRANSIENT },
                { 500, "InternalFailure", STORE_TRANSIENT },
                { 503, NULL, STORE_TRANSIENT },
                { 400, "ValidationError", STORE_PERMANENT },
                { 400, "ExpiredTokenException", STORE_PERMANENT },
                { 403, "AccessDenied", STORE_PERMANENT },
                { 401, NULL, STORE_PERMANENT },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                ck_assert_int_eq(aws_failure_class(cases[i].status, cases[i].code), cases[i].class);
}
END_TEST

/* "aws sso login" names it by the session: printf acme | sha1sum */
#define CACHE ".aws/sso/cache/293abb6b76d7791c0732cc517d38c4b5c734b87f.json"
#define SSO \
        "[default]\nsso_session = acme\nsso_account_id = 1\nsso_role_name = Research\n" \
        "[sso-session acme]\nsso_start_url = https://acme.example/start\nsso_region = eu-west-1\n"

/* At the next question: nobody waits for the time to pass that follows a failure. */
START_TEST(a_login_heals) {
        begin();
        credentials_harness_write(&harness, ".aws/config", SSO);
        credentials_harness_write(
                &harness, "federation/credentials",
                "{\"roleCredentials\":{\"accessKeyId\":\"AKIDEXAMPLE\",\"secretAccessKey\":"
                "\"x\",\"sessionToken\":\"y\",\"expiration\":4102444800000}}");
        set_url("AWS_ENDPOINT_URL_SSO", "");
        ck_assert_ptr_null(wait_for_value());
        ck_assert_ptr_nonnull(strstr(harness.outcome.message, "aws sso login"));
        credentials_harness_write(&harness, CACHE,
                                  "{\"accessToken\":\"t\",\"expiresAt\":\"2100-01-01T00:00:00Z\"}");
        ck_assert_str_eq(wait_for_value()->id, "AKIDEXAMPLE");
        ck_assert_uint_eq(fault_server_requests(&harness.server, NULL), 1);
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(silence_of_the_instance_is_explained) {
        begin();
        unsetenv("AWS_EC2_METADATA_DISABLED");
        set_url("AWS_EC2_METADATA_SERVICE_ENDPOINT", "");
        fault_server_order(&harness.server, "{'fault':'silent'}");
        ck_assert_ptr_null(wait_for_value());
        ck_assert_str_eq(harness.outcome.code, "no-credentials");
        ck_assert_ptr_nonnull(strstr(harness.outcome.message, "hop limit"));
        credentials_harness_end(&harness);
}
END_TEST

/* What was there once comes back, and a service that fails is no reason to be somebody else. */
START_TEST(an_instance_that_is_away_comes_back) {
        begin();
        unsetenv("AWS_EC2_METADATA_DISABLED");
        set_url("AWS_EC2_METADATA_SERVICE_ENDPOINT", "");
        fault_server_order(&harness.server, "{'fault':'status','status':503}");
        ck_assert_ptr_null(wait_for_value());
        ck_assert_int_eq(harness.outcome.class, STORE_TRANSIENT);
        ck_assert_str_eq(harness.outcome.code, "instance");
        anew();
        fault_server_order(&harness.server, "[{'reset':true},{'fault':'status','status':403}]");
        ck_assert_ptr_null(wait_for_value());
        ck_assert_int_eq(harness.outcome.class, STORE_PERMANENT);
        ck_assert_str_eq(harness.outcome.code, "no-credentials");
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(close_at_every_moment) {
        begin();
        credentials_harness_write(&harness, "container", ANSWER);
        set_url("AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
        fault_server_order(&harness.server, "{'fault':'trickle','piece':1,'ms':1}");
        for (unsigned turns = 0; turns < 25; turns++) {
                credentials_harness_give_up(&harness, turns);
                anew();
        }
        credentials_harness_end(&harness);
}
END_TEST

RUNNER_MAIN("store/aws_credentials", what_passes_is_no_reason_to_give_up,
            what_is_refused_is_not_throttled, codes_that_pass, a_login_heals,
            silence_of_the_instance_is_explained, an_instance_that_is_away_comes_back,
            close_at_every_moment)
