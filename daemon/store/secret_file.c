/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"

void secret_free(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

/* A file that grows meanwhile is read as long as it was. */
int secret_file_read(const char *path, char **ret_text, size_t *ret_size) {
        CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat info;
        ssize_t size;
        char *text;

        if (fd < 0 || fstat(fd, &info) < 0)
                return -errno;
        if (!S_ISREG(info.st_mode))
                return -EINVAL;
        if (info.st_size > SECRET_FILE_MOST_BYTES)
                return -EFBIG;
        text = calloc(1, (size_t)info.st_size + 1);
        if (!text)
                return -ENOMEM;
        size = read(fd, text, (size_t)info.st_size);
        if (size < 0) {
                free(text);
                return -EIO;
        }
        *ret_text = text;
        if (ret_size)
                *ret_size = (size_t)size;
        return 0;
}

/* ---- Changes ---- */

struct file_stamp file_stamp_of(const char *path) {
        struct stat info;

        if (!path || stat(path, &info) < 0)
                return (struct file_stamp){ .mtime_ns = INT64_MIN };
        return (struct file_stamp){
                .device = info.st_dev,
                .inode = info.st_ino,
                .size_bytes = (uint64_t)info.st_size,
                .mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
        };
}

bool file_stamp_is(const struct file_stamp *stamp, const char *path) {
        struct file_stamp now = file_stamp_of(path);

        return stamp->device == now.device && stamp->inode == now.inode &&
               stamp->size_bytes == now.size_bytes && stamp->mtime_ns == now.mtime_ns;
}

void secret_watch_add(struct secret_watch *watch, const char *path) {
        char *copy = watch->count < SECRET_WATCH_MOST ? strdup(path) : NULL;

        if (!copy)
                return;
        watch->paths[watch->count] = copy;
        watch->stamps[watch->count++] = file_stamp_of(path);
}

bool secret_watch_has_changed(const struct secret_watch *watch) {
        for (size_t i = 0; i < watch->count; i++) {
                if (!file_stamp_is(&watch->stamps[i], watch->paths[i]))
                        return true;
        }
        return false;
}

void secret_watch_clear(struct secret_watch *watch) {
        while (watch->count)
                free(watch->paths[--watch->count]);
}
