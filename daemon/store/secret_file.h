/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files that secrets are in (keys, tokens, logins): read whole, wiped when they are done
 * with, and watched, as a login that comes later is to be seen. Not bound to a thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_FILE_MOST_BYTES (1u << 20)

/*
 * A whole file with a NUL behind it, the caller's to give to secret_free(). A fifo is not waited for.
 * -errno; -EFBIG: it is longer than SECRET_FILE_MOST_BYTES; -EINVAL: it is no regular file.
 */
int secret_file_read(const char *path, char **ret_text,
                     size_t *ret_size); /* ret_size may be NULL */

/* Overwrites and frees; NULL is fine. */
void secret_free(char *text);

/* A file as it was read, to see whether it is another one now. */
struct file_stamp {
        uint64_t device, inode, size_bytes;
        int64_t mtime_ns; /* INT64_MIN: it was not there */
};

/* path NULL: of a file that is never there. */
struct file_stamp file_stamp_of(const char *path);
bool file_stamp_is(const struct file_stamp *stamp, const char *path);

#define SECRET_WATCH_MOST 4 /* more are not watched */

struct secret_watch {
        size_t count;
        char *paths[SECRET_WATCH_MOST];
        struct file_stamp stamps[SECRET_WATCH_MOST];
};

/* From now on: a file that may not be there yet. Without memory it is not watched. */
void secret_watch_add(struct secret_watch *watch, const char *path);
bool secret_watch_has_changed(const struct secret_watch *watch);

/* Watches nothing any more. */
void secret_watch_clear(struct secret_watch *watch);
