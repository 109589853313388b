/* SPDX-License-Identifier: Apache-2.0 */
/* The first document is the example of RFC 4918, 9.1.3, cut to what is asked for; others vary it. */
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/http_index.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static char found[2048];
static unsigned most;

static bool on_entry(void *userdata, const struct autoindex_entry *entry) {
        size_t size = strlen(found);

        (void)userdata;
        snprintf(found + size, sizeof(found) - size, "%s%s %lld %lld;", entry->name,
                 entry->is_directory ? "/" : "", (long long)entry->size_bytes,
                 (long long)(entry->mtime_ns == INT64_MIN ? -1 : entry->mtime_ns / 1000000000));
        return --most > 0;
}

/* In pieces of so many bytes. */
static int parse(const char *path, const char *text, size_t piece) {
        void *parser;
        size_t size = strlen(text);
        int r = http_index_dav.new(path, on_entry, NULL, &parser);

        found[0] = '\0';
        most = 1000;
        if (r < 0)
                return r;
        for (size_t at = 0; at < size && r == 0; at += piece)
                r = http_index_dav.feed(parser, (const uint8_t *)text + at,
                                        min_u64(piece, size - at));
        if (r == 0)
                r = http_index_dav.finish(parser);
        http_index_dav.free(parser);
        return r;
}

#define RESPONSE(href, properties) \
        "<D:response><D:href>" href "</D:href><D:propstat><D:prop>" properties \
        "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
#define COLLECTION "<D:resourcetype><D:collection/></D:resourcetype>"
#define FILE_OF(size, date) \
        "<D:resourcetype/><D:getcontentlength>" size \
        "</D:getcontentlength><D:getlastmodified>" date "</D:getlastmodified>"
#define BEGIN "<?xml version=\"1.0\" encoding=\"utf-8\"?><D:multistatus xmlns:D=\"DAV:\">"
#define END "</D:multistatus>"

static const char document[] = BEGIN RESPONSE("/container/", COLLECTION)
        RESPONSE("/container/front.html", FILE_OF("4525", "Mon, 12 Jan 1998 09:25:56 GMT"))
                RESPONSE("/container/run%20a%252B/", COLLECTION) END;

START_TEST(entries_of_a_directory) {
        for (size_t piece = 1; piece < sizeof(document); piece += 7) {
                ck_assert_int_eq(parse("/container/", document, piece), 0);
                ck_assert_str_eq(found, "front.html 4525 884597156;run a%2B/ -1 -1;");
        }
        /* Another way to name the same directory. */
        ck_assert_int_eq(parse("/cont%61iner", document, 100), 0);
        ck_assert_str_eq(found, "front.html 4525 884597156;run a%2B/ -1 -1;");
}
END_TEST

START_TEST(hrefs_may_be_urls_and_prefixes_anything) {
        ck_assert_int_eq(parse("/",
                               "<multistatus xmlns=\"DAV:\"><response><href>http://host:80/</href>"
                               "<propstat><prop><resourcetype><collection/></resourcetype>"
                               "</prop></propstat></response><response><href>http://host:80/x"
                               "</href><propstat><prop><getcontentlength/></prop></propstat>"
                               "</response></multistatus>",
                               50),
                         0);
        ck_assert_str_eq(found, "x -1 -1;");
}
END_TEST

START_TEST(what_makes_no_sense_is_not_said) {
        ck_assert_int_eq(parse("/",
                               BEGIN RESPONSE("/a", FILE_OF("-5", "yesterday"))
                                       RESPONSE("/b", FILE_OF("5x", "")) RESPONSE("", COLLECTION)
                                               RESPONSE("/c%00d", COLLECTION) END,
                               1000),
                         0);
        ck_assert_str_eq(found, "a -1 -1;b -1 -1;");
}
END_TEST

START_TEST(what_is_no_listing_is_told_from_what_is_damaged) {
        char cut[sizeof(document)];

        ck_assert_int_eq(parse("/", "<html><body>no</body></html>", 100), AUTOINDEX_E_NO_LISTING);
        ck_assert_int_eq(parse("/", "plain text", 100), AUTOINDEX_E_NO_LISTING);
        ck_assert_int_eq(parse("/", "", 100), AUTOINDEX_E_NO_LISTING);
        ck_assert_int_eq(parse("/", "<!DOCTYPE a [<!ENTITY b \"c\">]><multistatus/>", 100),
                         AUTOINDEX_E_NO_LISTING);
        for (size_t size = strlen(BEGIN); size < sizeof(document) - 1; size++) {
                memcpy(cut, document, size);
                cut[size] = '\0';
                ck_assert_msg(parse("/container", cut, 100) == AUTOINDEX_E_DAMAGED, "%zu", size);
        }
}
END_TEST

START_TEST(memory_that_is_not_there) {
        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_THIS_THREAD);
                r = parse("/container/", document, 100);
                if (!fail_end())
                        break;
                ck_assert_int_lt(r, 0);
        }
}
END_TEST

RUNNER_MAIN("store/http_index_dav", entries_of_a_directory, hrefs_may_be_urls_and_prefixes_anything,
            what_makes_no_sense_is_not_said, what_is_no_listing_is_told_from_what_is_damaged,
            memory_that_is_not_there)
