/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/autoindex.h"

#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

struct entry {
        char name[256];
        size_t size;
        bool is_directory;
        uint64_t size_bytes;
        int64_t mtime_ns;
};

struct entries {
        struct entry at[32];
        size_t count;
};

static bool on_entry(void *userdata, const struct autoindex_entry *entry) {
        struct entries *entries = userdata;
        struct entry *kept = &entries->at[entries->count];

        ck_assert_uint_lt(entries->count, ARRAY_SIZE(entries->at));
        ck_assert_uint_lt(entry->name_size, sizeof(kept->name));
        memcpy(kept->name, entry->name, entry->name_size + 1);
        kept->size = entry->name_size;
        kept->is_directory = entry->is_directory;
        kept->size_bytes = entry->size_bytes;
        kept->mtime_ns = entry->mtime_ns;
        entries->count++;
        return true;
}

/* In pieces of at most piece bytes. */
static int parse(const char *text, size_t size, size_t piece, struct entries *ret_entries) {
        struct autoindex index;
        int r = 0;

        ret_entries->count = 0;
        autoindex_init(&index, on_entry, ret_entries);
        for (size_t at = 0; at < size && r == 0; at += piece)
                r = autoindex_feed(&index, (const uint8_t *)text + at, min_u64(piece, size - at));
        if (r == 0)
                r = autoindex_finish(&index);
        autoindex_deinit(&index);
        return r;
}

/* As nginx 1.22 wrote it, for files with these names (touch, mkdir, printf). */
static const char nginx_listing[] =
        "[\r\n"
        "{ \"name\":\"run\", \"type\":\"directory\", \"mtime\":\"Mon, 30 Nov 2026 19:56:48 GMT\" "
        "},\r\n"
        "{ \"name\":\"gr\xc3\xbc\xc3\x9f.tfevents\", \"type\":\"file\", \"mtime\":\"Mon, 30 Nov "
        "2026 19:56:48 GMT\", \"size\":7 "
        "},\r\n"
        "{ \"name\":\"latin-\xe9-\xff.tfevents\", \"type\":\"file\", \"mtime\":\"Mon, 30 Nov 2026 "
        "19:56:48 GMT\", \"size\":8 },\r\n"
        "{ \"name\":\"new\\nline.tfevents\", \"type\":\"file\", \"mtime\":\"Mon, 30 Nov 2026 "
        "19:56:48 GMT\", \"size\":9 },\r\n"
        "{ \"name\":\"private\xf4\x8f\xbd\x81.tfevents\", \"type\":\"file\", \"mtime\":\"Mon, 30 "
        "Nov 2026 19:56:48 GMT\", "
        "\"size\":10 },\r\n"
        "{ \"name\":\"quote\\\"'.tfevents\", \"type\":\"file\", \"mtime\":\"Mon, 30 Nov 2026 "
        "19:56:48 GMT\", \"size\":11 },\r\n"
        "{ \"name\":\"fifo\", \"type\":\"other\", \"mtime\":\"Mon, 30 Nov 2026 19:56:48 GMT\" }\r\n"
        "]";

static const char *const nginx_names[] = { "run",
                                           "gr\xc3\xbc\xc3\x9f.tfevents",
                                           "latin-\xe9-\xff.tfevents",
                                           "new\nline.tfevents",
                                           "private\xf4\x8f\xbd\x81.tfevents",
                                           "quote\"'.tfevents" };

START_TEST(reads_nginx) {
        struct entries entries;

        for (size_t piece = 1; piece < sizeof(nginx_listing); piece++) {
                ck_assert_int_eq(parse(nginx_listing, sizeof(nginx_listing) - 1, piece, &entries),
                                 0);
                ck_assert_uint_eq(entries.count, ARRAY_SIZE(nginx_names));
                for (size_t i = 0; i < entries.count; i++) {
                        ck_assert_str_eq(entries.at[i].name, nginx_names[i]);
                        ck_assert(entries.at[i].is_directory == (i == 0));
                        ck_assert_uint_eq(entries.at[i].size_bytes, i == 0 ? UINT64_MAX : 6 + i);
                        /* date -d ... +%s */
                        ck_assert_int_eq(entries.at[i].mtime_ns, 1796068608000000000);
                }
        }
}
END_TEST

static const struct {
        const char *text, *name;
} names[] = {
        /*
         * Genuine code points of the private range, as they are and escaped, and the bytes that
         * look like them.
         */
        { "\xf4\x8f\xbd\x81", "\xf4\x8f\xbd\x81" },
        { "\xf4\x8f\xbc\x80", "\xf4\x8f\xbc\x80" },
        { "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
        { "\\udbff\\udf41", "\xf4\x8f\xbd\x81" },
        { "\\uDBFF\\uDFFF", "\xf4\x8f\xbf\xbf" },
        { "\\udbff\\udeff", "\xf4\x8f\xbb\xbf" }, /* the last one before the range */
        { "\xf4\x8f\xbb\xbf", "\xf4\x8f\xbb\xbf" },
        { "\\\\udbff\\\\udf41", "\\udbff\\udf41" },
        { "\xf4\x8f\xbd", "\xf4\x8f\xbd" },
        { "\xf4", "\xf4" },
        { "\xf4\x90\x80\x80", "\xf4\x90\x80\x80" }, /* behind U+10FFFF */
        { "\xed\xa0\x80", "\xed\xa0\x80" },         /* a surrogate */
        { "\xc0\xaf", "\xc0\xaf" },                 /* not the shortest form */
        { "\x80\xbf\xfe\xff", "\x80\xbf\xfe\xff" },
        { "\xe2\x82\xac\xe2\x82", "\xe2\x82\xac\xe2\x82" },
        { "a\\u0041\\t\\/\\\\\\\"", "aA\t/\\\"" },
        { "\xff\\u00ff", "\xff\xc3\xbf" },
        { "[{,}]:", "[{,}]:" },
};

START_TEST(names_are_bytes) {
        struct entries entries;
        char text[256];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                for (size_t piece = 1; piece < 40; piece++) {
                        int size = snprintf(text, sizeof(text), "[{\"name\":\"%s\"}]",
                                            names[i].text);

                        ck_assert_msg(parse(text, (size_t)size, piece, &entries) == 0, "case %zu",
                                      i);
                        ck_assert_uint_eq(entries.count, 1);
                        ck_assert_str_eq(entries.at[0].name, names[i].name);
                }
        }
}
END_TEST

/* Every string of two bytes that can stand in a name comes back, and so no two become the same. */
START_TEST(all_pairs_of_bytes_come_back) {
        struct entries entries;

        for (unsigned pair = 0; pair < 65536; pair++) {
                char name[3] = { (char)(pair >> 8), (char)pair, 0 }, text[64];
                int size;

                if ((uint8_t)name[0] < ' ' || (uint8_t)name[1] < ' ' || strpbrk(name, "\"\\"))
                        continue;
                size = snprintf(text, sizeof(text), "[{\"name\":\"%s\"}]", name);
                ck_assert_int_eq(parse(text, (size_t)size, 5, &entries), 0);
                ck_assert_str_eq(entries.at[0].name, name);
        }
}
END_TEST

static const struct {
        const char *text;
        int outcome;
} listings[] = {
        { "[]", 0 },
        { " [ ] \n", 0 },
        { "", AUTOINDEX_E_DAMAGED },
        { "[", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":\"a\"}", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":\"a\"},", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":\"a\"},]", AUTOINDEX_E_DAMAGED },
        { "[,{\"name\":\"a\"}]", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":\"a\"}] x", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":\"a\"}{\"name\":\"b\"}]", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":7}]", AUTOINDEX_E_DAMAGED },
        { "[{}]", AUTOINDEX_E_DAMAGED },
        { "[null]", AUTOINDEX_E_DAMAGED },
        { "[[]]", AUTOINDEX_E_DAMAGED },
        { "[}]", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":\"a\",\"type\":1}]", AUTOINDEX_E_DAMAGED },
        { "[{\"name\":\"\\ud800\"}]", AUTOINDEX_E_DAMAGED },
        { "<html>", AUTOINDEX_E_NO_LISTING },
        { "{\"name\":\"a\"}", AUTOINDEX_E_NO_LISTING },
        { "\xff", AUTOINDEX_E_NO_LISTING },
        { "[{\"name\":\"a\\u0000b\"}]", 0 }, /* passed over */
        { "[{\"name\":\"a\",\"type\":\"socket\"}]", 0 },
};

START_TEST(damage_is_seen) {
        struct entries entries;

        for (size_t i = 0; i < ARRAY_SIZE(listings); i++) {
                for (size_t piece = 1; piece < 8; piece++) {
                        int r = parse(listings[i].text, strlen(listings[i].text), piece, &entries);

                        ck_assert_msg(r == listings[i].outcome, "%s: %d", listings[i].text, r);
                        if (r == 0)
                                ck_assert_uint_eq(entries.count, 0);
                }
        }
}
END_TEST

START_TEST(memory_is_bounded) {
        static const char begin[] = "[{\"name\":\"", filler[1000] = { [0 ... 999] = 'x' };
        struct entries entries = { .count = 0 };
        struct autoindex index;
        int r;

        autoindex_init(&index, on_entry, &entries);
        r = autoindex_feed(&index, (const uint8_t *)begin, sizeof(begin) - 1);
        for (int i = 0; i < 1000 && r == 0; i++)
                r = autoindex_feed(&index, (const uint8_t *)filler, sizeof(filler));
        ck_assert_int_eq(r, AUTOINDEX_E_TOO_LARGE);
        ck_assert_uint_le(index.text_space, 2 * AUTOINDEX_ENTRY_MOST_BYTES);
        autoindex_deinit(&index);
}
END_TEST

START_TEST(sizes_and_times_may_be_odd) {
        static const char text[] = "[{\"name\":\"a\",\"size\":-1,\"mtime\":\"yesterday-ish\"},{"
                                   "\"name\":\"b\",\"size\":"
                                   "9223372036854775807,\"mtime\":1.5},"
                                   "{\"name\":\"c\",\"size\":\"7\",\"mtime\":1e300},{\"name\":"
                                   "\"d\",\"size\":1.5,\"mtime\":null}]";
        struct entries entries;

        ck_assert_int_eq(parse(text, sizeof(text) - 1, 1000, &entries), 0);
        ck_assert_uint_eq(entries.count, 4);
        ck_assert_uint_eq(entries.at[0].size_bytes, UINT64_MAX);
        ck_assert_int_eq(entries.at[0].mtime_ns, INT64_MIN);
        ck_assert_uint_eq(entries.at[1].size_bytes, INT64_MAX);
        ck_assert_int_eq(entries.at[1].mtime_ns, 1500000000);
        for (int i = 2; i < 4; i++) {
                ck_assert_uint_eq(entries.at[i].size_bytes, UINT64_MAX);
                ck_assert_int_eq(entries.at[i].mtime_ns, INT64_MIN);
        }
}
END_TEST

RUNNER_MAIN("store/autoindex", reads_nginx, names_are_bytes, all_pairs_of_bytes_come_back,
            damage_is_seen, memory_is_bounded, sizes_and_times_may_be_odd)
