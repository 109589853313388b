/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of object stores with a dialect of a few lines: pages are files of the fault server,
 * "/pages/TOKEN.tfevents", whose lines are "K SIZE KEY", "P PREFIX", "T TOKEN" and a last "E".
 */
#include "daemon/store/object_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/store/failure.h"
#include "daemon/store/object_list.h"
#include "tests/unit/daemon/store/fault_server.h"
#include "tests/unit/daemon/store/store_harness.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

/* ---- A dialect ---- */

/* Tokens "+1", "+2", ... that were handed out for "+": so many lead to the page "still", then "last". */
static unsigned tokens, still_pages;

struct plain_page {
        struct object_page_events events;
        void *userdata;
        char line[512];
        size_t size;
        char *token;
        bool complete;
};

static int plain_page_new(const struct object_page_events *events, void *userdata,
                          void **ret_page) {
        struct plain_page *page = calloc(1, sizeof(*page));

        if (!page)
                return -ENOMEM;
        page->events = *events;
        page->userdata = userdata;
        *ret_page = page;
        return 0;
}

static int plain_line(struct plain_page *page) {
        char *text = page->line + 2, *rest;
        struct object_row row = { .mtime_ns = INT64_MIN, .tag = "" };

        switch (page->line[0]) {
        case 'K':
                row.size_bytes = strtoull(text, &rest, 10);
                row.key = rest + 1;
                row.key_size = strlen(row.key);
                page->events.on_object(page->userdata, &row);
                return 0;
        case 'P':
                page->events.on_prefix(page->userdata, text, strlen(text));
                return 0;
        case 'T':
                free(page->token);
                page->token = strdup(text);
                return page->token ? 0 : -ENOMEM;
        case 'E':
                page->complete = true;
                return 0;
        default:
                return -EBADMSG;
        }
}

static int plain_page_feed(void *userdata, const uint8_t *bytes, size_t size) {
        struct plain_page *page = userdata;

        for (size_t i = 0; i < size; i++) {
                int r;

                if (bytes[i] != '\n') {
                        page->line[page->size++] = (char)bytes[i];
                        continue;
                }
                page->line[page->size] = '\0';
                page->size = 0;
                r = plain_line(page);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int plain_page_end(void *userdata, char **ret_token) {
        struct plain_page *page = userdata;

        if (!page->complete)
                return -EBADMSG;
        if (page->token && strcmp(page->token, "+") == 0) {
                free(page->token);
                page->token = NULL;
                return asprintf(ret_token, "+%u", ++tokens) < 0 ? -ENOMEM : 0;
        }
        *ret_token = steal_pointer(&page->token);
        return 0;
}

static void plain_page_free(void *userdata) {
        struct plain_page *page = userdata;

        free(page->token);
        free(page);
}

static char asked_place[256]; /* of the last page */

static int plain_list_request(struct object_store *store, const struct object_list_place *place,
                              struct object_request *request) {
        (void)store;
        snprintf(asked_place, sizeof(asked_place), "%s|%d|%s|%s", place->prefix, place->one_level,
                 place->after ? place->after : "", place->until ? place->until : "");
        request->target = NULL;
        return asprintf(&request->target, "/pages/%s.tfevents",
                        !place->token                                        ? "first"
                        : place->token[0] != '+'                             ? place->token
                        : strtoul(place->token + 1, NULL, 10) <= still_pages ? "still"
                                                                             : "last") < 0
                       ? -ENOMEM
                       : 0;
}

static int plain_read_request(struct object_store *store, const char *key, size_t key_size,
                              const struct store_read_range *range,
                              struct object_request *request) {
        (void)store;
        (void)range;
        return asprintf(&request->target, "/%.*s", (int)key_size, key) < 0 ? -ENOMEM : 0;
}

static int plain_sign(struct object_store *store, enum object_operation operation,
                      struct object_request *request, const struct credentials_value *value) {
        (void)store;
        (void)operation;
        return object_request_add_header(request, "Authorization: %s", value->token);
}

static void plain_on_header(struct object_store *store, struct object_reply *reply,
                            const char *name, size_t name_size, const char *value,
                            size_t value_size) {
        (void)store;
        if (name_size == 4 && strncasecmp(name, "ETag", 4) == 0)
                snprintf(reply->version, sizeof(reply->version), "%.*s", (int)value_size, value);
}

static enum object_remedy plain_judge(struct object_store *store, enum object_operation operation,
                                      const struct object_reply *reply, const char *thing,
                                      const struct credentials_value *value,
                                      struct store_failure *ret_failure) {
        (void)store;
        (void)operation;
        (void)value;
        failure_set_status(ret_failure, reply->answer->status, thing);
        if (strstr(reply->body, "ExpiredToken"))
                return OBJECT_REFRESHES;
        return strstr(reply->body, "OtherRegion") ? OBJECT_LEARNED : OBJECT_FAILS;
}

static bool plain_is_version(struct object_store *store, const struct object_reply *reply,
                             const char *tag) {
        (void)store;
        return strcmp(tag, "other") != 0 && reply->version[0];
}

static const struct object_dialect plain = {
        .name = "plain",
        .page_new = plain_page_new,
        .page_feed = plain_page_feed,
        .page_end = plain_page_end,
        .page_free = plain_page_free,
        .list_request = plain_list_request,
        .read_request = plain_read_request,
        .sign = plain_sign,
        .on_header = plain_on_header,
        .judge = plain_judge,
        .is_version = plain_is_version,
};

/* ---- Credentials that a test hands out ---- */

struct issuer {
        uv_timer_t *timer;
        credentials_on_value *on_value;
        void *userdata;
};

static unsigned issued;        /* values, since the test began */
static unsigned refresh_after; /* turns of the loop: milliseconds */
static uint64_t issuer_requests;
static int64_t issuer_expires_s; /* of its values */
static bool issuer_fails;
static enum store_failure_class issuer_class; /* of its failures */
static bool file_has_changed;

static void on_issue(uv_timer_t *timer) {
        struct issuer *issuer = timer->data;
        struct credentials_value value = { .expires_s = issuer_expires_s };
        struct store_failure failure;

        issuer_requests += 3;
        if (issuer_fails) {
                failure_set(&failure, issuer_class, "no-credentials", "Nothing was found");
                issuer->on_value(issuer->userdata, NULL, &failure);
                return;
        }
        value.identity = strdup("somebody");
        if (asprintf(&value.token, "token-%u", ++issued) < 0)
                value.token = NULL;
        issuer->on_value(issuer->userdata, &value, NULL);
}

static int issuer_refresh(void *provider, credentials_on_value *on_value, void *userdata) {
        struct issuer *issuer = provider;

        issuer->on_value = on_value;
        issuer->userdata = userdata;
        uv_timer_start(issuer->timer, on_issue, refresh_after, 0);
        return 0;
}

static void issuer_cancel(void *provider) {
        uv_timer_stop(((struct issuer *)provider)->timer);
}

static bool issuer_has_changed(void *provider) {
        (void)provider;
        return file_has_changed;
}

static void free_handle(uv_handle_t *handle) {
        free(handle);
}

static void issuer_free(void *provider) {
        struct issuer *issuer = provider;

        uv_close((uv_handle_t *)issuer->timer, free_handle);
        free(issuer);
}

static uint64_t issuer_take_requests(void *provider) {
        uint64_t requests = issuer_requests;

        (void)provider;
        issuer_requests = 0;
        return requests;
}

static const struct credentials_provider issuing = {
        .name = "issuer",
        .refresh = issuer_refresh,
        .cancel = issuer_cancel,
        .has_changed = issuer_has_changed,
        .take_requests = issuer_take_requests,
        .free = issuer_free,
};

static struct credentials *make_credentials(uv_loop_t *loop) {
        struct issuer *issuer = calloc(1, sizeof(*issuer));
        struct credentials *credentials = NULL;

        issuer->timer = calloc(1, sizeof(*issuer->timer));
        uv_timer_init(loop, issuer->timer);
        issuer->timer->data = issuer;
        ck_assert_int_eq(credentials_new(loop, &issuing, issuer, &credentials), 0);
        return credentials;
}

/* ---- The scene ---- */

static struct fault_server server;
static struct store_harness harness;

static void write_page(const char *token, const char *text) {
        char path[256];
        FILE *file;

        snprintf(path, sizeof(path), "%s/pages", server.root);
        mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/pages/%s.tfevents", server.root, token);
        file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        fputs(text, file);
        ck_assert_int_eq(fclose(file), 0);
}

static void open_store(void) {
        struct object_store *store = calloc(1, sizeof(*store));
        struct credentials *credentials;
        const char *message = "";

        issued = refresh_after = tokens = 0;
        issuer_requests = 0;
        issuer_class = STORE_PERMANENT;
        issuer_expires_s = CREDENTIALS_NEVER;
        issuer_fails = file_has_changed = false;
        memset(&harness, 0, sizeof(harness));
        ck_assert_int_eq(uv_loop_init(&harness.loop), 0);
        credentials = make_credentials(&harness.loop);
        ck_assert_int_eq(object_store_open(store, &harness.loop, &plain,
                                           &(struct object_store_place){ .url = "plain://logs/exp",
                                                                         .endpoint = server.url,
                                                                         .prefix = "exp",
                                                                         .is_custom = true },
                                           &impatient, credentials, &message),
                         0);
        harness.store = &store->store;
}

static void begin(void) {
        fault_server_start(&server);
        open_store();
}

static void end(void) {
        store_harness_close(&harness);
        fault_server_stop(&server);
}

START_TEST(pages_follow_each_other) {
        begin();
        write_page("first", "K 5 exp/a/x.tfevents.1\nK 7 exp/foreign.ckpt\nT two\nE\n");
        write_page("two", "K 0 exp/b/\nK 0 exp/b/tfevents_$folder$\nK 0 exp/tfevents/\n"
                          "K 9 exp/b/y.tfevents\nK 9 other/z.tfevents\nE\n");
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.requests, 2);
        ck_assert_uint_eq(harness.row_count, 2);
        ck_assert_ptr_nonnull(store_harness_row(&harness, "a/x.tfevents.1"));
        ck_assert_uint_eq(store_harness_row(&harness, "b/y.tfevents")->row.size_bytes, 9);
        ck_assert_str_eq(asked_place, "exp/|0||");
        ck_assert_str_eq(harness.store->identity, "somebody");
        ck_assert_uint_eq(issued, 1);
        ck_assert_uint_eq(harness.store->requests.total[REQUEST_CREDENTIALS], 3);
        end();
}
END_TEST

/* Each fails only the page that it hits, and that one is asked for again. */
START_TEST(page_that_fails_is_asked_again) {
        static const char *const faults[] = {
                "{'path':'*two*','fault':'status','status':503,'times':3}",
                "{'path':'*two*','fault':'reset','times':2}",
                "{'path':'*two*','fault':'short','times':2}",
                "{'path':'*two*','fault':'close','times':2}",
                "{'path':'*two*','fault':'garbage','body':'K 1 exp/half.tfevents\\n','times':2}",
        };

        begin();
        write_page("first", "K 5 exp/a.tfevents\nT two\nE\n");
        write_page("two", "K 9 exp/b.tfevents\nE\n");
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                fault_server_order(&server, "{'reset':true}");
                fault_server_order(&server, faults[i]);
                store_harness_list(&harness);
                ck_assert_msg(harness.failure.class == STORE_OK, "%s: %s", faults[i],
                              harness.failure.message);
                ck_assert_ptr_nonnull(store_harness_row(&harness, "b.tfevents"));
                ck_assert_uint_eq(fault_server_requests(&server, "/pages/first.tfevents"), 1);
        }
        end();
}
END_TEST

START_TEST(listings_fail_in_the_end) {
        begin();
        write_page("first", "K 5 exp/a.tfevents\nT two\nE\n");
        write_page("two", "K 5 exp/b.tfevents\nT two\nE\n"); /* leads to itself */
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_TRANSIENT);
        ck_assert_str_eq(harness.failure.code, "bad-listing");
        write_page("two", "K 5 exp/b.tfevents\n"); /* cut short */
        store_harness_list(&harness);
        ck_assert_str_eq(harness.failure.code, "bad-listing");
        write_page("two", "no page\n");
        store_harness_list(&harness);
        ck_assert_str_eq(harness.failure.code, "bad-listing");
        fault_server_order(&server, "{'path':'/pages/*','fault':'status','status':403}");
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_PERMANENT);
        ck_assert_str_eq(harness.failure.code, "403");
        ck_assert_uint_eq(harness.requests, 1);
        end();
}
END_TEST

/* Every page leads to another one, by a token that was never there. */
START_TEST(listings_that_go_in_circles_end) {
        static const char *const pages[] = { "E\n", "K 5 exp/a.tfevents\nE\n", "P exp/a/\nE\n" };

        begin();
        write_page("first", "K 5 exp/a/b.tfevents\nT +\nE\n");
        still_pages = UINT_MAX;
        for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
                char text[64];

                snprintf(text, sizeof(text), "T +\n%s", pages[i]);
                write_page("still", text);
                store_harness_list(&harness);
                ck_assert_str_eq(harness.failure.code, "bad-listing");
                ck_assert_uint_ge(harness.requests, OBJECT_LIST_STILL_PAGES_MOST);
                ck_assert_uint_le(harness.requests, OBJECT_LIST_STILL_PAGES_MOST + 10);
        }
        end();
}
END_TEST

/* As many as there may be, and then names again. */
START_TEST(empty_pages_are_no_end) {
        begin();
        write_page("first", "K 5 exp/a.tfevents\nT +\nE\n");
        write_page("still", "T +\nE\n");
        write_page("last", "K 5 exp/b.tfevents\nE\n");
        still_pages = OBJECT_LIST_STILL_PAGES_MOST;
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 2);
        end();
}
END_TEST

static void on_directory(void *userdata, const char *directory, size_t size) {
        char *directories = userdata;

        snprintf(directories + strlen(directories), 64, "%.*s;", (int)size, directory);
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

static bool listed;

static void on_listed(void *userdata, const struct store_failure *failure,
                      const struct store_list_counts *counts) {
        (void)userdata;
        ck_assert_int_eq(failure->class, STORE_OK);
        ck_assert_uint_eq(counts->objects, 1);
        listed = true;
        uv_stop(&harness.loop); /* else it would go on to wait if this was a timer's doing */
}

START_TEST(ranges_and_levels_are_asked_for) {
        static const struct store_list_callbacks callbacks = { ignore_row, ignore_unreadable,
                                                               on_listed, on_directory };
        struct store_list_range range = { .below = "runs",
                                          .below_size = 4,
                                          .one_level = true,
                                          .after = "runs/a",
                                          .until = "runs/b" };
        char directories[256] = "";
        struct store_list *list;

        begin();
        write_page("first", "K 5 exp/runs/a.tfevents\nP exp/runs/x/\nP exp/\nP other/y/\nE\n");
        ck_assert_int_eq(harness.store->operations->list(harness.store, &range, &callbacks,
                                                         directories, &list),
                         0);
        for (listed = false; !listed;)
                uv_run(&harness.loop, UV_RUN_ONCE);
        ck_assert_str_eq(asked_place, "exp/runs/|1|exp/runs/a|exp/runs/b");
        ck_assert_str_eq(directories, "runs/x;");
        end();
}
END_TEST

static char told_pages[256];

static void on_page(void *userdata, const struct store_list_counts *counts, const char *last_name,
                    size_t size) {
        size_t used = strlen(told_pages);

        (void)userdata;
        snprintf(told_pages + used, sizeof(told_pages) - used, "%d/%d %.*s;", (int)counts->requests,
                 (int)counts->objects, (int)size, last_name);
}

static char rows[256];

static void note_row(void *userdata, const struct store_row *row) {
        size_t used = strlen(rows);

        (void)userdata;
        snprintf(rows + used, sizeof(rows) - used, "%.*s;", (int)row->name_size, row->name);
}

static void on_ended(void *userdata, const struct store_failure *failure,
                     const struct store_list_counts *counts) {
        *(struct store_list_counts *)userdata = *counts;
        ck_assert_int_eq(failure->class, STORE_OK);
        listed = true;
        uv_stop(&harness.loop); /* else it would go on to wait if this was a timer's doing */
}

/* A store that cannot be told where to end: no page is asked for behind that, nothing is given. */
START_TEST(a_range_ends_where_it_should) {
        static const struct store_list_callbacks callbacks = { .on_row = note_row,
                                                               .on_unreadable = ignore_unreadable,
                                                               .on_done = on_ended };
        static const char *const untils[] = { "c.tfevents", "c.tfeventsX" };
        struct store_list_counts counts;
        struct store_list *list;

        begin();
        write_page("first", "K 5 exp/a.tfevents\nK 5 exp/b.ckpt\nT two\nE\n");
        write_page("two", "K 5 exp/c.tfevents\nK 5 exp/d.tfevents\nT three\nE\n");
        write_page("three", "K 5 exp/e.tfevents\nE\n");
        for (size_t i = 0; i < ARRAY_SIZE(untils); i++) {
                struct store_list_range range = { .below = "",
                                                  .until = untils[i],
                                                  .on_page = on_page };

                rows[0] = told_pages[0] = '\0';
                ck_assert_int_eq(harness.store->operations->list(harness.store, &range, &callbacks,
                                                                 &counts, &list),
                                 0);
                for (listed = false; !listed;)
                        uv_run(&harness.loop, UV_RUN_ONCE);
                ck_assert_str_eq(rows, "a.tfevents;c.tfevents;");
                ck_assert_uint_eq(counts.requests, 2);
                ck_assert_uint_eq(counts.objects, 3);
                ck_assert_str_eq(told_pages, "1/2 b.ckpt;");
        }
        { /* up to the last name of a page: the next one is not asked for */
                struct store_list_range range = { .below = "", .until = "b.ckpt" };

                ck_assert_int_eq(harness.store->operations->list(harness.store, &range, &callbacks,
                                                                 &counts, &list),
                                 0);
                for (listed = false; !listed;)
                        uv_run(&harness.loop, UV_RUN_ONCE);
                ck_assert_uint_eq(counts.requests, 1);
                ck_assert_uint_eq(counts.objects, 2);
        }
        end();
}
END_TEST

START_TEST(reads_are_ranged_and_guarded) {
        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        store_harness_read(&harness, "a.tfevents", 100, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.result.size_bytes, 500);
        assert_test_bytes(harness.buffer, 100, 500);
        store_harness_read(&harness, "a.tfevents", 10000, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_END);
        fault_server_order(&server, "{'path':'*a.tfevents','fault':'status','status':412,"
                                    "'times':1}");
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_CHANGED);
        store_harness_read(&harness, "missing.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_PERMANENT);
        ck_assert_ptr_nonnull(
                strstr(harness.result.failure.message, "plain://logs/exp/missing.tfevents"));
        end();
}
END_TEST

static void on_read(void *userdata, const struct store_read_result *result) {
        *(struct store_read_result *)userdata = *result;
        uv_stop(&harness.loop);
}

/* A server that does not know guards is not believed. */
START_TEST(other_versions_are_noticed) {
        uint8_t buffer[100];
        struct store_read_range range = { .name = "a.tfevents",
                                          .name_size = 10,
                                          .size_bytes = sizeof(buffer),
                                          .buffer = buffer,
                                          .tag = "other" };
        struct store_read_result result = { .failure = { .class = STORE_TRANSIENT } };
        struct store_read *read;

        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        ck_assert_int_eq(
                harness.store->operations->read(harness.store, &range, on_read, &result, &read), 0);
        while (result.failure.class == STORE_TRANSIENT)
                uv_run(&harness.loop, UV_RUN_ONCE);
        ck_assert_int_eq(result.failure.class, STORE_CHANGED);
        ck_assert_uint_eq(result.size_bytes, 0);
        end();
}
END_TEST

/* What waits for credentials is not late. */
START_TEST(waiting_reads_are_not_asked_for_twice) {
        uint8_t buffer[100];
        struct store_read_range range = { .name = "a.tfevents",
                                          .name_size = 10,
                                          .size_bytes = sizeof(buffer),
                                          .buffer = buffer };
        struct store_read_result result = { .failure = { .class = STORE_TRANSIENT } };
        struct store_read *read;

        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        fault_server_order(&server, "{'fault':'silent'}");
        ck_assert_int_eq(
                harness.store->operations->read(harness.store, &range, on_read, &result, &read), 0);
        ck_assert_uint_eq(harness.store->operations->read_waits_since_ns(read), 0);
        while (!harness.store->operations->read_waits_since_ns(read))
                uv_run(&harness.loop, UV_RUN_ONCE); /* until it is sent */
        harness.store->operations->read_cancel(read, NULL, NULL);
        end();
}
END_TEST

START_TEST(refused_credentials_are_replaced_once) {
        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        fault_server_order(&server, "{'path':'*a.tfevents','fault':'status','status':403,"
                                    "'code':'ExpiredToken','times':1}");
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        ck_assert_uint_eq(issued, 2);
        fault_server_order(&server, "{'path':'*a.tfevents','fault':'status','status':403,"
                                    "'code':'ExpiredToken'}");
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_PERMANENT);
        ck_assert_uint_le(issued, 3);
        end();
}
END_TEST

START_TEST(what_was_learned_is_tried_a_few_times) {
        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        fault_server_order(&server, "{'path':'*a.tfevents','fault':'status','status':400,"
                                    "'code':'OtherRegion','times':2}");
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        fault_server_order(&server, "[{'reset':true},{'path':'*a.tfevents','fault':'status',"
                                    "'status':400,'code':'OtherRegion'}]");
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_str_eq(harness.result.failure.code, "400");
        ck_assert_uint_eq(fault_server_requests(&server, "/exp/a.tfevents"), 4);
        end();
}
END_TEST

START_TEST(missing_credentials_say_so_and_heal) {
        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        issuer_fails = true;
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_str_eq(harness.result.failure.code, "no-credentials");
        ck_assert_uint_eq(harness.store->requests.total[REQUEST_CREDENTIALS], 3);
        /* A moment later nobody is asked again: the same answer at once. */
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_str_eq(harness.result.failure.code, "no-credentials");
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 0);
        issuer_fails = false;
        file_has_changed = true; /* a login */
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        end();
}
END_TEST

static void on_store_closed(void *userdata) {
        *(bool *)userdata = true;
}

static void close_in_read(void *userdata, const struct store_read_result *result) {
        bool *closed = userdata;

        ck_assert_int_eq(result->failure.class, STORE_OK);
        harness.store->operations->close(harness.store, on_store_closed, closed);
}

static void close_in_list(void *userdata, const struct store_failure *failure,
                          const struct store_list_counts *counts) {
        (void)failure;
        (void)counts;
        harness.store->operations->close(harness.store, on_store_closed, userdata);
}

static void close_in_row(void *userdata, const struct store_row *row) {
        (void)row;
        harness.store->operations->close(harness.store, on_store_closed, userdata);
}

static void must_not_end(void *userdata, const struct store_failure *failure,
                         const struct store_list_counts *counts) {
        (void)userdata;
        (void)failure;
        (void)counts;
        ck_abort_msg("told after the store was closed");
}

static void list_with(const struct store_list_callbacks *callbacks, bool *closed) {
        struct store_list *list;

        ck_assert_int_eq(
                harness.store->operations->list(harness.store, NULL, callbacks, closed, &list), 0);
}

static void read_and_close(bool *closed) {
        static uint8_t buffers[2][100];
        struct store_read_range range = { .name = "a.tfevents",
                                          .name_size = 10,
                                          .size_bytes = sizeof(buffers[0]) };
        struct store_read *reads[2];

        for (size_t i = 0; i < ARRAY_SIZE(reads); i++) {
                range.buffer = buffers[i];
                ck_assert_int_eq(harness.store->operations->read(harness.store, &range,
                                                                 close_in_read, closed, &reads[i]),
                                 0);
        }
}

/* In each callback, while others are under way. */
START_TEST(a_store_closes_inside_of_callbacks) {
        static const struct store_list_callbacks lists[] = {
                { ignore_row, ignore_unreadable, close_in_list, NULL },
                { close_in_row, ignore_unreadable, must_not_end, NULL },
        };

        fault_server_start(&server);
        test_file_write(server.root, "exp/a.tfevents", 10000);
        write_page("first", "K 5 exp/a.tfevents\nK 5 exp/b.tfevents\nE\n");
        for (size_t i = 0; i <= ARRAY_SIZE(lists); i++) {
                bool closed = false;

                open_store();
                if (i < ARRAY_SIZE(lists))
                        list_with(&lists[i], &closed);
                else
                        read_and_close(&closed);
                uv_run(&harness.loop, UV_RUN_DEFAULT);
                ck_assert(closed);
                ck_assert_int_eq(uv_loop_close(&harness.loop), 0);
        }
        fault_server_stop(&server);
}
END_TEST

/* Credentials fail: everybody who waits is told, and the first one closes the store. */
START_TEST(a_store_closes_when_there_are_no_credentials) {
        static const struct store_list_callbacks callbacks = { ignore_row, ignore_unreadable,
                                                               close_in_list, NULL };
        bool closed = false;

        begin();
        issuer_fails = true;
        list_with(&callbacks, &closed);
        list_with(&callbacks, &closed);
        uv_run(&harness.loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        ck_assert_int_eq(uv_loop_close(&harness.loop), 0);
        fault_server_stop(&server);
}
END_TEST

/* The clock of this machine may be wrong: whether they are good is for the server to say. */
START_TEST(credentials_that_come_expired_are_used) {
        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        issuer_expires_s = 1000000000; /* 2001 */
        for (unsigned i = 0; i < 3; i++) {
                store_harness_read(&harness, "a.tfevents", 0, 500);
                ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        }
        ck_assert_uint_eq(issued, 1);
        fault_server_order(&server, "{'path':'*a.tfevents','fault':'status','status':403,"
                                    "'code':'ExpiredToken'}");
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_PERMANENT);
        ck_assert_uint_eq(issued, 2);
        end();
}
END_TEST

/* Who comes before the next try waits for it: a failure that passes is told to those who saw it. */
START_TEST(credentials_that_fail_for_a_moment_are_waited_for) {
        begin();
        test_file_write(server.root, "exp/a.tfevents", 10000);
        issuer_fails = true;
        issuer_class = STORE_THROTTLED;
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_TRANSIENT);
        ck_assert_str_eq(harness.result.failure.code, "no-credentials");
        issuer_fails = false;
        store_harness_read(&harness, "a.tfevents", 0, 500);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        end();
}
END_TEST

/* Whatever the moment: while credentials are waited for, and in each state of a request. */
START_TEST(close_at_every_moment) {
        fault_server_start(&server);
        test_file_write(server.root, "exp/a.tfevents", 10000);
        write_page("first", "K 5 exp/runs/a.tfevents\nE\n");
        fault_server_order(&server, "{'fault':'trickle','piece':1,'ms':5}");
        for (unsigned turns = 0; turns < 25; turns++) {
                static const struct store_list_callbacks callbacks = { ignore_row,
                                                                       ignore_unreadable, on_listed,
                                                                       NULL };
                uint8_t buffer[1000];
                struct store_read_range range = { .name = "a.tfevents",
                                                  .name_size = 10,
                                                  .size_bytes = sizeof(buffer),
                                                  .buffer = buffer };
                struct store_read_result result = { .failure = { .class = STORE_TRANSIENT } };
                struct store_read *read;
                struct store_list *list;

                open_store();
                refresh_after = turns % 3;
                ck_assert_int_eq(harness.store->operations->read(harness.store, &range, on_read,
                                                                 &result, &read),
                                 0);
                ck_assert_int_eq(harness.store->operations->list(harness.store, NULL, &callbacks,
                                                                 NULL, &list),
                                 0);
                for (unsigned i = 0; i < turns; i++)
                        uv_run(&harness.loop, UV_RUN_NOWAIT);
                if (turns % 2 && result.failure.class == STORE_TRANSIENT)
                        harness.store->operations->read_cancel(read, NULL, NULL);
                store_harness_close(&harness);
        }
        fault_server_stop(&server);
}
END_TEST

RUNNER_MAIN("store/object_store", pages_follow_each_other, page_that_fails_is_asked_again,
            listings_fail_in_the_end, listings_that_go_in_circles_end, empty_pages_are_no_end,
            ranges_and_levels_are_asked_for, a_range_ends_where_it_should,
            reads_are_ranged_and_guarded, other_versions_are_noticed,
            waiting_reads_are_not_asked_for_twice, refused_credentials_are_replaced_once,
            what_was_learned_is_tried_a_few_times, missing_credentials_say_so_and_heal,
            a_store_closes_inside_of_callbacks, a_store_closes_when_there_are_no_credentials,
            credentials_that_come_expired_are_used,
            credentials_that_fail_for_a_moment_are_waited_for, close_at_every_moment)
