/* SPDX-License-Identifier: Apache-2.0 */
/* Pages as Google's reference shows them, and pages that are none. */
#include "daemon/store/gcs_listing.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/gcs_error.h"
#include "tests/unit/daemon/store/page_harness.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static int parse(const char *text, size_t piece) {
        static const struct object_dialect dialect = {
                .page_new = gcs_listing_new,
                .page_feed = gcs_listing_feed,
                .page_end = gcs_listing_end,
                .page_free = gcs_listing_free,
        };

        return page_parse(&dialect, text, strlen(text), piece);
}

static const char sample[] =
        "{\"kind\":\"storage#objects\",\"nextPageToken\":\"CgRhL2I=\",\"prefixes\":[\"a/b/\"],"
        "\"items\":[{\"name\":\"a/\\u003cx\\u003e\\n\\u00fc\",\"size\":\"18446744073709551615\","
        "\"updated\":\"2013-05-24T00:00:00.123Z\",\"generation\":\"1700000000000001\","
        "\"etag\":\"CAE=\",\"storageClass\":\"ARCHIVE\"},{\"name\":\"b\",\"size\":7,"
        "\"generation\":5},{\"name\":\"c\",\"size\":\"0\",\"etag\":\"CAE=\"}]}";

START_TEST(rows_prefixes_and_the_token) {
        for (size_t piece = 1; piece < 2 * sizeof(sample); piece = piece * 3 + 1) {
                ck_assert_int_eq(parse(sample, piece), 0);
                /* `date -u -d 2013-05-24 +%s`; ARCHIVE and COLDLINE only cost more to read */
                ck_assert_str_eq(page_given, "a/<x>\n\u00fc|-1|1369353600123|1700000000000001\n"
                                             "b|7|-1|5\nc|0|-1|CAE=\na/b/\n");
                ck_assert_str_eq(page_token, "CgRhL2I=");
        }
        ck_assert_int_eq(parse("{}", 9), 0);
        ck_assert_str_eq(page_given, "");
        ck_assert_ptr_null(page_token);
}
END_TEST

START_TEST(what_is_no_page) {
        static const char *const texts[] = {
                "",
                "[]",
                "<html>",
                "{\"items\":[{\"name\":\"a\",\"size\":\"1\"}]",
                "{\"items\":{}}",
                "{\"items\":[7]}",
                "{\"items\":[{\"name\":\"a\"}]}",
                "{\"items\":[{\"name\":7,\"size\":\"1\"}]}",
                "{\"items\":[{\"name\":\"a\",\"size\":\"-1\"}]}",
                "{\"items\":[{\"name\":\"a\",\"size\":\"18446744073709551616\"}]}",
                "{\"prefixes\":[null]}",
                "{\"nextPageToken\":7}",
                "{\"error\":{\"code\":500}}",
                "{\"items\":[{\"name\":\"\xff\",\"size\":\"1\"}]}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                ck_assert_msg(parse(texts[i], 1000) == -EBADMSG, "%s", texts[i]);
}
END_TEST

START_TEST(page_is_bounded) {
        static uint8_t spaces[1 << 20];
        void *page;
        int r = 0;

        memset(spaces, ' ', sizeof(spaces));
        ck_assert_int_eq(gcs_listing_new(&page_events, NULL, &page), 0);
        for (size_t i = 0; i < GCS_PAGE_MOST_BYTES / sizeof(spaces); i++)
                ck_assert_int_eq(gcs_listing_feed(page, spaces, sizeof(spaces)), 0);
        r = gcs_listing_feed(page, spaces, 1);
        ck_assert_int_eq(r, -EBADMSG);
        gcs_listing_free(page);
}
END_TEST

START_TEST(every_allocation_may_fail) {
        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_THIS_THREAD);
                r = parse(sample, 100);
                if (!fail_end()) {
                        ck_assert_int_eq(r, 0);
                        break;
                }
                ck_assert_int_eq(r, -ENOMEM);
        }
}
END_TEST

/* Bodies as "HTTP status and error codes for JSON" shows them. */
START_TEST(errors_by_reason) {
        static const struct {
                long status;
                const char *body;
                enum gcs_error_kind kind;
        } samples[] = {
                { 401,
                  "{\"error\":{\"errors\":[{\"domain\":\"global\",\"reason\":\"authError\"}],"
                  "\"code\":401,\"message\":\"Invalid Credentials\"}}",
                  GCS_ERROR_CREDENTIALS },
                { 403, "{\"error\":{\"errors\":[{\"reason\":\"forbidden\"}],\"code\":403}}",
                  GCS_ERROR_DENIED },
                { 403, "{\"error\":{\"errors\":[{\"reason\":\"rateLimitExceeded\"}]}}",
                  GCS_ERROR_THROTTLED },
                { 403, "{\"error\":{\"errors\":[{\"reason\":\"userRateLimitExceeded\"}]}}",
                  GCS_ERROR_THROTTLED },
                { 400,
                  "{\"error\":{\"message\":\"Bucket is a requester pays bucket but no user "
                  "project provided.\",\"errors\":[{\"reason\":\"required\"}]}}",
                  GCS_ERROR_PROJECT },
                { 404, "No such object: logs/a", GCS_ERROR_NO_BUCKET },
                { 403, "", GCS_ERROR_DENIED },
                { 503, "[[[", GCS_ERROR_OTHER },
        };
        struct gcs_error error;

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                gcs_error_parse(samples[i].body, strlen(samples[i].body), &error);
                ck_assert_msg(gcs_error_kind(samples[i].status, &error) == samples[i].kind, "%s",
                              samples[i].body);
        }
}
END_TEST

RUNNER_MAIN("store/gcs_listing", rows_prefixes_and_the_token, what_is_no_page, page_is_bounded,
            every_allocation_may_fail, errors_by_reason)
