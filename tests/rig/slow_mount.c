/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read-only FUSE file system that shows a directory with a delay on every look-up, reading of a
 * directory, open and read: as a bucket that is mounted, or a far file server. With the names of a
 * directory come their attributes (READDIRPLUS), as from most of those.
 *
 *      SLOW_SOURCE=DIRECTORY SLOW_MS=100 slow_mount -f -o ro MOUNTPOINT
 */
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *source;
static struct timespec delay_time;

static void delay(void) {
        nanosleep(&delay_time, NULL);
}

static int path_of(char *real, size_t size, const char *path) {
        int length = snprintf(real, size, "%s%s", source, path);

        return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static int slow_getattr(const char *path, struct stat *stat, struct fuse_file_info *file) {
        char real[8192];

        (void)file;
        delay();
        if (path_of(real, sizeof(real), path) < 0)
                return -ENAMETOOLONG;
        return lstat(real, stat) < 0 ? -errno : 0;
}

/* Each call goes on at the offset of the last; the kernel keeps the attributes only then. */
static int slow_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *file, enum fuse_readdir_flags flags) {
        enum fuse_fill_dir_flags kind = flags & FUSE_READDIR_PLUS ? FUSE_FILL_DIR_PLUS : 0;
        struct dirent *entry;
        char real[8192];
        DIR *directory;
        off_t at = 0;

        (void)file;
        delay();
        if (path_of(real, sizeof(real), path) < 0)
                return -ENAMETOOLONG;
        directory = opendir(real);
        if (!directory)
                return -errno;
        while ((entry = readdir(directory))) {
                struct stat stat = { 0 };

                if (at++ < offset)
                        continue;
                fstatat(dirfd(directory), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW);
                if (fill(buffer, entry->d_name, &stat, at, kind))
                        break;
        }
        closedir(directory);
        return 0;
}

static int slow_open(const char *path, struct fuse_file_info *file) {
        char real[8192];
        int fd;

        delay();
        if (path_of(real, sizeof(real), path) < 0)
                return -ENAMETOOLONG;
        fd = open(real, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        file->fh = (uint64_t)fd;
        return 0;
}

static int slow_read(const char *path, char *bytes, size_t size, off_t offset,
                     struct fuse_file_info *file) {
        ssize_t got;

        (void)path;
        delay();
        got = pread((int)file->fh, bytes, size, offset);
        return got < 0 ? -errno : (int)got;
}

static int slow_release(const char *path, struct fuse_file_info *file) {
        (void)path;
        close((int)file->fh);
        return 0;
}

int main(int argc, char **argv) {
        static const struct fuse_operations operations = {
                .getattr = slow_getattr,
                .readdir = slow_readdir,
                .open = slow_open,
                .read = slow_read,
                .release = slow_release,
        };
        const char *milliseconds = getenv("SLOW_MS");
        long ms = milliseconds ? strtol(milliseconds, NULL, 10) : 0;

        source = getenv("SLOW_SOURCE");
        if (!source) {
                fputs("slow_mount: SLOW_SOURCE is not set\n", stderr);
                return 2;
        }
        delay_time = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
        return fuse_main(argc, argv, &operations, NULL);
}
