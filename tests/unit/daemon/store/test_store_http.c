/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_http.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/core/config.h"
#include "tests/unit/daemon/store/fault_server.h"
#include "tests/unit/daemon/store/store_harness.h"
#include "tests/unit/runner.h"

#define NAME "a.tfevents"
#define SIZE 10000

static struct fault_server server;
static struct store_harness harness;

static void begin(void) {
        fault_server_start(&server);
        test_file_write(server.root, NAME, SIZE);
        store_harness_open_http(&harness, server.url, &impatient);
}

static void end(void) {
        store_harness_close(&harness);
        fault_server_stop(&server);
}

static void assert_read(enum store_failure_class class, const char *code, uint64_t size) {
        ck_assert_msg(harness.result.failure.class == class &&
                              strcmp(harness.result.failure.code, code) == 0,
                      "class %d, code %s, %s", harness.result.failure.class,
                      harness.result.failure.code, harness.result.failure.message);
        ck_assert_uint_eq(harness.result.size_bytes, size);
}

START_TEST(reads_ranges) {
        unsigned connections;

        begin();
        connections = fault_server_connections(&server);
        store_harness_read(&harness, NAME, 0, SIZE + 65536);
        assert_read(STORE_OK, "", SIZE);
        assert_test_bytes(harness.buffer, 0, SIZE);
        ck_assert_uint_eq(harness.result.total_bytes, SIZE);
        ck_assert_uint_gt(harness.result.first_byte_ns, 0);
        ck_assert_uint_ge(harness.result.total_ns, harness.result.first_byte_ns);
        store_harness_read(&harness, NAME, 123, 1000);
        assert_read(STORE_OK, "", 1000);
        assert_test_bytes(harness.buffer, 123, 1000);
        ck_assert_uint_eq(harness.result.total_bytes, SIZE);
        ck_assert_str_ne(harness.result.tag, "");
        store_harness_read(&harness, NAME, SIZE - 1, 1);
        assert_read(STORE_OK, "", 1);
        store_harness_read(&harness, NAME, SIZE, 1000);
        assert_read(STORE_END, "416", 0);
        ck_assert_uint_eq(harness.result.total_bytes, SIZE);
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 4);
        /* One connection for all of it; each question to the fault server is one, too. */
        connections = fault_server_connections(&server) - connections;
        ck_assert_uint_eq(connections, 1 + 2);
        end();
}
END_TEST

/* What a single read makes of each fault. */
static const struct {
        const char *order;
        uint64_t offset, size;
        enum store_failure_class class;
        const char *code;
        uint64_t got, total;
} faults[] = {
        { "{'fault':'status','status':404}", 0, 100, STORE_PERMANENT, "404", 0, UINT64_MAX },
        { "{'fault':'status','status':403}", 0, 100, STORE_PERMANENT, "403", 0, UINT64_MAX },
        { "{'fault':'status','status':401}", 0, 100, STORE_PERMANENT, "401", 0, UINT64_MAX },
        { "{'fault':'status','status':405}", 0, 100, STORE_PERMANENT, "405", 0, UINT64_MAX },
        { "{'fault':'status','status':408}", 0, 100, STORE_TRANSIENT, "408", 0, UINT64_MAX },
        { "{'fault':'status','status':429}", 0, 100, STORE_THROTTLED, "429", 0, UINT64_MAX },
        { "{'fault':'status','status':500}", 0, 100, STORE_TRANSIENT, "500", 0, UINT64_MAX },
        { "{'fault':'status','status':502}", 0, 100, STORE_TRANSIENT, "502", 0, UINT64_MAX },
        { "{'fault':'status','status':503}", 0, 100, STORE_THROTTLED, "503", 0, UINT64_MAX },
        { "{'fault':'status','status':504}", 0, 100, STORE_TRANSIENT, "504", 0, UINT64_MAX },
        { "{'fault':'stall','after':1000}", 0, SIZE, STORE_TRANSIENT, "stalled", 1000, SIZE },
        { "{'fault':'silent'}", 0, SIZE, STORE_TRANSIENT, "timeout", 0, UINT64_MAX },
        { "{'fault':'reset','after':1000}", 0, SIZE, STORE_THROTTLED, "reset", 1000, SIZE },
        { "{'fault':'close'}", 0, SIZE, STORE_TRANSIENT, "no-answer", 0, UINT64_MAX },
        { "{'fault':'short','after':1000}", 5, 5000, STORE_TRANSIENT, "short", 1000, SIZE },
        { "{'fault':'no_range'}", 0, SIZE, STORE_OK, "", SIZE, SIZE },
        { "{'fault':'no_range'}", 0, SIZE + 1, STORE_OK, "", SIZE, SIZE },
        { "{'fault':'no_range'}", 0, SIZE - 1, STORE_NO_RANGE, "no-range", 0, SIZE },
        { "{'fault':'no_range'}", 1, SIZE, STORE_NO_RANGE, "no-range", 0, SIZE },
        { "{'fault':'wrong_range'}", 0, SIZE, STORE_TRANSIENT, "bad-range", 0, SIZE },
        { "{'fault':'wrong_range','by':-1}", 5, 100, STORE_TRANSIENT, "bad-range", 0, SIZE },
        { "{'fault':'empty_206'}", 5, 100, STORE_END, "end", 0, UINT64_MAX },
        { "{'fault':'trickle','piece':1000,'ms':1}", 0, SIZE, STORE_OK, "", SIZE, SIZE },
        { "{'fault':'redirect','location':'/_loop'}", 0, 100, STORE_PERMANENT, "redirects", 0,
          UINT64_MAX },
};

START_TEST(faults_are_classed) {
        begin();
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                fault_server_order(&server, "{'clear':true}");
                fault_server_order(&server, faults[i].order);
                store_harness_read(&harness, NAME, faults[i].offset, faults[i].size);
                ck_assert_msg(harness.result.failure.class == faults[i].class &&
                                      strcmp(harness.result.failure.code, faults[i].code) == 0,
                              "%s: class %d, code %s, %s", faults[i].order,
                              harness.result.failure.class, harness.result.failure.code,
                              harness.result.failure.message);
                ck_assert_msg(harness.result.size_bytes == faults[i].got, "%s: %llu bytes",
                              faults[i].order, (unsigned long long)harness.result.size_bytes);
                ck_assert_msg(harness.result.total_bytes == faults[i].total, "%s: total %llu",
                              faults[i].order, (unsigned long long)harness.result.total_bytes);
                assert_test_bytes(harness.buffer, faults[i].offset, faults[i].got);
                if (faults[i].class != STORE_OK)
                        ck_assert_msg(strstr(harness.result.failure.message, NAME) ||
                                              faults[i].code[0] == 'r',
                                      "%s does not name the file", harness.result.failure.message);
        }
        end();
}
END_TEST

START_TEST(works_after_every_fault) {
        begin();
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                fault_server_order(&server, "{'clear':true}");
                fault_server_order(&server, faults[i].order);
                store_harness_read(&harness, NAME, faults[i].offset, faults[i].size);
                fault_server_order(&server, "{'clear':true}");
                store_harness_read(&harness, NAME, 17, 4000);
                assert_read(STORE_OK, "", 4000);
                assert_test_bytes(harness.buffer, 17, 4000);
        }
        end();
}
END_TEST

START_TEST(retry_after_is_told) {
        begin();
        fault_server_order(&server, "{'fault':'status','status':503,'retry_after':'7'}");
        store_harness_read(&harness, NAME, 0, 100);
        ck_assert_uint_eq(harness.result.failure.retry_after_ms, 7000);
        end();
}
END_TEST

START_TEST(tags_tell_versions_apart) {
        char first[64];

        begin();
        store_harness_read(&harness, NAME, 0, 100);
        memcpy(first, harness.result.tag, sizeof(first));
        store_harness_read(&harness, NAME, 100, 100);
        ck_assert_str_eq(harness.result.tag, first);
        fault_server_order(&server, "{'fault':'no_etag','weak':true}");
        store_harness_read(&harness, NAME, 100, 100);
        ck_assert_str_eq(harness.result.tag, first);
        fault_server_order(&server, "{'clear':true}");
        fault_server_order(&server, "{'fault':'etag'}");
        store_harness_read(&harness, NAME, 100, 100);
        ck_assert_str_ne(harness.result.tag, first);
        end();
}
END_TEST

static const char *const odd_names[] = {
        "b/with space.tfevents",
        "b/quote\"'.tfevents",
        "b/percent%41%2f.tfevents",
        "b/question?x=1#y.tfevents",
        "b/back\\slash.tfevents",
        "b/new\nline.tfevents",
        "b/latin-\xe9-\xff.tfevents",
        "b/gr\xc3\xbc\xc3\x9f.tfevents",
        "b/private\xf4\x8f\xbd\x81.tfevents",
        "b/x../dots.tfevents",
        "b/plus+&=;.tfevents",
};

START_TEST(odd_names_come_back) {
        begin();
        for (size_t i = 0; i < ARRAY_SIZE(odd_names); i++)
                test_file_write(server.root, odd_names[i], 100 + i);
        test_file_write(server.root, "b/not-an-event-file", 10);
        test_file_write(server.root, "tfevents/neither", 10);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, ARRAY_SIZE(odd_names) + 1);
        ck_assert_uint_eq(harness.unreadable_count, 0);
        for (size_t i = 0; i < ARRAY_SIZE(odd_names); i++) {
                const struct harness_row *row = store_harness_row(&harness, odd_names[i]);

                ck_assert_msg(row, "%s", odd_names[i]);
                ck_assert_uint_eq(row->row.size_bytes, 100 + i);
                ck_assert_int_gt(row->row.mtime_ns, 0);
                store_harness_read(&harness, odd_names[i], 0, 1000);
                assert_read(STORE_OK, "", 100 + i);
        }
        ck_assert_uint_eq(harness.requests, 4); /* one for each directory */
        end();
}
END_TEST

START_TEST(loops_are_left_out) {
        char link[128];

        begin();
        test_file_write(server.root, "sub/b.tfevents", 1);
        test_file_write(server.root, "x/x/x/same-second.tfevents", 1);
        snprintf(link, sizeof(link), "%s/sub/up", server.root);
        ck_assert_int_eq(symlink("..", link), 0);
        snprintf(link, sizeof(link), "%s/self", server.root);
        ck_assert_int_eq(symlink(".", link), 0);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 3);
        ck_assert_ptr_nonnull(store_harness_row(&harness, NAME));
        ck_assert_ptr_nonnull(store_harness_row(&harness, "sub/b.tfevents"));
        ck_assert_ptr_nonnull(store_harness_row(&harness, "x/x/x/same-second.tfevents"));
        end();
}
END_TEST

static const struct {
        const char *order;
        enum store_failure_class class;
        const char *code;
} listing_faults[] = {
        { "{'kind':'list','fault':'status','status':403}", STORE_PERMANENT, "403" },
        { "{'kind':'list','fault':'status','status':404}", STORE_PERMANENT, "404" },
        { "{'kind':'list','fault':'status','status':500}", STORE_TRANSIENT, "500" },
        { "{'kind':'list','fault':'status','status':503}", STORE_THROTTLED, "503" },
        { "{'kind':'list','fault':'garbage'}", STORE_TRANSIENT, "bad-listing" },
        { "{'kind':'list','fault':'garbage','body':'<html>hello</html>'}", STORE_PERMANENT,
          "no-listing" },
        { "{'kind':'list','fault':'garbage','body':'[ 7 ]'}", STORE_TRANSIENT, "bad-listing" },
        { "{'kind':'list','fault':'garbage','body':''}", STORE_TRANSIENT, "bad-listing" },
        { "{'kind':'list','fault':'garbage','body':'[] []'}", STORE_TRANSIENT, "bad-listing" },
        { "{'kind':'list','fault':'stall','after':20}", STORE_TRANSIENT, "stalled" },
        { "{'kind':'list','fault':'short','after':20}", STORE_TRANSIENT, "short" },
        { "{'kind':'list','fault':'reset','after':20}", STORE_THROTTLED, "reset" },
        { "{'kind':'list','fault':'close'}", STORE_TRANSIENT, "no-answer" },
        { "{'kind':'list','fault':'silent'}", STORE_TRANSIENT, "timeout" },
};

START_TEST(failed_listings_say_so) {
        begin();
        for (size_t i = 0; i < ARRAY_SIZE(listing_faults); i++) {
                fault_server_order(&server, "{'clear':true}");
                fault_server_order(&server, listing_faults[i].order);
                store_harness_list(&harness);
                ck_assert_msg(harness.failure.class == listing_faults[i].class &&
                                      strcmp(harness.failure.code, listing_faults[i].code) == 0,
                              "%s: class %d, code %s, %s", listing_faults[i].order,
                              harness.failure.class, harness.failure.code, harness.failure.message);
        }
        fault_server_order(&server, "{'clear':true}");
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 1);
        end();
}
END_TEST

START_TEST(directory_that_fails_is_told) {
        begin();
        test_file_write(server.root, "good/b.tfevents", 1);
        test_file_write(server.root, "bad/c.tfevents", 1);
        fault_server_order(&server, "{'path':'/bad/','fault':'status','status':403}");
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 2);
        ck_assert_uint_eq(harness.unreadable_count, 1);
        ck_assert_str_eq(harness.unreadable[0], "bad: 403");
        end();
}
END_TEST

START_TEST(directory_is_asked_again) {
        begin();
        test_file_write(server.root, "bad/c.tfevents", 1);
        fault_server_order(&server, "[{'path':'/bad/','fault':'status','status':500,'times':1},"
                                    "{'path':'/bad/','fault':'short','times':1}]");
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 2);
        ck_assert_uint_eq(harness.unreadable_count, 0);
        ck_assert_uint_eq(harness.requests, 4);
        ck_assert_uint_eq(fault_server_requests(&server, "/bad/"), 3);
        end();
}
END_TEST

static void write_text(const char *name, const char *text) {
        char path[256];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", server.root, name);
        file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        fputs(text, file);
        ck_assert_int_eq(fclose(file), 0);
}

START_TEST(manifest_is_one_request) {
        struct store_harness manifest;
        char url[128];

        begin();
        test_file_write(server.root, "deep/er/b.tfevents", 77);
        write_text("deep/list.json",
                   "[{\"name\":\"er/b.tfevents\",\"type\":\"file\",\"size\":77,\"mtime\":\"Thu, 01 "
                   "Jan 1970 00:01:40 GMT\"},"
                   "{\"name\":\"er/b.tfevents.2\"},{\"name\":\"er/other\",\"size\":3},"
                   "{\"name\":\"../../up.tfevents\"},{\"name\":\"/abs.tfevents\"}]");
        snprintf(url, sizeof(url), "%s/deep/list.json?token=secret", server.url);
        store_harness_open(&manifest, url);
        ck_assert_ptr_null(strstr(manifest.store->url, "secret"));
        store_harness_list(&manifest);
        ck_assert_int_eq(manifest.failure.class, STORE_OK);
        ck_assert_uint_eq(manifest.requests, 1);
        ck_assert_uint_eq(manifest.row_count, 2);
        ck_assert_str_eq(manifest.rows[0].name, "er/b.tfevents");
        ck_assert_uint_eq(manifest.rows[0].row.size_bytes, 77);
        ck_assert_int_eq(manifest.rows[0].row.mtime_ns, 100000000000);
        ck_assert_uint_eq(manifest.rows[1].row.size_bytes, UINT64_MAX);
        ck_assert_int_eq(manifest.rows[1].row.mtime_ns, INT64_MIN);
        ck_assert_uint_eq(manifest.unreadable_count, 2);
        store_harness_read(&manifest, "er/b.tfevents", 7, 1000);
        ck_assert_int_eq(manifest.result.failure.class, STORE_OK);
        ck_assert_uint_eq(manifest.result.size_bytes, 70);
        assert_test_bytes(manifest.buffer, 7, 70);
        store_harness_close(&manifest);
        end();
}
END_TEST

START_TEST(credentials_are_used_and_not_shown) {
        struct store_harness with;
        char url[128];

        begin();
        fault_server_order(&server, "{'fault':'auth','user':'me@x','password':'pass word'}");
        store_harness_list(&harness);
        ck_assert_str_eq(harness.failure.code, "401");
        snprintf(url, sizeof(url), "http://me%%40x:pass%%20word@127.0.0.1:%d/", server.port);
        store_harness_open(&with, url);
        ck_assert_str_eq(with.store->url, server.url);
        ck_assert_str_eq(with.store->endpoint, server.url);
        store_harness_list(&with);
        ck_assert_int_eq(with.failure.class, STORE_OK);
        store_harness_read(&with, NAME, 0, SIZE);
        ck_assert_int_eq(with.result.failure.class, STORE_OK);
        store_harness_read(&with, "no-such.tfevents", 0, SIZE);
        ck_assert_str_eq(with.result.failure.code, "404");
        ck_assert_ptr_null(strstr(with.result.failure.message, "pass"));
        store_harness_close(&with);
        end();
}
END_TEST

/*
 * localhost may be ::1 first, where nothing listens: the next address is tried without anybody
 * noticing.
 */
START_TEST(host_name_is_resolved) {
        struct store_harness named;
        char url[128];

        begin();
        snprintf(url, sizeof(url), "http://localhost:%d", server.port);
        store_harness_open(&named, url);
        store_harness_read(&named, NAME, 0, SIZE);
        ck_assert_msg(named.result.failure.class == STORE_OK, "%s", named.result.failure.message);
        store_harness_close(&named);
        store_harness_open(&named, "http://no-such-host.invalid/x");
        store_harness_read(&named, NAME, 0, SIZE);
        ck_assert_int_eq(named.result.failure.class, STORE_TRANSIENT);
        ck_assert_str_eq(named.result.failure.code, "resolve");
        store_harness_close(&named);
        end();
}
END_TEST

START_TEST(refusal_is_throttling) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char url[64];

        /* Bound, but it does not listen: nobody else gets the port meanwhile. */
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
        snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(address.sin_port));
        store_harness_open(&harness, url);
        store_harness_read(&harness, NAME, 0, SIZE);
        ck_assert_int_eq(harness.result.failure.class, STORE_THROTTLED);
        ck_assert_str_eq(harness.result.failure.code, "refused");
        store_harness_close(&harness);
        close(fd);
}
END_TEST

/* What a source is configured with, and its URL has no use for. */
START_TEST(useless_access_is_refused) {
        char path[] = "/x";
        const struct {
                const char *url;
                struct config_access access;
                const char *message;
        } cases[] = {
                { "/tmp", { .bearer_file = path }, "for http:// and https:// only" },
                { "s3://b/c", { .client_key = path }, "for http:// and https:// only" },
                { "webhdfs://h/c", { .bearer_file = path }, "for http:// and https:// only" },
                { "http://h/", { .region = path }, "for s3:// only" },
                { "http://u@h/", { .bearer_file = path }, "URLs without a user" },
                { "https://h/", { .client_key = path }, "for a client_certificate" },
                { "http://h/", { .client_certificate = path }, "for https:// only" },
        };
        uv_loop_t loop;

        ck_assert_int_eq(uv_loop_init(&loop), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct store *store;
                const char *message = "";

                ck_assert_int_eq(
                        store_open_with(&loop, cases[i].url, &cases[i].access, &store, &message),
                        -EINVAL);
                ck_assert_msg(strstr(message, cases[i].message), "%s: %s", cases[i].url, message);
        }
        ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

static void must_not_be_called(void *userdata, const struct store_read_result *result) {
        (void)userdata;
        (void)result;
        ck_abort_msg("called after cancel");
}

static void must_not_be_listed(void *userdata, const struct store_failure *failure,
                               const struct store_list_counts *counts) {
        (void)userdata;
        (void)failure;
        (void)counts;
        ck_abort_msg("called after cancel");
}

static void ignore_row(void *userdata, const struct store_row *row) {
        (void)userdata;
        (void)row;
}

static void ignore_unreadable(void *userdata, const char *directory, size_t size,
                              const struct store_failure *failure) {
        (void)userdata;
        (void)directory;
        (void)size;
        (void)failure;
}

/*
 * Cancelled after n turns of the loop, for n = 0, 1, 2 ...: while it resolves, connects, waits, and
 * gets its body.
 */
START_TEST(cancel_at_every_moment) {
        begin();
        test_file_write(server.root, "deep/er/b.tfevents", 77);
        fault_server_order(&server, "[{'kind':'list','fault':'trickle','piece':1,'ms':20},{'fault':"
                                    "'trickle','piece':1,'ms':1}]");
        for (unsigned turns = 0; turns < 25; turns++) {
                static const struct store_list_callbacks callbacks = { ignore_row,
                                                                       ignore_unreadable,
                                                                       must_not_be_listed, NULL };
                struct store_harness one;
                struct store_read *read;
                struct store_list *list;
                char url[128];
                uint8_t *buffer = malloc(SIZE);
                struct store_read_range range = { .name = NAME,
                                                  .name_size = strlen(NAME),
                                                  .size_bytes = SIZE,
                                                  .buffer = buffer };

                snprintf(url, sizeof(url), "http://%s:%d", turns % 2 ? "localhost" : "127.0.0.1",
                         server.port);
                store_harness_open(&one, url);
                ck_assert_int_eq(one.store->operations->read(one.store, &range, must_not_be_called,
                                                             NULL, &read),
                                 0);
                ck_assert_int_eq(
                        one.store->operations->list(one.store, NULL, &callbacks, NULL, &list), 0);
                for (unsigned i = 0; i < turns; i++)
                        uv_run(&one.loop, UV_RUN_ONCE);
                ck_assert(one.store->operations->read_cancel(read, NULL, NULL));
                free(buffer);
                one.store->operations->list_cancel(list);
                store_harness_close(&one);
        }
        end();
}
END_TEST

/* Closing drops what still runs. */
START_TEST(close_at_every_moment) {
        begin();
        fault_server_order(&server, "[{'kind':'list','fault':'trickle','piece':1,'ms':20},{'fault':"
                                    "'trickle','piece':1,'ms':1}]");
        for (unsigned turns = 0; turns < 20; turns++) {
                struct store_harness one;
                struct store_list *list;
                static const struct store_list_callbacks callbacks = { ignore_row,
                                                                       ignore_unreadable,
                                                                       must_not_be_listed, NULL };

                store_harness_open(&one, server.url);
                ck_assert_int_eq(
                        one.store->operations->list(one.store, NULL, &callbacks, NULL, &list), 0);
                for (unsigned i = 0; i < turns && i < 6; i++)
                        uv_run(&one.loop, UV_RUN_ONCE);
                store_harness_close(&one);
        }
        end();
}
END_TEST

START_TEST(idle_connections_are_closed) {
        static const struct http_client_options soon = {
                .connect_ms = 1000, .first_byte_ms = 1000, .progress_ms = 1000, .idle_ms = 1
        };
        struct store_harness one;

        begin();
        store_harness_open_http(&one, server.url, &soon);
        store_harness_read(&one, NAME, 0, SIZE);
        /* ends when the idle connection is closed: nothing is watched any more */
        uv_run(&one.loop, UV_RUN_DEFAULT);
        store_harness_read(&one, NAME, 0, SIZE);
        ck_assert_int_eq(one.result.failure.class, STORE_OK);
        store_harness_close(&one);
        end();
}
END_TEST

RUNNER_MAIN("store/store_http", reads_ranges, faults_are_classed, works_after_every_fault,
            retry_after_is_told, tags_tell_versions_apart, odd_names_come_back, loops_are_left_out,
            failed_listings_say_so, directory_that_fails_is_told, directory_is_asked_again,
            manifest_is_one_request, credentials_are_used_and_not_shown, host_name_is_resolved,
            refusal_is_throttling, useless_access_is_refused, cancel_at_every_moment,
            close_at_every_moment, idle_connections_are_closed)
