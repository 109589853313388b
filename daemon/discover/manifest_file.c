/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/manifest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/discover/manifest.h"

/* The first of several that systemd gives; a relative one counts as none. */
static char *first_absolute(const char *value, const char *below) {
        size_t size = value ? strcspn(value, ":") : 0;
        char *path = NULL;

        if (size == 0 || value[0] != '/' || asprintf(&path, "%.*s%s", (int)size, value, below) < 0)
                return NULL;
        return path;
}

char *manifest_file_directory(void) {
        char *path = first_absolute(getenv("STATE_DIRECTORY"), "");

        if (!path)
                path = first_absolute(getenv("XDG_CACHE_HOME"), "/headrace");
        return path ? path : first_absolute(getenv("HOME"), "/.cache/headrace");
}

static int path_of(const char *directory, uint64_t source_id, const char *end, char **ret_path) {
        return asprintf(ret_path, "%s/%016" PRIx64 ".known%s", directory, source_id, end) < 0
                       ? -ENOMEM
                       : 0;
}

static int read_all(int fd, uint8_t *bytes, uint64_t size) {
        uint64_t done = 0;

        while (done < size) {
                ssize_t r = read(fd, bytes + done, size - done);

                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return r < 0 ? -errno : -EBADMSG; /* it became shorter */
                done += (uint64_t)r;
        }
        return 0;
}

int manifest_file_read(const char *directory, uint64_t source_id, uint8_t **ret_image,
                       uint64_t *ret_size_bytes) {
        CLEANUP(freep) uint8_t *image = NULL;
        CLEANUP(close_fdp) int fd = -1;
        CLEANUP(freep) char *path = NULL;
        struct stat found;
        int r = path_of(directory, source_id, "", &path);

        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &found) < 0)
                return -errno;
        if (!S_ISREG(found.st_mode) || found.st_uid != geteuid())
                return -EPERM;
        if (found.st_size > (off_t)MANIFEST_MOST_BYTES)
                return -EFBIG;
        image = malloc((size_t)found.st_size + 1);
        r = image ? read_all(fd, image, (uint64_t)found.st_size) : -ENOMEM;
        if (r < 0)
                return r;
        *ret_image = steal_pointer(&image);
        *ret_size_bytes = (uint64_t)found.st_size;
        return 0;
}

static int write_all(int fd, const uint8_t *bytes, uint64_t size) {
        while (size > 0) {
                ssize_t r = write(fd, bytes, size);

                if (r < 0 && errno == EINTR)
                        continue;
                if (r < 0)
                        return -errno;
                bytes += r;
                size -= (uint64_t)r;
        }
        return 0;
}

/* And the one above it, as ~/.cache is not everywhere. */
static int make_directory(const char *path) {
        CLEANUP(freep) char *above = strdup(path);
        char *slash = above ? strrchr(above, '/') : NULL;

        if (mkdir(path, 0700) == 0 || errno == EEXIST)
                return 0;
        if (errno != ENOENT || !slash || slash == above)
                return above ? -errno : -ENOMEM;
        *slash = '\0';
        if ((mkdir(above, 0700) < 0 && errno != EEXIST) || mkdir(path, 0700) < 0)
                return -errno;
        return 0;
}

int manifest_file_write(const char *directory, uint64_t source_id, const uint8_t *image,
                        uint64_t size_bytes) {
        CLEANUP(freep) char *path = NULL, *fresh = NULL;
        CLEANUP(close_fdp) int fd = -1;
        int r = path_of(directory, source_id, "", &path);

        if (r == 0)
                r = path_of(directory, source_id, ".XXXXXX", &fresh);
        if (r < 0)
                return r;
        r = make_directory(directory);
        if (r < 0)
                return r;
        fd = mkostemp(fresh, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = write_all(fd, image, size_bytes);
        if (r == 0 && rename(fresh, path) < 0)
                r = -errno;
        if (r < 0)
                unlink(fresh);
        return r;
}
