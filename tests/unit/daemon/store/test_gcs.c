/* SPDX-License-Identifier: Apache-2.0 */
/* What a version guard does with answers; whole stores are in tests/integration/test_gcs.py. */
#include "daemon/store/gcs.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/google_credentials.h"
#include "tests/unit/daemon/store/fault_server.h"
#include "tests/unit/daemon/store/store_harness.h"
#include "tests/unit/runner.h"

static struct fault_server server;
static struct store_harness harness;

static void begin(void) {
        struct credentials *credentials;
        const char *message = "";

        fault_server_start(&server);
        memset(&harness, 0, sizeof(harness));
        ck_assert_int_eq(uv_loop_init(&harness.loop), 0);
        ck_assert_int_eq(google_credentials_new(&harness.loop, true, &credentials), 0);
        ck_assert_int_eq(gcs_new(&harness.loop, "gs://logs/exp/",
                                 &(struct gcs_settings){ .endpoint = server.url + 7 }, &impatient,
                                 credentials, &harness.store, &message),
                         0);
}

static void end(void) {
        store_harness_close(&harness);
        fault_server_stop(&server);
}

static void on_done(void *userdata, const struct store_read_result *result) {
        (void)userdata;
        harness.result = *result;
        harness.done = true;
        uv_stop(&harness.loop); /* else it would go on to wait if this was a timer's doing */
}

static enum store_failure_class read_with(const char *tag) {
        uint8_t buffer[4096];
        struct store_read *read;

        harness.done = false;
        ck_assert_int_eq(harness.store->operations->read(
                                 harness.store,
                                 &(struct store_read_range){ .name = "a/b",
                                                             .name_size = 3,
                                                             .size_bytes = sizeof(buffer),
                                                             .buffer = buffer,
                                                             .tag = tag },
                                 on_done, NULL, &read),
                         0);
        while (!harness.done)
                uv_run(&harness.loop, UV_RUN_ONCE);
        return harness.result.failure.class;
}

/* Each with a server of its own. */
static void expect(const char *order, const char *tag, enum store_failure_class class,
                   unsigned requests) {
        begin();
        fault_server_order(&server, order);
        ck_assert_int_eq(read_with(tag), class);
        ck_assert_uint_eq(fault_server_requests(&server, "/storage/v1/b/logs/o/exp%2Fa%2Fb"),
                          requests);
        end();
}

START_TEST(version_of_the_answer_counts) {
        static const char six[] = "{'fault':'status','status':200,"
                                  "'headers':{'x-goog-generation':'6'}}";

        expect(six, "6", STORE_OK, 1);
        expect(six, "5", STORE_CHANGED, 1);
        expect(six, NULL, STORE_OK, 1);
        expect(six, "CAE=", STORE_OK, 1); /* an ETag is no generation */
        expect("{'fault':'status','status':412}", "6", STORE_CHANGED, 1);
}
END_TEST

START_TEST(statuses_and_their_classes) {
        static const struct {
                int status;
                enum store_failure_class class;
        } cases[] = {
                { 400, STORE_PERMANENT }, { 401, STORE_PERMANENT }, { 403, STORE_PERMANENT },
                { 404, STORE_PERMANENT }, { 429, STORE_THROTTLED }, { 500, STORE_TRANSIENT },
                { 503, STORE_THROTTLED },
        };
        char order[64];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                snprintf(order, sizeof(order), "{'fault':'status','status':%d}", cases[i].status);
                /* after a 401 once more, with a new token */
                expect(order, NULL, cases[i].class, cases[i].status == 401 ? 2 : 1);
        }
}
END_TEST

START_TEST(urls_that_name_no_bucket) {
        static const char *const urls[] = { "gs:///a", "gs://", "gs://.a/b", "gs://a%20b/c",
                                            "gs://a?b/c" };
        struct credentials *credentials;
        struct store *store;
        uv_loop_t loop;

        ck_assert_int_eq(uv_loop_init(&loop), 0);
        for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
                const char *message = NULL;

                ck_assert_int_eq(google_credentials_new(&loop, true, &credentials), 0);
                ck_assert_int_eq(gcs_new(&loop, urls[i], &(struct gcs_settings){ .endpoint = NULL },
                                         NULL, credentials, &store, &message),
                                 -EINVAL);
                ck_assert_ptr_nonnull(message);
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

RUNNER_MAIN("store/gcs", version_of_the_answer_counts, statuses_and_their_classes,
            urls_that_name_no_bucket)
