/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/self/mountinfo as gcsfuse, s3fs, goofys and others make them, and as proc(5) has them. */
#include "daemon/store/mount.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "common/base.h"
#include "tests/unit/runner.h"

START_TEST(lines_of_mountinfo) {
        static const struct {
                const char *line, *path, *type, *native;
        } cases[] = {
                { "42 27 0:39 / /mnt/logs rw,nosuid - fuse.gcsfuse bucket-1 rw,user_id=0\n",
                  "/mnt/logs/exp/a", "fuse.gcsfuse", "gs://bucket-1/exp/a" },
                { "42 27 0:39 / /mnt/logs rw shared:1 master:2 - fuse.gcsfuse b rw\n", "/mnt/logs",
                  "fuse.gcsfuse", "gs://b" },
                { "42 27 0:39 / /mnt/my\\040logs rw - fuse.s3fs s3fs rw\n", "/mnt/my logs/x",
                  "fuse.s3fs", "s3://BUCKET/x" },
                { "42 27 0:39 / /mnt rw - fuse.goofys acme rw", "/mnt/x", "fuse.goofys",
                  "s3://acme/x" },
                { "42 27 0:39 / / rw - fuse.geesefs acme rw", "/x/y", "fuse.geesefs",
                  "s3://acme/x/y" },
                { "42 27 0:39 / /mnt rw - fuse.sshfs host:/x rw", "/mnt/x", "fuse.sshfs", "" },
                { "42 27 0:39 / /mnt rw - fuse.gcsfuse b rw", "/elsewhere", "fuse.gcsfuse",
                  "gs://b" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct mount mount = { 0 };

                ck_assert_msg(
                        mount_parse_line(cases[i].line, makedev(0, 39), cases[i].path, &mount),
                        "%s", cases[i].line);
                ck_assert_str_eq(mount.type, cases[i].type);
                ck_assert_str_eq(mount.native, cases[i].native);
        }
}
END_TEST

START_TEST(lines_that_are_none) {
        static const char *const lines[] = {
                "",
                "\n",
                "42",
                "42 27 0:40 / /mnt rw - fuse.s3fs s3fs rw", /* another device */
                "42 27 0:39",
                "42 27 0:39 ",
                "42 27 0:39 /",
                "42 27 0:39 / /mnt",
                "42 27 0:39 / /mnt rw",
                "42 27 0:39 / /mnt rw -",
                "42 27 0:39 / /mnt rw - a-type-that-is-longer-than-any-file-system-has rw x",
        };
        char longest[20000];
        struct mount mount = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                ck_assert_msg(!mount_parse_line(lines[i], makedev(0, 39), "/mnt", &mount), "%s",
                              lines[i]);
        memset(longest, '\\', sizeof(longest));
        memcpy(longest, "42 27 0:39 ", 11);
        longest[sizeof(longest) - 1] = '\0';
        ck_assert(!mount_parse_line(longest, makedev(0, 39), "/mnt", &mount));
        ck_assert_str_eq(mount.type, "");
}
END_TEST

/* A native URL that does not fit is none. */
START_TEST(long_names) {
        char path[400] = "/mnt/";
        struct mount mount = { 0 };

        memset(path + 5, 'x', sizeof(path) - 6);
        path[sizeof(path) - 1] = '\0';
        ck_assert(mount_parse_line("42 27 0:39 / /mnt rw - fuse.gcsfuse b rw", makedev(0, 39), path,
                                   &mount));
        ck_assert_str_eq(mount.native, "");
}
END_TEST

START_TEST(the_machine_itself) {
        CLEANUP(close_fdp) int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct mount mount;

        ck_assert_int_ge(fd, 0);
        mount_look(fd, "/proc", &mount);
        ck_assert(mount.is_local);
        ck_assert_str_eq(mount.type, "local");
        mount_look(-1, "/proc", &mount);
        ck_assert(mount.is_local);
}
END_TEST

RUNNER_MAIN("store/mount", lines_of_mountinfo, lines_that_are_none, long_names, the_machine_itself)
