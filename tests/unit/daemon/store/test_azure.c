/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs are the forms that Azure's tools and Hadoop's ABFS driver document; the page is the sample
 * of "List Blobs" in the Azure Storage REST API, cut, with an encoded name beside. Signatures are
 * checked in tests/integration/test_azure_credentials.py, and by Azurite (tests/peers/test_azure.py).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/azure_listing.h"
#include "daemon/store/azure_place.h"
#include "tests/unit/daemon/store/page_harness.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static const struct {
        const char *url, *account, *container, *prefix, *endpoint, *sas;
} places[] = {
        { "az://logs/exp/a/", "mine", "logs", "exp/a", "https://mine.blob.core.windows.net", NULL },
        { "az://logs", "mine", "logs", "", "https://mine.blob.core.windows.net", NULL },
        { "az://other.blob.core.windows.net/logs/exp", "other", "logs", "exp",
          "https://other.blob.core.windows.net", NULL },
        { "abfss://logs@other.dfs.core.windows.net/exp/b", "other", "logs", "exp/b",
          "https://other.blob.core.windows.net", NULL },
        { "https://other.blob.core.windows.net/logs/exp?sv=1&sig=a%2Bb", "other", "logs", "exp",
          "https://other.blob.core.windows.net", "sv=1&sig=a%2Bb" },
        { "https://other.blob.core.chinacloudapi.cn/logs?sig=S", "other", "logs", "",
          "https://other.blob.core.chinacloudapi.cn", "sig=S" },
        { "abfss://logs@other.dfs.core.usgovcloudapi.net/exp", "other", "logs", "exp",
          "https://other.blob.core.usgovcloudapi.net", NULL },
        { "https://other.blob.core.windows.net/logs/a%20b/c%2525+d%2F/?sig=a%2Bb", "other", "logs",
          "a b/c%25+d", "https://other.blob.core.windows.net", "sig=a%2Bb" },
        { "az://logs/a%20b", "mine", "logs", "a%20b", "https://mine.blob.core.windows.net", NULL },
        { "https://other.blob.core.windows.net/$web", "other", "$web", "",
          "https://other.blob.core.windows.net", NULL },
};

START_TEST(urls_of_all_forms) {
        struct azure_settings settings = { .account = (char *)"mine" };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                struct azure_place place;
                const char *message;

                ck_assert_msg(azure_place_init(&place, places[i].url, &settings, &message) == 0,
                              "%s: %s", places[i].url, message);
                ck_assert_str_eq(place.account, places[i].account);
                ck_assert_str_eq(place.container, places[i].container);
                ck_assert_str_eq(place.prefix, places[i].prefix);
                ck_assert_str_eq(place.endpoint, places[i].endpoint);
                ck_assert_str_eq(place.base, "");
                ck_assert_pstr_eq(place.sas, places[i].sas);
                azure_place_deinit(&place);
        }
        ck_assert(azure_place_is_url("https://other.blob.core.windows.net/logs"));
        ck_assert(azure_place_is_url("https://other.blob.core.chinacloudapi.cn/logs"));
        ck_assert(!azure_place_is_url("https://blob.example.org/logs"));
        ck_assert(!azure_place_is_url("http://other.blob.core.windows.net/logs"));
        ck_assert(!azure_place_is_url("https://example.org/.blob.core.windows.net/"));
}
END_TEST

START_TEST(urls_that_name_nothing_are_refused) {
        static const char *const urls[] = { "az://",
                                            "az:///x",
                                            "az://a_b/x",
                                            "az://logs/x",
                                            "az://other.blob.core.windows.net/",
                                            "https://other.blob.core.windows.net/logs/a%00b" };
        struct azure_settings none = { .account = NULL };

        for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
                struct azure_place place;
                const char *message = NULL;

                ck_assert_msg(azure_place_init(&place, urls[i], &none, &message) == -EINVAL, "%s",
                              urls[i]);
                ck_assert_ptr_nonnull(message);
        }
}
END_TEST

START_TEST(connection_string_and_what_goes_before_it) {
        struct azure_settings settings;
        struct azure_place place;
        const char *message;

        setenv("AZURE_STORAGE_CONNECTION_STRING",
               "DefaultEndpointsProtocol=http;AccountName=one;AccountKey=a2V5==;"
               "BlobEndpoint=http://127.0.0.1:10000/one/;",
               1);
        unsetenv("AZURE_STORAGE_ACCOUNT");
        ck_assert_int_eq(azure_settings_from_environment(&settings), 0);
        ck_assert_str_eq(settings.account, "one");
        ck_assert_str_eq(settings.key, "a2V5==");
        ck_assert_int_eq(azure_place_init(&place, "az://logs/x", &settings, &message), 0);
        ck_assert_str_eq(place.endpoint, "http://127.0.0.1:10000");
        ck_assert_str_eq(place.base, "/one");
        azure_place_deinit(&place);
        /* A host that the URL names is not replaced. */
        ck_assert_int_eq(azure_place_init(&place, "az://other.blob.core.windows.net/logs?sig=S",
                                          &settings, &message),
                         0);
        ck_assert_str_eq(place.endpoint, "https://other.blob.core.windows.net");
        ck_assert_str_eq(place.base, "");
        azure_place_deinit(&place);
        azure_settings_deinit(&settings);
        setenv("AZURE_STORAGE_ACCOUNT", "two", 1);
        setenv("AZURE_STORAGE_SAS_TOKEN", "?sig=x", 1);
        ck_assert_int_eq(azure_settings_from_environment(&settings), 0);
        ck_assert_str_eq(settings.account, "two");
        ck_assert_str_eq(settings.sas, "sig=x");
        azure_settings_deinit(&settings);
}
END_TEST

static const char page[] =
        "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>"
        "<EnumerationResults ServiceEndpoint=\"http://myaccount.blob.core.windows.net/\" "
        "ContainerName=\"mycontainer\"><Prefix>exp/</Prefix><MaxResults>4</MaxResults><Blobs>"
        "<Blob><Name>exp/a&amp;b</Name><Properties><Last-Modified>Wed, 09 Sep 2009 09:20:02 GMT"
        "</Last-Modified><Etag>0x8CBFF45D8A29A19</Etag><Content-Length>100</Content-Length>"
        "<Content-Type>text/html</Content-Type><AccessTier>Hot</AccessTier></Properties></Blob>"
        "<Blob><Name Encoded=\"true\">exp/%EF%BF%BE+%25</Name><Properties><Content-Length>5"
        "</Content-Length><AccessTier>Archive</AccessTier><Etag>\"0x2\"</Etag></Properties></Blob>"
        "<Blob><Name>exp/dir</Name><Properties><ResourceType>directory</ResourceType>"
        "<Content-Length>0</Content-Length></Properties></Blob>"
        "<BlobPrefix><Name>exp/sub/</Name></BlobPrefix></Blobs><NextMarker>2!token</NextMarker>"
        "</EnumerationResults>";

static int parse(const char *text, size_t size, size_t piece) {
        static const struct object_dialect dialect = {
                .page_new = azure_listing_new,
                .page_feed = azure_listing_feed,
                .page_end = azure_listing_end,
                .page_free = azure_listing_free,
        };

        return page_parse(&dialect, text, size, piece);
}

START_TEST(page_of_blobs) {
        for (size_t piece = 1; piece < sizeof(page); piece += 9) {
                ck_assert_int_eq(parse(page, sizeof(page) - 1, piece), 0);
                ck_assert_str_eq(page_given, "exp/a&b|100|1252488002000|0x8CBFF45D8A29A19\n"
                                             "exp/\xef\xbf\xbe+%|5|-1|0x2|archived\n"
                                             "exp/dir|0|-1||directory\nexp/sub/\n");
                ck_assert_str_eq(page_token, "2!token");
        }
}
END_TEST

START_TEST(pages_that_are_none) {
        for (size_t size = 0; size < sizeof(page) - 1; size++)
                ck_assert_msg(parse(page, size, 100) == -EBADMSG, "%zu", size);
        ck_assert_int_eq(parse("<a/>", 4, 100), -EBADMSG);
}
END_TEST

START_TEST(memory_that_is_not_there) {
        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_THIS_THREAD);
                r = parse(page, sizeof(page) - 1, 100);
                if (!fail_end())
                        break;
                ck_assert_int_eq(r, -ENOMEM);
        }
}
END_TEST

RUNNER_MAIN("store/azure", urls_of_all_forms, urls_that_name_nothing_are_refused,
            connection_string_and_what_goes_before_it, page_of_blobs, pages_that_are_none,
            memory_that_is_not_there)
