/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What file system a directory is on: whether changes that others make are heard of, and how many
 * reads can run at a time. May wait for the file system: for threads of the pool.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mount {
        char type[40];           /* "fuse.gcsfuse", "nfs"; "local" for all that is not known */
        bool is_local;           /* inotify tells what happens there */
        unsigned max_background; /* FUSE: requests that the kernel runs at a time; 0: not known */
        char native[200];        /* URL that leads to the same without the mount; "": not known */
};

/* Of an open directory, whose absolute path is `path` (for `native` only). Never fails. */
void mount_look(int fd, const char *path, struct mount *ret_mount);

/*
 * Reads one line of /proc/self/mountinfo (proc(5)) if it is of that device: its type, and what the
 * native URL of the path is. False: another device, or no such line. Pure.
 */
bool mount_parse_line(const char *line, dev_t device, const char *path, struct mount *ret_mount);
