/* SPDX-License-Identifier: Apache-2.0 */
/* Pages as Amazon's reference shows them and as servers send them, and pages that are none. */
#include "daemon/store/s3_listing.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/s3_error.h"
#include "tests/unit/daemon/store/page_harness.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static int parse(const char *text, size_t piece) {
        static const struct object_dialect dialect = {
                .page_new = s3_listing_new,
                .page_feed = s3_listing_feed,
                .page_end = s3_listing_end,
                .page_free = s3_listing_free,
        };

        return page_parse(&dialect, text, strlen(text), piece);
}

#define HEAD \
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" \
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define TAIL "</ListBucketResult>"
#define ROW(key, more) "<Contents><Key>" key "</Key><Size>1</Size>" more "</Contents>"
#define URL "<EncodingType>url</EncodingType>"

/* "Sample Response" of ListObjectsV2, Amazon S3 API Reference, and one with common prefixes. */
static const char sample[] = HEAD
        "<Name>amzn-s3-demo-bucket</Name><Prefix/><KeyCount>205</KeyCount>"
        "<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents>"
        "<Key>my-image.jpg</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"
        "<ETag>\"fba9dede5f27731c9771645a39863328\"</ETag><Size>434234</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>";
static const char prefixes[] = HEAD
        "<Name>amzn-s3-demo-bucket</Name><Prefix>photos/2006/</Prefix>"
        "<Delimiter>/</Delimiter><IsTruncated>false</IsTruncated><CommonPrefixes>"
        "<Prefix>photos/2006/February/</Prefix></CommonPrefixes><CommonPrefixes>"
        "<Prefix>photos/2006/January/</Prefix></CommonPrefixes></ListBucketResult>";

START_TEST(samples_of_the_reference) {
        for (size_t piece = 1; piece < 2 * sizeof(sample); piece = piece * 3 + 1) {
                ck_assert_int_eq(parse(sample, piece), 0);
                /* date -d 2009-10-12T17:50:30Z +%s */
                ck_assert_str_eq(page_given, "my-image.jpg|434234|1255369830000|"
                                             "fba9dede5f27731c9771645a39863328\n");
                ck_assert_ptr_null(page_token);
                ck_assert_int_eq(parse(prefixes, piece), 0);
                ck_assert_str_eq(page_given, "photos/2006/February/\nphotos/2006/January/\n");
        }
}
END_TEST

static const struct {
        const char *page, *given, *token;
} pages[] = {
        /* keys are decoded once, wherever the page says that they are encoded */
        { HEAD ROW("a%20b%2Bc%2525+d", "") URL TAIL, "a b+c%25 d|1|-1|\n", NULL },
        { HEAD URL ROW("%E6%97%A5%0A%FF%", "") TAIL, "\xe6\x97\xa5\n\xff%|1|-1|\n", NULL },
        { HEAD ROW("a%20b+c&amp;amp;", "") TAIL, "a%20b+c&amp;|1|-1|\n", NULL },
        { HEAD URL "<CommonPrefixes><Prefix>a%2Bb/</Prefix></CommonPrefixes>" TAIL, "a+b/\n",
          NULL },
        /* quotes may be entities or not be there */
        { HEAD ROW("k", "<ETag>&quot;ab-3&quot;</ETag>") TAIL, "k|1|-1|ab-3\n", NULL },
        { HEAD ROW("k", "<ETag>ab</ETag>") TAIL, "k|1|-1|ab\n", NULL },
        { HEAD ROW("k", "<ETag>W/&#34;ab&#34;</ETag>") TAIL, "k|1|-1|ab\n", NULL },
        { HEAD ROW("k", "<LastModified>2026-12-01T02:20:21.123Z</LastModified>") TAIL,
          "k|1|1796091621123|\n", NULL },
        { HEAD ROW("k", "<LastModified>yesterday</LastModified>") TAIL, "k|1|-1|\n", NULL },
        { HEAD ROW("k", "<StorageClass>GLACIER</StorageClass>")
                  ROW("l", "<StorageClass>DEEP_ARCHIVE</StorageClass>")
                          ROW("m", "<StorageClass>GLACIER_IR</StorageClass>")
                                  ROW("n", "<StorageClass>STANDARD_IA</StorageClass>") TAIL,
          "k|1|-1||archived\nl|1|-1||archived\nm|1|-1|\nn|1|-1|\n", NULL },
        /* an owner has elements of the same depth as the key's, and a deeper Key is none */
        { HEAD ROW("k", "<Owner><ID>i</ID><Key>x</Key><Size>7</Size></Owner>") TAIL, "k|1|-1|\n",
          NULL },
        { HEAD "<IsTruncated>true</IsTruncated><NextContinuationToken>1a/=+%2F "
               "</NextContinuationToken>" TAIL,
          "", "1a/=+%2F " },
        /* a token without a next page */
        { HEAD
          "<IsTruncated>false</IsTruncated><NextContinuationToken>1</NextContinuationToken>" TAIL,
          "", NULL },
};

START_TEST(pages_of_servers) {
        for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
                for (size_t piece = 1; piece < 1000; piece += 333) {
                        ck_assert_msg(parse(pages[i].page, piece) == 0, "%s", pages[i].page);
                        ck_assert_str_eq(page_given, pages[i].given);
                        ck_assert(!page_token == !pages[i].token);
                        if (page_token)
                                ck_assert_str_eq(page_token, pages[i].token);
                }
        }
}
END_TEST

START_TEST(what_is_no_page) {
        static const char *const texts[] = {
                "",
                "<html><body>login</body></html>",
                "<Error><Code>AccessDenied</Code></Error>",
                HEAD,
                HEAD ROW("k", ""),
                HEAD "<IsTruncated>true</IsTruncated>" TAIL,
                HEAD "<Contents><Key>k</Key><Size></Size></Contents>" TAIL,
                HEAD "<Contents><Key>k</Key><Size>-1</Size></Contents>" TAIL,
                HEAD "<Contents><Key>k</Key><Size>1e3</Size></Contents>" TAIL,
                HEAD "<Contents><Key>k</Key><Size>99999999999999999999</Size></Contents>" TAIL,
                HEAD "<Contents><Key>k</Key></Contents>" TAIL,
                HEAD "<Contents><Key></Key><Size>1</Size></Contents>" TAIL,
                HEAD "<Contents><Size>1</Size></Contents>" TAIL,
                "<!DOCTYPE x [<!ENTITY k 'k'>]>" HEAD ROW("&k;", "") TAIL,
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                ck_assert_msg(parse(texts[i], 50) == -EBADMSG, "%s", texts[i]);
                ck_assert_str_eq(page_given, "");
                ck_assert_ptr_null(page_token);
        }
}
END_TEST

START_TEST(memory_that_is_not_there) {
        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_THIS_THREAD);
                r = parse(sample, 100);
                if (!fail_end())
                        break;
                ck_assert_int_eq(r, -ENOMEM);
        }
        ck_assert_str_ne(page_given, "");
}
END_TEST

/* ---- Errors ---- */

START_TEST(errors_are_read) {
        static const char redirect[] =
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>PermanentRedirect</Code>"
                "<Message>The bucket &amp; you</Message><Endpoint>b.s3.eu-west-1.amazonaws.com"
                "</Endpoint><Bucket>b</Bucket><Region>eu-west-1</Region>"
                "<ServerTime>2013-05-24T00:00:00Z</ServerTime><RequestId>1</RequestId></Error>";
        struct s3_error error;

        s3_error_parse(redirect, strlen(redirect), &error);
        ck_assert_str_eq(error.code, "PermanentRedirect");
        ck_assert_str_eq(error.message, "The bucket & you");
        ck_assert_str_eq(error.region, "eu-west-1");
        ck_assert_str_eq(error.endpoint, "b.s3.eu-west-1.amazonaws.com");
        ck_assert_str_eq(error.server_time, "2013-05-24T00:00:00Z");
        /* cut off, as long answers are */
        s3_error_parse(redirect, 90, &error);
        ck_assert_str_eq(error.code, "PermanentRedirect");
        ck_assert_str_eq(error.message, "");
        s3_error_parse("<html>", 6, &error);
        ck_assert_str_eq(error.code, "");
        s3_error_parse("", 0, &error);
        ck_assert_str_eq(error.code, "");
}
END_TEST

START_TEST(codes_have_kinds) {
        ck_assert_int_eq(s3_error_kind("SlowDown"), S3_ERROR_THROTTLED);
        ck_assert_int_eq(s3_error_kind("InternalError"), S3_ERROR_TRANSIENT);
        ck_assert_int_eq(s3_error_kind("ExpiredToken"), S3_ERROR_CREDENTIALS);
        ck_assert_int_eq(s3_error_kind("RequestTimeTooSkewed"), S3_ERROR_CLOCK);
        ck_assert_int_eq(s3_error_kind("AccessDenied"), S3_ERROR_DENIED);
        ck_assert_int_eq(s3_error_kind("InvalidObjectState"), S3_ERROR_ARCHIVED);
        ck_assert_int_eq(s3_error_kind("KMS.DisabledException"), S3_ERROR_KMS);
        ck_assert_int_eq(s3_error_kind("AuthorizationHeaderMalformed"), S3_ERROR_REGION);
        ck_assert_int_eq(s3_error_kind("NoSuchBucket"), S3_ERROR_NO_BUCKET);
        ck_assert_int_eq(s3_error_kind(""), S3_ERROR_OTHER);
}
END_TEST

RUNNER_MAIN("store/s3_listing", samples_of_the_reference, pages_of_servers, what_is_no_page,
            memory_that_is_not_there, errors_are_read, codes_have_kinds)
