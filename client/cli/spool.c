/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/base.h"

#define SPOOL_FIRST_SPACE (64u << 10)
#define SPOOL_BUFFER_BYTES (256u << 10) /* that are read at once */

void spool_init(struct spool *spool, size_t limit) {
        *spool = (struct spool){ .limit = limit, .file = { .fd = -1 } };
}

void spool_deinit(struct spool *spool) {
        close_fdp(&spool->file.fd);
        sink_deinit(&spool->file);
        free(spool->buffer);
        free(spool->memory);
        spool_init(spool, 0);
}

/* ---- The file -------------------------------------------------------------------------------- */

/* Where the file system has no files without a name, one that loses its own at once. */
static int open_named(const char *directory) {
        CLEANUP(freep) char *path = NULL;
        int fd;

        if (asprintf(&path, "%s/headrace-XXXXXX", directory) < 0)
                return -ENOMEM;
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        unlink(path);
        return fd;
}

static int open_in(const char *directory) {
        int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd >= 0)
                return fd;
        return errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT ? open_named(directory)
                                                                         : -errno;
}

static int open_temporary(void) {
        const char *directory = getenv("TMPDIR");
        int fd;

        if (directory && directory[0])
                return open_in(directory);
        fd = open_in("/var/tmp");
        return fd >= 0 ? fd : open_in("/tmp");
}

static int use_file(struct spool *spool) {
        CLEANUP(close_fdp) int fd = -1;
        int r;

        if (spool->file.fd >= 0)
                return 0;
        if (!spool->buffer && !(spool->buffer = malloc(SPOOL_BUFFER_BYTES)))
                return -ENOMEM;
        fd = open_temporary();
        if (fd < 0)
                return fd;
        r = sink_init(&spool->file, fd);
        if (r == 0)
                steal_fd(&fd);
        return r;
}

static int append_file(struct spool *spool, const char *bytes, size_t size) {
        int r = size ? use_file(spool) : 0;

        if (r < 0 || size == 0)
                return r;
        sink_add(&spool->file, bytes, size);
        spool->file_size += size;
        return spool->file.error;
}

/* Reads ahead, from the descriptor's own place on. */
static int fill_buffer(struct spool *spool) {
        ssize_t n;

        do
                n = read(spool->file.fd, spool->buffer, SPOOL_BUFFER_BYTES);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return n < 0 ? -errno : -EIO;
        spool->buffer_size = (size_t)n;
        spool->buffer_at = 0;
        return 0;
}

/* bytes NULL: they are passed over. */
static int read_file(struct spool *spool, char *bytes, size_t size) {
        int r = 0;

        while (size && r == 0) {
                size_t here = min_u64(size, spool->buffer_size - spool->buffer_at);

                if (bytes) {
                        memcpy(bytes, spool->buffer + spool->buffer_at, here);
                        bytes += here;
                }
                spool->buffer_at += here;
                spool->file_at += here;
                size -= here;
                if (size)
                        r = fill_buffer(spool);
        }
        return r;
}

/* ---- Memory and file ------------------------------------------------------------------------- */

static int reserve(struct spool *spool, size_t size) {
        size_t space = spool->space ? spool->space : SPOOL_FIRST_SPACE;
        char *memory;

        if (spool->size + size <= spool->space)
                return 0;
        while (space < spool->size + size)
                space *= 2;
        memory = realloc(spool->memory, space);
        if (!memory)
                return -ENOMEM;
        spool->memory = memory;
        spool->space = space;
        return 0;
}

int spool_append(struct spool *spool, const void *bytes, size_t size) {
        size_t here = min_u64(size, spool->limit - spool->size);
        int r = reserve(spool, here);

        if (r < 0)
                return r;
        if (here)
                memcpy(spool->memory + spool->size, bytes, here);
        spool->size += here;
        return append_file(spool, (const char *)bytes + here, size - here);
}

int spool_rewind(struct spool *spool) {
        int r = 0;

        spool->at = 0;
        spool->file_at = 0;
        spool->buffer_size = spool->buffer_at = 0;
        if (spool->file.fd < 0)
                return 0;
        r = sink_flush(&spool->file);
        return r == 0 && lseek(spool->file.fd, 0, SEEK_SET) < 0 ? -errno : r;
}

/* bytes NULL: they are passed over. */
static int read_on(struct spool *spool, char *bytes, size_t size) {
        size_t here = min_u64(size, spool->size - spool->at);

        if (size - here > spool->file_size - spool->file_at)
                return -EIO;
        if (here && bytes)
                memcpy(bytes, spool->memory + spool->at, here);
        spool->at += here;
        return read_file(spool, bytes ? bytes + here : NULL, size - here);
}

int spool_read(struct spool *spool, void *ret_bytes, size_t size) {
        return read_on(spool, ret_bytes, size);
}

int spool_skip(struct spool *spool, size_t size) {
        return read_on(spool, NULL, size);
}

bool spool_is_at_end(const struct spool *spool) {
        return spool->at == spool->size && spool->file_at == spool->file_size;
}

int spool_clear(struct spool *spool) {
        spool->size = spool->at = 0;
        spool->file_size = spool->file_at = 0;
        if (spool->file.fd < 0)
                return 0;
        spool->file.size = 0;
        return lseek(spool->file.fd, 0, SEEK_SET) < 0 || ftruncate(spool->file.fd, 0) < 0 ? -errno
                                                                                          : 0;
}
