/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own events, in a directory of the test's. Nothing waits for time: they are there at once. */
#include "daemon/store/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static uv_loop_t loop;
static struct notify *notify;
static char directory[64];
static unsigned changes, deletions;

static void on_change(void *userdata, bool is_deletion) {
        ck_assert_ptr_eq(userdata, &loop);
        changes++;
        deletions += is_deletion;
}

static const char *path_of(const char *name) {
        static char path[160];

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        return path;
}

static void write_byte(const char *name) {
        CLEANUP(close_fdp)
        int fd = open(path_of(name), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, "x", 1), 1);
}

static void check(bool changed, bool deleted) {
        changes = deletions = 0;
        uv_run(&loop, UV_RUN_NOWAIT);
        uv_run(&loop, UV_RUN_NOWAIT);
        ck_assert_int_eq(changes > 0, changed);
        ck_assert_int_eq(deletions > 0, deleted);
}

static void begin(unsigned watches_most) {
        strcpy(directory, "/tmp/headrace-notify-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        ck_assert_int_eq(notify_new(&loop, watches_most, &notify), 0);
        notify_listen(notify, on_change, &loop);
}

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

static void end(void) {
        bool closed = false;

        notify_close(notify, on_closed, &closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
}

START_TEST(what_is_told) {
        begin(0);
        notify_add(notify, directory);
        notify_add(notify, directory);
        ck_assert_uint_eq(notify_watches(notify), 1);
        ck_assert_str_eq(notify_state(notify), "inotify");
        check(false, false);
        write_byte("events.out.tfevents.1");
        check(true, false);
        write_byte("events.out.tfevents.1");
        check(true, false);
        write_byte("checkpoint");
        check(false, false);
        ck_assert_int_eq(mkdir(path_of("run"), 0700), 0);
        check(true, false);
        notify_add(notify, path_of("run"));
        ck_assert_uint_eq(notify_watches(notify), 2);
        write_byte("run/events.out.tfevents.2");
        check(true, false);
        ck_assert_int_eq(unlink(path_of("run/events.out.tfevents.2")), 0);
        check(true, true);
        ck_assert_int_eq(rmdir(path_of("run")), 0);
        check(true, true);
        ck_assert_uint_eq(notify_watches(notify), 1);
        ck_assert_int_eq(unlink(path_of("checkpoint")), 0);
        check(false, false);
        notify_listen(notify, NULL, NULL);
        ck_assert_int_eq(unlink(path_of("events.out.tfevents.1")), 0);
        check(false, false);
        ck_assert_int_eq(rmdir(directory), 0);
        end();
}
END_TEST

/* What has no watch is found by polling; that is said. */
START_TEST(watches_have_a_budget) {
        begin(2);
        ck_assert_int_eq(mkdir(path_of("a"), 0700), 0);
        ck_assert_int_eq(mkdir(path_of("b"), 0700), 0);
        notify_add(notify, directory);
        notify_add(notify, path_of("nowhere"));
        notify_add(notify, path_of("a"));
        ck_assert_str_eq(notify_state(notify), "inotify");
        notify_add(notify, path_of("b"));
        ck_assert_uint_eq(notify_watches(notify), 2);
        ck_assert_ptr_nonnull(strstr(notify_state(notify), "max_user_watches"));
        ck_assert_int_eq(rmdir(path_of("a")), 0);
        ck_assert_int_eq(rmdir(path_of("b")), 0);
        check(true, true);
        ck_assert_int_eq(rmdir(directory), 0);
        end();
}
END_TEST

START_TEST(without_memory) {
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        fail_begin(1, FAIL_ANY_THREAD);
        ck_assert_int_eq(notify_new(&loop, 0, &notify), -ENOMEM);
        ck_assert(fail_end());
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown();
}
END_TEST

RUNNER_MAIN("store/notify", what_is_told, watches_have_a_budget, without_memory)
