/* SPDX-License-Identifier: Apache-2.0 */
/* s3:// over the fault server, which lists and reads as S3 does and fails on command. */
#include "daemon/store/s3.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/core/config.h"
#include "daemon/store/aws_credentials.h"
#include "tests/unit/daemon/store/fault_server.h"
#include "tests/unit/daemon/store/store_harness.h"
#include "tests/unit/runner.h"

#define KEY "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static struct fault_server server;
static struct store_harness harness;

static void begin_with(const struct s3_settings *settings, const char *url) {
        static const struct aws_source *const sources[] = { &aws_source_environment, NULL };
        struct s3_settings own = *settings;
        struct credentials *credentials;
        const char *message = "";
        int r;

        fault_server_start(&server);
        own.endpoint = server.url;
        memset(&harness, 0, sizeof(harness));
        ck_assert_int_eq(uv_loop_init(&harness.loop), 0);
        ck_assert_int_eq(aws_credentials_new_with(&harness.loop, sources, &credentials), 0);
        r = s3_new(&harness.loop, url, &own, &impatient, credentials, &harness.store, &message);
        ck_assert_msg(r == 0, "%d %s", r, message);
}

static void begin(void) {
        setenv("AWS_ACCESS_KEY_ID", KEY, 1);
        setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
        unsetenv("AWS_SESSION_TOKEN");
        begin_with(&(struct s3_settings){ 0 }, "s3://logs/exp");
}

static void set_only(const char *name, const char *value) {
        static const char *const all[] = { "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
                                           "S3_ENDPOINT",         "S3_USE_HTTPS",
                                           "S3_VERIFY_SSL",       "AWS_REGION",
                                           "AWS_DEFAULT_REGION",  "S3_REGION",
                                           "AWS_PROFILE",         "AWS_DEFAULT_PROFILE",
                                           "AWS_ACCESS_KEY_ID",   "AWS_SECRET_ACCESS_KEY",
                                           "AWS_SESSION_TOKEN" };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                unsetenv(all[i]);
        if (name)
                setenv(name, value, 1);
}

/* As the daemon opens it, with nothing in the environment but the shared files. */
static void begin_configured(struct config_access *access, bool has_endpoint) {
        const char *message = "";
        char path[128];
        FILE *file;
        int r;

        fault_server_start(&server);
        snprintf(path, sizeof(path), "%s/.aws", server.root);
        file = fopen(path, "we");
        fprintf(file,
                "[default]\naws_access_key_id = DEFAULTKEY\naws_secret_access_key = x\n"
                "endpoint_url = %s\n[profile research]\naws_access_key_id = RESEARCHKEY\n"
                "aws_secret_access_key = y\nregion = eu-central-1\nendpoint_url = %s\n",
                server.url, server.url);
        ck_assert_int_eq(fclose(file), 0);
        setenv("AWS_CONFIG_FILE", path, 1);
        setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
        memset(&harness, 0, sizeof(harness));
        ck_assert_int_eq(uv_loop_init(&harness.loop), 0);
        if (has_endpoint)
                access->endpoint = server.url;
        r = store_open_with(&harness.loop, "s3://logs/exp", access, &harness.store, &message);
        ck_assert_msg(r == 0, "%d %s", r, message);
}

static void end(void) {
        store_harness_close(&harness);
        fault_server_stop(&server);
}

/* A header of the last request for a path, or its query ("?"); "" if there is none. */
static const char *last(const char *path, const char *header) {
        static char text[2048];

        text[0] = '\0';
        fault_server_last(&server, path, header, text, sizeof(text));
        return text;
}

static void assert_failed(const struct store_failure *failure, enum store_failure_class class,
                          const char *code, const char *words) {
        ck_assert_msg(failure->class == class && strcmp(failure->code, code) == 0 &&
                              strstr(failure->message, words),
                      "class %d, code %s, %s", failure->class, failure->code, failure->message);
        ck_assert_ptr_null(strstr(failure->message, SECRET));
}

/* ---- Requests ---- */

START_TEST(lists_and_reads) {
        begin();
        test_file_write(server.root, "logs/exp/a b+/x.tfevents", 1000);
        test_file_write(server.root, "logs/exp/y.ckpt", 10);
        test_file_write(server.root, "logs/exp2/z.tfevents", 10);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 1);
        ck_assert_uint_eq(harness.rows[0].row.size_bytes, 1000);
        ck_assert_str_eq(harness.rows[0].name, "a b+/x.tfevents");
        ck_assert(!harness.rows[0].row.is_archived);
        ck_assert_str_eq(last("/logs", "?"), "list-type=2&encoding-type=url&prefix=exp%2F");
        store_harness_read(&harness, "a b+/x.tfevents", 100, 5000);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.result.size_bytes, 900);
        assert_test_bytes(harness.buffer, 100, 900);
        ck_assert_str_eq(last("/logs/exp/a%20b%2B/x.tfevents", "range"), "bytes=100-5099");
        /* a server of our own may have other tags in listings */
        ck_assert_str_eq(last("/logs/exp/a%20b%2B/x.tfevents", "if-match"), "");
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 2);
        ck_assert_str_eq(harness.store->url, "s3://logs/exp");
        ck_assert_uint_eq(harness.store->window_start, 128);
        ck_assert(!harness.store->has_shared_tags);
        end();
}
END_TEST

START_TEST(pages_are_asked_for_one_by_one) {
        char name[64];

        begin();
        for (unsigned i = 0; i < 5; i++) {
                snprintf(name, sizeof(name), "logs/exp/%u/x.tfevents", i);
                test_file_write(server.root, name, i);
        }
        fault_server_order(&server, "{'page_keys':2}");
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 5);
        ck_assert_uint_eq(harness.requests, 3);
        ck_assert_ptr_nonnull(strstr(last("/logs", "?"), "&continuation-token=exp%252F3%252F"));
        end();
}
END_TEST

START_TEST(signatures_name_what_they_cover) {
        begin();
        setenv("AWS_SESSION_TOKEN", "a/session+token", 1);
        store_harness_list(&harness);
        ck_assert_str_eq(last("/logs", "x-amz-security-token"), "a/session+token");
        ck_assert_ptr_nonnull(
                strstr(last("/logs", "authorization"), "AWS4-HMAC-SHA256 Credential=" KEY "/"));
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"),
                                     "/us-east-1/s3/aws4_request, SignedHeaders=host;"
                                     "x-amz-content-sha256;x-amz-date;x-amz-security-token, "));
        ck_assert_ptr_nonnull(strstr(harness.store->identity, "MPLE"));
        end();
}
END_TEST

START_TEST(requester_pays) {
        begin();
        store_harness_close(&harness);
        fault_server_stop(&server);
        begin_with(&(struct s3_settings){ .requester_pays = true, .region = "eu-north-1" },
                   "s3://logs");
        store_harness_list(&harness);
        ck_assert_str_eq(last("/logs", "x-amz-request-payer"), "requester");
        ck_assert_str_eq(last("/logs", "?"), "list-type=2&encoding-type=url");
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "x-amz-request-payer, "));
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "/eu-north-1/s3/"));
        end();
}
END_TEST

START_TEST(profiles_name_endpoints_and_regions) {
        struct config_access access = { .profile = (char *)"research" };

        set_only(NULL, NULL);
        begin_configured(&(struct config_access){ 0 }, false);
        store_harness_list(&harness);
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "Credential=DEFAULTKEY/"));
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "/us-east-1/s3/"));
        end();
        /* a configured profile goes before keys of the environment */
        setenv("AWS_ACCESS_KEY_ID", KEY, 1);
        setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
        begin_configured(&access, false);
        store_harness_list(&harness);
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "Credential=RESEARCHKEY/"));
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "/eu-central-1/s3/"));
        end();
        access = (struct config_access){ .region = (char *)"r", .requester_pays = true };
        begin_configured(&access, true);
        store_harness_list(&harness);
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "Credential=" KEY "/"));
        ck_assert_ptr_nonnull(strstr(last("/logs", "authorization"), "/r/s3/"));
        ck_assert_str_eq(last("/logs", "x-amz-request-payer"), "requester");
        end();
}
END_TEST

START_TEST(nobody_signs_nothing) {
        struct config_access access = { .anonymous = true };

        set_only(NULL, NULL);
        begin_configured(&access, true);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_str_eq(last("/logs", "authorization"), "");
        ck_assert_str_eq(harness.store->identity, "anonymous");
        fault_server_order(&server, "{'fault':'status','status':403,'code':'AccessDenied'}");
        store_harness_list(&harness);
        assert_failed(&harness.failure, STORE_PERMANENT, "403 AccessDenied",
                      ", as anonymous\n  not public");
        end();
}
END_TEST

START_TEST(access_is_for_s3_only) {
        static const char *const link_local[] = { "http://169.254.169.254", "169.254.169.254:80" };
        const struct config_access access = { .anonymous = true };
        const char *message = "";
        struct store *store;
        uv_loop_t loop;

        ck_assert_int_eq(uv_loop_init(&loop), 0);
        ck_assert_int_eq(store_open_with(&loop, "http://h/", &access, &store, &message), -EINVAL);
        ck_assert_ptr_nonnull(strstr(message, "s3://"));
        for (size_t i = 0; i < ARRAY_SIZE(link_local); i++) {
                const struct config_access own = { .endpoint = (char *)link_local[i] };

                ck_assert_int_eq(store_open_with(&loop, "s3://b", &own, &store, &message), -EINVAL);
                ck_assert_ptr_nonnull(strstr(message, "link-local"));
        }
        ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

/* ---- What is learned from errors ---- */

START_TEST(another_region_is_learned) {
        static const char *const faults[] = {
                "{'fault':'status','status':400,'code':'AuthorizationHeaderMalformed',"
                "'elements':{'Region':'eu-west-1'},'unless':{'authorization':'/eu-west-1/s3/'}}",
                "{'fault':'status','status':301,'code':'PermanentRedirect','headers':"
                "{'x-amz-bucket-region':'eu-west-2'},'unless':{'authorization':'/eu-west-2/s3/'}}",
                "{'fault':'status','status':400,'headers':{'X-Amz-Bucket-Region':'eu-west-3'},"
                "'unless':{'authorization':'/eu-west-3/s3/'}}",
        };

        begin();
        test_file_write(server.root, "logs/exp/x.tfevents", 10);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                fault_server_order(&server, "{'reset':true}");
                fault_server_order(&server, faults[i]);
                store_harness_list(&harness);
                ck_assert_msg(harness.failure.class == STORE_OK, "%s: %s", faults[i],
                              harness.failure.message);
                ck_assert_uint_eq(harness.row_count, 1);
                ck_assert_uint_eq(fault_server_requests(&server, NULL), 2);
                /* and is known then */
                store_harness_read(&harness, "x.tfevents", 0, 10);
                ck_assert_uint_eq(harness.result.size_bytes, 10);
                ck_assert_uint_eq(fault_server_requests(&server, NULL), 3);
        }
        end();
}
END_TEST

START_TEST(regions_that_lead_nowhere) {
        begin();
        fault_server_order(&server, "{'fault':'status','status':301,'code':'PermanentRedirect',"
                                    "'elements':{'Region':'x.example.com/'}}");
        store_harness_list(&harness);
        assert_failed(&harness.failure, STORE_PERMANENT, "301 PermanentRedirect",
                      "\n  the bucket is in x.example.com/: set AWS_REGION");
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 1);
        end();
}
END_TEST

START_TEST(clock_of_the_server_is_taken) {
        begin();
        fault_server_order(&server, "{'fault':'status','status':403,'code':'RequestTimeTooSkewed',"
                                    "'headers':{'Date':'Fri, 24 May 2013 00:00:00 GMT'},"
                                    "'unless':{'x-amz-date':'20130524T0000'}}");
        store_harness_list(&harness);
        ck_assert_msg(harness.failure.class == STORE_OK, "%s", harness.failure.message);
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 2);
        fault_server_order(&server, "{'reset':true}");
        fault_server_order(&server,
                           "{'fault':'status','status':403,'code':'RequestTimeTooSkewed'}");
        store_harness_list(&harness);
        assert_failed(&harness.failure, STORE_PERMANENT, "403 RequestTimeTooSkewed",
                      "\n  the clock of this machine is wrong");
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 1);
        end();
}
END_TEST

/* The variable of the environment stands for a login that somebody repeats. */
START_TEST(expired_keys_are_got_again_once) {
        begin();
        setenv("AWS_SESSION_TOKEN", "old", 1);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        setenv("AWS_SESSION_TOKEN", "new", 1);
        fault_server_order(&server, "{'reset':true}");
        fault_server_order(&server, "{'fault':'status','status':400,'code':'ExpiredToken',"
                                    "'unless':{'x-amz-security-token':'new'}}");
        store_harness_list(&harness);
        ck_assert_msg(harness.failure.class == STORE_OK, "%s", harness.failure.message);
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 2);
        fault_server_order(&server, "{'reset':true}");
        fault_server_order(&server, "{'fault':'status','status':400,'code':'ExpiredToken'}");
        store_harness_list(&harness);
        assert_failed(&harness.failure, STORE_PERMANENT, "400 ExpiredToken",
                      "\n  the credentials have expired");
        ck_assert_uint_le(fault_server_requests(&server, NULL), 2);
        end();
}
END_TEST

/* ---- Errors ---- */

static const struct {
        const char *order;
        enum store_failure_class class;
        const char *code, *words;
} faults[] = {
        { "{'fault':'status','status':403,'code':'AccessDenied'}", STORE_PERMANENT,
          "403 AccessDenied", "\n  needs s3:GetObject on arn:aws:s3:::logs/exp/*" },
        { "{'fault':'status','status':403,'code':'AccessDenied','elements':{'Message':"
          "'not authorized to perform: kms:Decrypt on resource: arn:aws:kms:k'}}",
          STORE_PERMANENT, "403 AccessDenied",
          "\n  needs kms:Decrypt on the key that it is encrypted with: not authorized" },
        { "{'fault':'status','status':400,'code':'KMS.DisabledException'}", STORE_PERMANENT,
          "400 KMS.DisabledException", "kms:Decrypt" },
        { "{'fault':'status','status':403,'code':'InvalidObjectState'}", STORE_PERMANENT,
          "archived", "\n  restore it first" },
        { "{'fault':'status','status':403,'code':'InvalidAccessKeyId'}", STORE_PERMANENT,
          "403 InvalidAccessKeyId", "\n  the server does not know this access key" },
        { "{'fault':'status','status':404,'code':'NoSuchBucket'}", STORE_PERMANENT,
          "404 NoSuchBucket", "\n  is the name of the bucket right" },
        { "{'fault':'status','status':404,'code':'NoSuchKey'}", STORE_PERMANENT, "404 NoSuchKey",
          "on GetObject s3://logs/exp/x.tfevents" },
        { "{'fault':'status','status':503,'code':'SlowDown'}", STORE_THROTTLED, "503 SlowDown",
          "" },
        { "{'fault':'status','status':200,'fault':'status','status':500,'code':'InternalError',"
          "'elements':{'Message':'We encountered an error'}}",
          STORE_TRANSIENT, "500 InternalError", "\n  We encountered an error" },
        { "{'fault':'status','status':400,'code':'RequestTimeout'}", STORE_TRANSIENT,
          "400 RequestTimeout", "" },
        { "{'fault':'status','status':502}", STORE_TRANSIENT, "502", "" },
        { "{'fault':'status','status':401}", STORE_PERMANENT, "401", "" },
        { "{'fault':'status','status':412}", STORE_CHANGED, "412", "" },
        { "{'fault':'redirect','location':'http://127.0.0.1:1/'}", STORE_PERMANENT, "302", "" },
};

START_TEST(errors_of_reads) {
        begin();
        test_file_write(server.root, "logs/exp/x.tfevents", 10);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                fault_server_order(&server, "{'clear':true}");
                fault_server_order(&server, faults[i].order);
                store_harness_read(&harness, "x.tfevents", 0, 10);
                assert_failed(&harness.result.failure, faults[i].class, faults[i].code,
                              faults[i].words);
        }
        fault_server_order(&server, "{'clear':true}");
        store_harness_read(&harness, "x.tfevents", 0, 10);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        end();
}
END_TEST

START_TEST(errors_of_listings) {
        begin();
        fault_server_order(&server, "{'fault':'status','status':403,'code':'AccessDenied'}");
        store_harness_list(&harness);
        assert_failed(&harness.failure, STORE_PERMANENT, "403 AccessDenied",
                      "on ListObjectsV2 prefix=exp/ (http://127.0.0.1:");
        assert_failed(&harness.failure, STORE_PERMANENT, "403 AccessDenied",
                      "), as access key ...MPLE (environment)\n  needs s3:ListBucket on "
                      "arn:aws:s3:::logs (s3:prefix exp/*) and s3:GetObject on "
                      "arn:aws:s3:::logs/exp/*");
        /* one 503 is no failure */
        fault_server_order(&server, "{'clear':true}");
        fault_server_order(&server, "{'fault':'status','status':503,'code':'SlowDown','times':1}");
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        end();
}
END_TEST

START_TEST(archived_objects_are_told) {
        begin();
        test_file_write(server.root, "logs/exp/glacier.tfevents", 10);
        test_file_write(server.root, "logs/exp/x.tfevents", 10);
        store_harness_list(&harness);
        ck_assert(store_harness_row(&harness, "glacier.tfevents")->row.is_archived);
        ck_assert(!store_harness_row(&harness, "x.tfevents")->row.is_archived);
        end();
}
END_TEST

/* ---- Places ---- */

static const struct {
        const char *url, *endpoint, *region;
        bool plain_http;
        const char *expected; /* endpoint and prefix; NULL: refused */
        bool path_style;
} places[] = {
        { "s3://acme-ml/exp", NULL, NULL, false, "https://acme-ml.s3.us-east-1.amazonaws.com exp",
          false },
        { "s3://acme-ml", NULL, "cn-north-1", false,
          "https://acme-ml.s3.cn-north-1.amazonaws.com.cn ", false },
        { "s3://acme.ml/a/b/", NULL, "eu-west-1", false, "https://s3.eu-west-1.amazonaws.com a/b",
          true },
        { "s3://Acme_ml/a", NULL, NULL, false, "https://s3.us-east-1.amazonaws.com a", true },
        { "s3://b/p", "minio:9000", NULL, true, "http://minio:9000 p", true },
        { "s3://b/p", "minio:9000", NULL, false, "https://minio:9000 p", true },
        { "s3://b/p", "http://minio:9000/", NULL, false, "http://minio:9000 p", true },
        { "s3:///p", NULL, NULL, false, NULL, false },
        { "s3://a@b/p", NULL, NULL, false, NULL, false },
        { "s3://../p", NULL, NULL, false, NULL, false },
};

START_TEST(places_of_buckets) {
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                struct s3_settings settings = { .endpoint = places[i].endpoint,
                                                .region = places[i].region,
                                                .plain_http = places[i].plain_http };
                struct s3_place place;
                const char *message = NULL;
                int r = s3_place_init(&place, places[i].url, &settings, &message);
                CLEANUP(freep) char *endpoint = NULL, *text = NULL;

                if (!places[i].expected) {
                        ck_assert_int_eq(r, -EINVAL);
                        ck_assert_ptr_nonnull(message);
                        continue;
                }
                ck_assert_int_eq(r, 0);
                endpoint = s3_place_endpoint(&place);
                ck_assert_int_gt(asprintf(&text, "%s %s", endpoint, place.prefix), 0);
                ck_assert_str_eq(text, places[i].expected);
                ck_assert_int_eq(place.path_style, places[i].path_style);
                s3_place_deinit(&place);
        }
}
END_TEST

START_TEST(settings_of_the_environment) {
        struct s3_settings settings;

        set_only(NULL, NULL);
        s3_settings_from_environment(&settings);
        ck_assert(!settings.endpoint && !settings.region && !settings.plain_http &&
                  !settings.insecure);
        set_only("S3_ENDPOINT", "minio:9000");
        setenv("S3_USE_HTTPS", "0", 1);
        setenv("S3_VERIFY_SSL", "False", 1);
        s3_settings_from_environment(&settings);
        ck_assert_str_eq(settings.endpoint, "minio:9000");
        ck_assert(settings.plain_http && settings.insecure);
        setenv("AWS_ENDPOINT_URL", "http://a", 1);
        s3_settings_from_environment(&settings);
        ck_assert_str_eq(settings.endpoint, "http://a");
        setenv("AWS_ENDPOINT_URL_S3", "http://b", 1);
        s3_settings_from_environment(&settings);
        ck_assert_str_eq(settings.endpoint, "http://b");
        setenv("AWS_DEFAULT_REGION", "eu-west-1", 1);
        s3_settings_from_environment(&settings);
        ck_assert_str_eq(settings.region, "eu-west-1");
        setenv("AWS_REGION", "eu-west-2", 1);
        s3_settings_from_environment(&settings);
        ck_assert_str_eq(settings.region, "eu-west-2");
        set_only(NULL, NULL);
}
END_TEST

RUNNER_MAIN("store/s3", lists_and_reads, pages_are_asked_for_one_by_one,
            signatures_name_what_they_cover, requester_pays, profiles_name_endpoints_and_regions,
            nobody_signs_nothing, access_is_for_s3_only, another_region_is_learned,
            regions_that_lead_nowhere, clock_of_the_server_is_taken,
            expired_keys_are_got_again_once, errors_of_reads, errors_of_listings,
            archived_objects_are_told, places_of_buckets, settings_of_the_environment)
