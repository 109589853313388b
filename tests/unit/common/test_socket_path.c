/* SPDX-License-Identifier: Apache-2.0 */
#include "common/socket_path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define SOME_USER 54321 /* each test is a process of its own and may become someone */

static char directory[64];

/* A world in which only `directory` and the system's path exist. */
static void begin(void) {
        strcpy(directory, "/tmp/socket-path-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        ck_assert_int_eq(chmod(directory, 01777), 0);
        ck_assert_int_eq(setenv("TMPDIR", directory, 1), 0);
        unsetenv("XDG_RUNTIME_DIR");
        unsetenv("HEADRACE_SOCKET");
        if (geteuid() == 0)
                ck_assert_int_eq(seteuid(SOME_USER), 0);
}

static void end(void) {
        char command[96];

        if (getuid() == 0)
                ck_assert_int_eq(seteuid(0), 0);
        snprintf(command, sizeof(command), "rm -r %s", directory);
        ck_assert_int_eq(system(command), 0);
}

static char *own(void) {
        static char path[128];

        snprintf(path, sizeof(path), "%s/headrace-%u", directory, (unsigned)geteuid());
        return path;
}

static int listen_path(char **ret_path) {
        return socket_path_listen(NULL, ret_path, NULL);
}

START_TEST(listens_below_tmpdir) {
        CLEANUP(freep) char *path = NULL;
        struct stat info;

        begin();
        ck_assert_int_eq(listen_path(&path), 0);
        ck_assert_int_eq(strncmp(path, own(), strlen(own())), 0);
        ck_assert_str_eq(path + strlen(own()), "/headrace.sock");
        ck_assert_int_eq(lstat(own(), &info), 0);
        ck_assert_uint_eq(info.st_mode, S_IFDIR | 0700);
        end();
}
END_TEST

START_TEST(listens_in_the_runtime_directory) {
        CLEANUP(freep) char *path = NULL;
        char expected[128];

        begin();
        setenv("XDG_RUNTIME_DIR", directory, 1);
        ck_assert_int_eq(listen_path(&path), 0);
        snprintf(expected, sizeof(expected), "%s/headrace/headrace.sock", directory);
        ck_assert_str_eq(path, expected);
        end();
}
END_TEST

START_TEST(relative_runtime_directory_is_ignored) {
        CLEANUP(freep) char *path = NULL;

        begin();
        setenv("XDG_RUNTIME_DIR", "run", 1);
        ck_assert_int_eq(listen_path(&path), 0);
        ck_assert_int_eq(strncmp(path, own(), strlen(own())), 0);
        end();
}
END_TEST

START_TEST(refuses_a_link) {
        CLEANUP(freep) char *path = NULL;
        CLEANUP(freep) char *tried = NULL;

        begin();
        ck_assert_int_eq(symlink("/usr", own()), 0);
        ck_assert_int_eq(socket_path_listen(NULL, &path, &tried), -EPERM);
        ck_assert_str_eq(tried, own());
        end();
}
END_TEST

START_TEST(refuses_an_open_directory) {
        CLEANUP(freep) char *path = NULL;

        begin();
        ck_assert_int_eq(mkdir(own(), 0700), 0);
        ck_assert_int_eq(chmod(own(), 0770), 0);
        ck_assert_int_eq(listen_path(&path), -EPERM);
        end();
}
END_TEST

START_TEST(refuses_the_directory_of_another) {
        CLEANUP(freep) char *path = NULL;
        char theirs[128];

        if (geteuid() != 0)
                return; /* nobody else to be */
        begin();
        ck_assert_int_eq(mkdir(own(), 0700), 0);
        snprintf(theirs, sizeof(theirs), "%s", own());
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(chown(theirs, SOME_USER + 1, 0), 0);
        ck_assert_int_eq(seteuid(SOME_USER), 0);
        ck_assert_int_eq(listen_path(&path), -EPERM);
        end();
}
END_TEST

START_TEST(given_is_taken_as_it_is) {
        CLEANUP(freep) char *path = NULL;
        struct socket_path paths[SOCKET_PATHS_MOST];
        size_t count = 0;

        ck_assert_int_eq(socket_path_listen("x/y.sock", &path, NULL), 0);
        ck_assert_str_eq(path, "x/y.sock");
        setenv("HEADRACE_SOCKET", "/other", 1);
        ck_assert_int_eq(socket_path_search("x/y.sock", paths, &count), 0);
        ck_assert_uint_eq(count, 1);
        ck_assert_str_eq(paths[0].path, "x/y.sock");
        ck_assert_int_eq(paths[0].place, SOCKET_GIVEN);
        socket_paths_clear(paths, count);
}
END_TEST

START_TEST(refuses_what_no_address_holds) {
        CLEANUP(freep) char *path = NULL;
        char fits[108], too_long[109];

        memset(fits, 'x', sizeof(fits));
        memset(too_long, 'x', sizeof(too_long));
        fits[sizeof(fits) - 1] = too_long[sizeof(too_long) - 1] = '\0';
        ck_assert_int_eq(socket_path_listen(too_long, &path, NULL), -ENAMETOOLONG);
        ck_assert_int_eq(socket_path_listen(fits, &path, NULL), 0);
}
END_TEST

START_TEST(search_order) {
        struct socket_path paths[SOCKET_PATHS_MOST];
        size_t count = 0;

        begin();
        ck_assert_int_eq(mkdir(own(), 0700), 0);
        setenv("HEADRACE_SOCKET", "/first.sock", 1);
        setenv("XDG_RUNTIME_DIR", "/second", 1);
        ck_assert_int_eq(socket_path_search(NULL, paths, &count), 0);
        ck_assert_uint_eq(count, 4);
        ck_assert_str_eq(paths[0].path, "/first.sock");
        ck_assert_int_eq(paths[0].place, SOCKET_ENVIRONMENT);
        ck_assert_str_eq(paths[1].path, "/second/headrace/headrace.sock");
        ck_assert_int_eq(paths[1].place, SOCKET_USER);
        ck_assert_int_eq(strncmp(paths[2].path, own(), strlen(own())), 0);
        ck_assert_int_eq(paths[2].place, SOCKET_USER);
        ck_assert_str_eq(paths[3].path, SOCKET_PATH_SYSTEM);
        ck_assert_int_eq(paths[3].place, SOCKET_SYSTEM);
        socket_paths_clear(paths, count);
        end();
}
END_TEST

/* Another user's directory of our name must not lure a client. */
START_TEST(search_leaves_out_what_is_not_ours) {
        struct socket_path paths[SOCKET_PATHS_MOST];
        size_t count = 0;

        begin();
        ck_assert_int_eq(symlink("/usr", own()), 0);
        ck_assert_int_eq(socket_path_search(NULL, paths, &count), 0);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_eq(paths[0].place, SOCKET_SYSTEM);
        socket_paths_clear(paths, count);
        end();
}
END_TEST

RUNNER_MAIN("common/socket_path", listens_below_tmpdir, listens_in_the_runtime_directory,
            relative_runtime_directory_is_ignored, refuses_a_link, refuses_an_open_directory,
            refuses_the_directory_of_another, given_is_taken_as_it_is,
            refuses_what_no_address_holds, search_order, search_leaves_out_what_is_not_ours)
