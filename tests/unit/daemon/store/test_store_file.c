/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/unit/daemon/store/fault_server.h"
#include "tests/unit/daemon/store/store_harness.h"
#include "tests/unit/runner.h"

static char root[64];
static struct store_harness harness;

static const char *below_root(const char *name) {
        static char path[4096];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        return path;
}

static void begin(void) {
        test_root_make(root);
}

static void end(void) {
        store_harness_close(&harness);
        test_root_remove(root);
}

START_TEST(reads_ranges) {
        begin();
        test_file_write(root, "a.tfevents", 10000);
        store_harness_open(&harness, root);
        ck_assert_str_eq(harness.store->url, root);
        ck_assert_str_eq(harness.store->endpoint, "file");
        store_harness_read(&harness, "a.tfevents", 0, 70000);
        ck_assert_int_eq(harness.result.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.result.size_bytes, 10000);
        ck_assert_uint_eq(harness.result.total_bytes, 10000);
        assert_test_bytes(harness.buffer, 0, 10000);
        store_harness_read(&harness, "a.tfevents", 4000, 100);
        ck_assert_uint_eq(harness.result.size_bytes, 100);
        assert_test_bytes(harness.buffer, 4000, 100);
        store_harness_read(&harness, "a.tfevents", 10000, 100);
        ck_assert_int_eq(harness.result.failure.class, STORE_END);
        ck_assert_uint_eq(harness.result.total_bytes, 10000);
        store_harness_read(&harness, "a.tfevents", UINT64_MAX - 50, 100);
        ck_assert_int_eq(harness.result.failure.class, STORE_END);
        store_harness_read(&harness, "b.tfevents", 0, 100);
        ck_assert_int_eq(harness.result.failure.class, STORE_PERMANENT);
        ck_assert_str_eq(harness.result.failure.code, "ENOENT");
        ck_assert_ptr_nonnull(strstr(harness.result.failure.message, "b.tfevents"));
        end();
}
END_TEST

static const char *const names[] = {
        "a.tfevents",
        "sub/with space.tfevents",
        "sub/quote\"'.tfevents",
        "sub/percent%41.tfevents",
        "sub/b\\.tfevents",
        "sub/new\nline.tfevents",
        "sub/latin-\xe9\xff.tfevents",
        ".hidden/x.tfevents",
        "d/e/e/p.tfevents",
        "linked/inside.tfevents",
};

START_TEST(walks_everything) {
        begin();
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                test_file_write(root, names[i], i);
        test_file_write(root, "sub/other", 1);
        test_file_write(root, "tfevents/other", 1);
        ck_assert_int_eq(symlink("a.tfevents", below_root("link.tfevents")), 0);
        ck_assert_int_eq(symlink("linked", below_root("again")), 0);
        ck_assert_int_eq(symlink("nowhere", below_root("dangling.tfevents")), 0);
        ck_assert_int_eq(symlink("itself.tfevents", below_root("itself.tfevents")), 0);
        store_harness_open(&harness, root);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.unreadable_count, 0);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct harness_row *row = store_harness_row(&harness, names[i]);

                ck_assert_msg(row, "%s", names[i]);
                ck_assert_uint_eq(row->row.size_bytes, i);
                store_harness_read(&harness, names[i], 0, 100);
                ck_assert_uint_eq(harness.result.size_bytes, i);
                ck_assert_str_eq(harness.result.tag, row->row.tag);
        }
        ck_assert_ptr_nonnull(store_harness_row(&harness, "link.tfevents"));
        ck_assert_str_eq(store_harness_row(&harness, "link.tfevents")->row.tag,
                         store_harness_row(&harness, "a.tfevents")->row.tag);
        ck_assert_ptr_nonnull(store_harness_row(&harness, "again/inside.tfevents"));
        ck_assert_uint_eq(harness.row_count, ARRAY_SIZE(names) + 2);
        end();
}
END_TEST

START_TEST(loops_are_left_out) {
        begin();
        test_file_write(root, "sub/deep/a.tfevents", 1);
        ck_assert_int_eq(symlink("..", below_root("sub/up")), 0);
        ck_assert_int_eq(symlink(".", below_root("self")), 0);
        ck_assert_int_eq(symlink("../../sub", below_root("sub/deep/again")), 0);
        store_harness_open(&harness, root);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 1);
        ck_assert_uint_eq(harness.unreadable_count, 0);
        end();
}
END_TEST

START_TEST(special_files_are_not_opened) {
        begin();
        test_file_write(root, "a.tfevents", 5);
        ck_assert_int_eq(mkfifo(below_root("fifo.tfevents"), 0644), 0);
        store_harness_open(&harness, root);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 1);
        /* Asked for all the same, it does not hang. */
        store_harness_read(&harness, "fifo.tfevents", 0, 100);
        ck_assert_int_eq(harness.result.failure.class, STORE_PERMANENT);
        end();
}
END_TEST

START_TEST(large_directory_is_complete) {
        char name[64];

        begin();
        for (int i = 0; i < 1000; i++) {
                snprintf(name, sizeof(name), "%d.tfevents", i);
                test_file_write(root, name, (uint64_t)i % 7);
        }
        store_harness_open(&harness, root);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 1000);
        for (size_t i = 0; i < 1000; i++)
                ck_assert_uint_eq(harness.rows[i].row.size_bytes,
                                  (uint64_t)atoi(harness.rows[i].name) % 7);
        end();
}
END_TEST

START_TEST(missing_directory_is_permanent) {
        begin();
        store_harness_open(&harness, below_root("no-such"));
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_PERMANENT);
        ck_assert_str_eq(harness.failure.code, "ENOENT");
        ck_assert_ptr_nonnull(strstr(harness.failure.message, "no-such"));
        end();
}
END_TEST

START_TEST(source_may_be_a_file) {
        begin();
        test_file_write(root, "one.tfevents", 500);
        test_file_write(root, "other", 500);
        store_harness_open(&harness, below_root("one.tfevents"));
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 1);
        ck_assert_str_eq(harness.rows[0].name, "one.tfevents");
        store_harness_read(&harness, "one.tfevents", 100, 1000);
        ck_assert_uint_eq(harness.result.size_bytes, 400);
        assert_test_bytes(harness.buffer, 100, 400);
        store_harness_close(&harness);
        store_harness_open(&harness, below_root("other"));
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_PERMANENT);
        ck_assert_str_eq(harness.failure.code, "ENOTDIR");
        end();
}
END_TEST

START_TEST(file_url_is_a_path) {
        char url[128];

        begin();
        test_file_write(root, "sp ace/a.tfevents", 5);
        snprintf(url, sizeof(url), "file://%s/sp%%20ace/", root);
        store_harness_open(&harness, url);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 1);
        ck_assert_str_eq(harness.store->url, below_root("sp ace"));
        end();
}
END_TEST

/* Rights do not bind root, so the test becomes somebody else; its process ends with it. */
START_TEST(no_permission_is_told) {
        begin();
        test_file_write(root, "good/a.tfevents", 5);
        test_file_write(root, "good/secret.tfevents", 5);
        test_file_write(root, "locked/b.tfevents", 5);
        test_file_write(root, "no-search/c.tfevents", 5);
        ck_assert_int_eq(chmod(below_root("good/secret.tfevents"), 0), 0);
        ck_assert_int_eq(chmod(below_root("locked"), 0), 0);
        ck_assert_int_eq(chmod(below_root("no-search"), 0444), 0);
        if (geteuid() == 0)
                ck_assert(seteuid(65534) == 0);
        store_harness_open(&harness, root);
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_OK);
        ck_assert_uint_eq(harness.row_count, 2);
        ck_assert_uint_eq(harness.unreadable_count, 2);
        for (size_t i = 0; i < 2; i++)
                ck_assert(strcmp(harness.unreadable[i], "locked: EACCES") == 0 ||
                          strcmp(harness.unreadable[i], "no-search: EACCES") == 0);
        store_harness_read(&harness, "good/secret.tfevents", 0, 10);
        ck_assert_int_eq(harness.result.failure.class, STORE_PERMANENT);
        ck_assert_str_eq(harness.result.failure.code, "EACCES");
        store_harness_close(&harness);
        store_harness_open(&harness, below_root("locked"));
        store_harness_list(&harness);
        ck_assert_int_eq(harness.failure.class, STORE_PERMANENT);
        ck_assert_str_eq(harness.failure.code, "EACCES");
        store_harness_close(&harness);
        ck_assert_int_eq(seteuid(getuid()), 0);
        ck_assert_int_eq(chmod(below_root("locked"), 0755), 0);
        ck_assert_int_eq(chmod(below_root("no-search"), 0755), 0);
        test_root_remove(root);
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

static void on_released(void *userdata) {
        free(userdata);
}

START_TEST(cancel_at_every_moment) {
        static const struct store_list_callbacks callbacks = { ignore_row, ignore_unreadable,
                                                               must_not_be_listed, NULL };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                test_file_write(root, names[i], 1000);
        for (unsigned turns = 0; turns < 40; turns++) {
                uint8_t *buffer = malloc(2000);
                struct store_read_range range = {
                        .name = "a.tfevents", .name_size = 10, .size_bytes = 2000, .buffer = buffer
                };
                struct store_read *read;
                struct store_list *list;

                store_harness_open(&harness, root);
                ck_assert_int_eq(harness.store->operations->list(harness.store, NULL, &callbacks,
                                                                 NULL, &list),
                                 0);
                for (unsigned i = 0; i < turns % 3; i++)
                        uv_run(&harness.loop, UV_RUN_NOWAIT);
                ck_assert_int_eq(harness.store->operations->read(harness.store, &range,
                                                                 must_not_be_called, NULL, &read),
                                 0);
                for (volatile unsigned i = 0; i < turns * 500; i++)
                        ; /* a thread gets to somewhere else each time */
                if (harness.store->operations->read_cancel(read, on_released, buffer))
                        free(buffer);
                if (turns % 2 == 0)
                        harness.store->operations->list_cancel(list);
                store_harness_close(&harness); /* cancels what is left */
        }
        test_root_remove(root);
}
END_TEST

static struct store_list *to_cancel;

static void cancel_in_row(void *userdata, const struct store_row *row) {
        struct store_harness *one = userdata;

        (void)row;
        if (to_cancel)
                one->store->operations->list_cancel(steal_pointer(&to_cancel));
        else
                ck_abort_msg("a row after cancel");
}

START_TEST(cancel_from_a_callback) {
        static const struct store_list_callbacks callbacks = { cancel_in_row, ignore_unreadable,
                                                               must_not_be_listed, NULL };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                test_file_write(root, names[i], 1000);
        store_harness_open(&harness, root);
        ck_assert_int_eq(harness.store->operations->list(harness.store, NULL, &callbacks, &harness,
                                                         &to_cancel),
                         0);
        while (to_cancel)
                uv_run(&harness.loop, UV_RUN_ONCE);
        end();
}
END_TEST

START_TEST(unknown_urls_are_refused) {
        static const char *const urls[] = { "sftp://host/x", "ftp://host/x",      "http://",
                                            "http:///x",     "http://host:port/", "file://host/x" };
        uv_loop_t loop;

        ck_assert_int_eq(uv_loop_init(&loop), 0);
        for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
                struct store *store = NULL;
                const char *message = NULL;

                ck_assert_msg(store_open(&loop, urls[i], &store, &message) == -EINVAL, "%s",
                              urls[i]);
                ck_assert_ptr_nonnull(message);
                ck_assert_int_eq(store_open(&loop, urls[i], &store, NULL), -EINVAL);
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

RUNNER_MAIN("store/store_file", reads_ranges, walks_everything, loops_are_left_out,
            special_files_are_not_opened, large_directory_is_complete,
            missing_directory_is_permanent, source_may_be_a_file, file_url_is_a_path,
            no_permission_is_told, cancel_at_every_moment, cancel_from_a_callback,
            unknown_urls_are_refused)
