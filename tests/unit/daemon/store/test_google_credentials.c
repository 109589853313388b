/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tokens are looked for. The metadata server is a directory of files; token endpoints that
 * check what they are sent are in tests/integration/test_gcs.py.
 */
#include "daemon/store/google_credentials.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/google_account.h"
#include "daemon/store/google_jwt.h"
#include "daemon/store/google_request.h"
#include "daemon/store/google_token.h"
#include "daemon/store/secret_file.h"
#include "tests/unit/daemon/store/credentials_harness.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

#define METADATA "computeMetadata/v1/instance/service-accounts/default"

static struct credentials_harness harness;

static void begin(bool is_anonymous) {
        char host[32];

        credentials_harness_begin(&harness);
        snprintf(host, sizeof(host), "127.0.0.1:%d", harness.server.port);
        setenv("GCE_METADATA_HOST", host, 1);
        setenv("CLOUDSDK_CONFIG", harness.server.root, 1);
        unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
        unsetenv("NO_GCE_CHECK");
        ck_assert_int_eq(google_credentials_new(&harness.loop, is_anonymous, &harness.credentials),
                         0);
}

static const struct credentials_value *wait_for_value(void) {
        return credentials_harness_wait(&harness);
}

static void put_metadata(void) {
        credentials_harness_write(&harness, METADATA "/email",
                                  "vm@project.iam.gserviceaccount.com");
        credentials_harness_write(&harness, METADATA "/token",
                                  "{\"access_token\":\"ya29.vm\",\"expires_in\":3599}");
}

START_TEST(metadata_server) {
        const struct credentials_value *value;

        begin(false);
        put_metadata();
        fault_server_order(&harness.server, "{'fault':'status','status':403,"
                                            "'unless':{'metadata-flavor':'Google'}}");
        value = wait_for_value();
        ck_assert_ptr_nonnull(value);
        ck_assert_str_eq(value->token, "ya29.vm");
        ck_assert_str_eq(value->identity, "vm@project.iam.gserviceaccount.com (metadata server)");
        ck_assert(!value->anonymous);
        ck_assert_uint_eq(credentials_take_requests(harness.credentials), 2);
        /* What has worked and fails is no reason to be nobody. */
        fault_server_order(&harness.server, "[{'reset':true},{'fault':'status','status':404}]");
        ck_assert(
                credentials_refused(harness.credentials, credentials_serial(harness.credentials)));
        ck_assert_ptr_null(wait_for_value());
        ck_assert_int_eq(harness.outcome.class, STORE_PERMANENT);
        ck_assert_ptr_null(strstr(harness.outcome.message, "ya29"));
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(metadata_server_that_fails_for_a_moment) {
        begin(false);
        put_metadata();
        fault_server_order(&harness.server,
                           "{'path':'*email','fault':'status','status':503,'times':1}");
        ck_assert_ptr_null(wait_for_value());
        ck_assert_int_eq(harness.outcome.class, STORE_TRANSIENT);
        ck_assert_str_eq(wait_for_value()->token, "ya29.vm"); /* the next try is waited for */
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(nobody_until_a_login_comes) {
        const struct credentials_value *value;

        begin(false);
        value = wait_for_value();
        ck_assert_ptr_nonnull(value);
        ck_assert(value->anonymous);
        ck_assert_str_eq(value->identity, "nobody (no credentials were found)");
        credentials_harness_write(&harness, "application_default_credentials.json",
                                  "{\"type\":\"authorized_user\"}");
        while (credentials_now(harness.credentials))
                uv_run(&harness.loop, UV_RUN_NOWAIT);
        /* It is no good one: who was nobody still is. */
        ck_assert(wait_for_value()->anonymous);
        credentials_close(harness.credentials, NULL, NULL);
        ck_assert_int_eq(google_credentials_new(&harness.loop, false, &harness.credentials), 0);
        ck_assert_ptr_null(wait_for_value());
        ck_assert_ptr_nonnull(strstr(harness.outcome.message, "refresh_token is missing"));
        ck_assert_ptr_nonnull(
                strstr(harness.outcome.message, "gcloud auth application-default login"));
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(nobody_if_nobody_is_wanted) {
        begin(true);
        put_metadata();
        ck_assert(wait_for_value()->anonymous);
        ck_assert_uint_eq(fault_server_requests(&harness.server, NULL), 0);
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(metadata_server_is_not_asked_where_that_is_forbidden) {
        begin(false);
        put_metadata();
        setenv("NO_GCE_CHECK", "true", 1);
        ck_assert(wait_for_value()->anonymous);
        ck_assert_uint_eq(fault_server_requests(&harness.server, NULL), 0);
        credentials_harness_end(&harness);
}
END_TEST

START_TEST(close_at_every_moment) {
        begin(false);
        put_metadata();
        fault_server_order(&harness.server, "{'fault':'trickle','piece':1,'ms':1}");
        for (unsigned turns = 0; turns < 25; turns++) {
                credentials_harness_give_up(&harness, turns);
                credentials_close(harness.credentials, NULL, NULL);
                ck_assert_int_eq(google_credentials_new(&harness.loop, false, &harness.credentials),
                                 0);
        }
        credentials_harness_end(&harness);
}
END_TEST

/* ---- Texts ---- */

START_TEST(tokens) {
        static const char *const bad[] = { "",
                                           "{}",
                                           "{\"access_token\":7}",
                                           "{\"access_token\":\"\"}",
                                           "{\"access_token\":\"a\\r\\nHost: b\"}",
                                           "[]" };
        static const char exchange[] = "{\"accessToken\":\"t\",\"expireTime\":"
                                       "\"2014-10-02T15:01:23Z\"}";
        static const char oauth[] = "{\"access_token\":\"t\",\"expires_in\":3599}";
        static const char refusal[] = "{\"error\":\"invalid_grant\","
                                      "\"error_description\":\"SECRET\"}";
        struct store_failure failure;
        struct google_token token;

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                ck_assert_int_eq(google_token_parse(bad[i], strlen(bad[i]), 0, &token), -EBADMSG);
        ck_assert_int_eq(google_token_parse(oauth, strlen(oauth), 1000, &token), 0);
        ck_assert_int_eq(token.expires_s, 4599);
        secret_free(token.text);
        ck_assert_int_eq(google_token_parse(exchange, strlen(exchange), 1000, &token), 0);
        ck_assert_int_eq(token.expires_s, 1412262083); /* date -u -d 2014-10-02T15:01:23Z +%s */
        secret_free(token.text);
        google_token_refusal(refusal, strlen(refusal), 400, "a@b", &failure);
        ck_assert_int_eq(failure.class, STORE_PERMANENT);
        ck_assert_str_eq(failure.code, "invalid_grant");
        ck_assert_ptr_null(strstr(failure.message, "SECRET"));
        google_token_refusal("", 0, 503, "a@b", &failure);
        ck_assert_int_eq(failure.class, STORE_THROTTLED);
}
END_TEST

static const char federated[] =
        "{\"type\":\"external_account\",\"audience\":\"//a\",\"subject_token_type\":\"jwt\","
        "\"token_url\":\"https://sts/v1/token\",\"service_account_impersonation_url\":"
        "\"https://iam/v1/projects/-/serviceAccounts/x@y.com:generateAccessToken\","
        "\"credential_source\":{\"url\":\"http://id/\",\"headers\":{\"A\":\"b\",\"C\":\"d\"},"
        "\"format\":{\"type\":\"json\",\"subject_token_field_name\":\"value\"}}}";

START_TEST(account_in_parts) {
        struct google_account account;
        const char *why, *email;
        size_t size;
        char *token;

        ck_assert_int_eq(google_account_parse(&account, federated, strlen(federated), &why), 0);
        ck_assert_str_eq(account.subject_headers[0], "A: b");
        ck_assert_str_eq(account.subject_headers[1], "C: d");
        ck_assert_ptr_null(account.subject_headers[2]);
        email = google_impersonated(account.impersonation_url, &size);
        ck_assert_uint_eq(size, strlen("x@y.com"));
        ck_assert_int_eq(strncmp(email, "x@y.com", size), 0);
        ck_assert_int_eq(google_subject_token(&account, "{\"value\":\"s\"}", 13, &token), 0);
        ck_assert_str_eq(token, "s");
        secret_free(token);
        ck_assert_int_eq(google_subject_token(&account, "{\"other\":\"s\"}", 13, &token), -EBADMSG);
        google_account_deinit(&account);
}
END_TEST

static char *make_key(void) {
        EVP_PKEY *key = EVP_RSA_gen(2048);
        BIO *bio = BIO_new(BIO_s_mem());
        char *text, *copy;
        long size;

        ck_assert_int_eq(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
        size = BIO_get_mem_data(bio, &text);
        copy = strndup(text, (size_t)size);
        BIO_free(bio);
        EVP_PKEY_free(key);
        return copy;
}

static int parse_and_sign(const char *key) {
        struct google_account account;
        const char *why;
        char *jwt = NULL;
        int r = google_account_parse(&account, federated, strlen(federated), &why);

        if (r < 0)
                return r;
        account.client_email = strdup("a@b");
        account.private_key = strdup(key);
        r = account.client_email && account.private_key
                    ? google_jwt(&account, GOOGLE_SCOPE, 1000, &jwt)
                    : -ENOMEM;
        secret_free(jwt);
        google_account_deinit(&account);
        return r;
}

START_TEST(every_allocation_may_fail) {
        char *key = make_key();

        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_THIS_THREAD);
                r = parse_and_sign(key);
                if (!fail_end()) {
                        ck_assert_int_eq(r, 0);
                        break;
                }
                ck_assert_msg(r == -ENOMEM, "%d: %s", r, fail_name());
        }
        ck_assert_int_eq(parse_and_sign("-----BEGIN PRIVATE KEY-----"), -EINVAL);
        free(key);
}
END_TEST

RUNNER_MAIN("store/google_credentials", metadata_server, metadata_server_that_fails_for_a_moment,
            nobody_until_a_login_comes, nobody_if_nobody_is_wanted,
            metadata_server_is_not_asked_where_that_is_forbidden, close_at_every_moment, tokens,
            account_in_parts, every_allocation_may_fail)
