/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/base.h"
#include "tests/unit/runner.h"

static uv_loop_t loop;
static char directory[64], path[100];
static int accepted;
static uid_t accepted_uid;
static pid_t accepted_pid;

static void on_connection(void *userdata, int take_fd, uid_t uid, pid_t pid) {
        ck_assert_ptr_eq(userdata, &accepted);
        ck_assert_int_ne(fcntl(take_fd, F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_ne(fcntl(take_fd, F_GETFD) & FD_CLOEXEC, 0);
        close(take_fd);
        accepted++;
        accepted_uid = uid;
        accepted_pid = pid;
}

static void begin(void) {
        snprintf(directory, sizeof(directory), "/tmp/test-listener-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/headrace.sock", directory);
        ck_assert_int_eq(uv_loop_init(&loop), 0);
}

/* The lock file stays; there is nothing else. */
static void end(void) {
        char lock[120];

        ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown();
        snprintf(lock, sizeof(lock), "%s.lock", path);
        unlink(lock);
        ck_assert_int_eq(rmdir(directory), 0);
}

static struct listener *listen_on(const char *where) {
        struct listener *listener;
        char *error;

        ck_assert_int_eq(listener_new(&loop, where, on_connection, &accepted, &listener, &error),
                         0);
        ck_assert_ptr_null(error);
        return listener;
}

static void on_closed(void *userdata) {
        (*(int *)userdata)++;
}

static void close_listener(struct listener *listener) {
        int closed = 0;

        listener_close(listener, on_closed, &closed);
        while (!closed)
                uv_run(&loop, UV_RUN_ONCE);
}

static int connect_to(const char *where) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", where);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
                return fd;
        close(fd);
        return -1;
}

static char *refusal(const char *where, int expected) {
        struct listener *listener;
        char *error;

        ck_assert_int_eq(listener_new(&loop, where, on_connection, &accepted, &listener, &error),
                         expected);
        ck_assert_ptr_nonnull(error);
        return error;
}

START_TEST(accepts_and_says_who_it_is) {
        struct listener *listener;
        struct stat status;
        int fd;

        begin();
        listener = listen_on(path);
        ck_assert_int_eq(lstat(path, &status), 0);
        ck_assert(S_ISSOCK(status.st_mode));
        ck_assert_uint_eq(status.st_mode & 0777, 0660);
        fd = connect_to(path);
        ck_assert_int_ge(fd, 0);
        while (!accepted)
                uv_run(&loop, UV_RUN_ONCE);
        ck_assert_uint_eq(accepted_uid, getuid());
        ck_assert_int_eq(accepted_pid, getpid());
        close(fd);
        close_listener(listener);
        ck_assert_int_lt(lstat(path, &status), 0);
        end();
}
END_TEST

START_TEST(a_second_daemon_is_refused) {
        struct listener *listener;
        char *error, pid[32];
        int fd;

        begin();
        listener = listen_on(path);
        error = refusal(path, LISTENER_E_RUNNING);
        snprintf(pid, sizeof(pid), "pid %d", getpid());
        ck_assert_ptr_nonnull(strstr(error, "already running"));
        ck_assert_ptr_nonnull(strstr(error, pid));
        free(error);
        fd = connect_to(path); /* the first one is not disturbed */
        ck_assert_int_ge(fd, 0);
        close(fd);
        close_listener(listener);
        end();
}
END_TEST

START_TEST(what_a_dead_daemon_left_is_taken_over) {
        struct listener *listener;
        pid_t child;
        int status, fd;

        begin();
        child = fork();
        if (child == 0) {
                listen_on(path);
                _exit(0); /* nothing is cleaned up */
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(access(path, F_OK), 0);
        ck_assert_int_lt(connect_to(path), 0);
        listener = listen_on(path);
        fd = connect_to(path);
        ck_assert_int_ge(fd, 0);
        close(fd);
        close_listener(listener);
        end();
}
END_TEST

START_TEST(only_our_own_socket_is_removed) {
        struct listener *listener;
        int fd;

        begin();
        listener = listen_on(path);
        ck_assert_int_eq(unlink(path), 0);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        close(fd);
        close_listener(listener);
        ck_assert_int_eq(unlink(path), 0); /* still there */
        end();
}
END_TEST

START_TEST(files_are_not_replaced) {
        char *error;
        int fd;

        begin();
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        close(fd);
        error = refusal(path, -EEXIST);
        ck_assert_ptr_nonnull(strstr(error, "no socket"));
        free(error);
        ck_assert_int_eq(unlink(path), 0);
        end();
}
END_TEST

START_TEST(places_that_do_not_work_are_named) {
        static const char long_name[] = "/a-name-that-is-much-too-long-for-the-address-of-a-unix-"
                                        "socket-as-it-passes-a-hundred-and-eight-bytes";
        char where[256], *error;

        begin();
        snprintf(where, sizeof(where), "%s/none/headrace.sock", directory);
        error = refusal(where, -ENOENT);
        ck_assert_ptr_nonnull(strstr(error, where));
        ck_assert_ptr_nonnull(strstr(error, "No such file"));
        free(error);
        snprintf(where, sizeof(where), "%s%s", directory, long_name);
        error = refusal(where, -ENAMETOOLONG);
        free(error);
        strcat(where, ".lock");
        unlink(where);
        end();
}
END_TEST

RUNNER_MAIN("serve/listener", accepts_and_says_who_it_is, a_second_daemon_is_refused,
            what_a_dead_daemon_left_is_taken_over, only_our_own_socket_is_removed,
            files_are_not_replaced, places_that_do_not_work_are_named)
