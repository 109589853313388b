/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_bearer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"

#define TOKEN_MOST_BYTES (16u << 10)

int http_bearer_init(struct http_bearer *bearer, const char *path) {
        *bearer = (struct http_bearer){ .path = strdup(path) };
        return bearer->path ? 0 : -ENOMEM;
}

static void forget(struct http_bearer *bearer) {
        if (bearer->token)
                explicit_bzero(bearer->token, strlen(bearer->token));
        free(bearer->token);
        bearer->token = NULL;
}

void http_bearer_deinit(struct http_bearer *bearer) {
        forget(bearer);
        free(bearer->path);
        bearer->path = NULL;
}

static bool is_same(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
               a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Cuts the spaces off; false if what is left is no token: it goes into a header as it is. */
static bool trim(char *text, size_t size) {
        size_t begin = 0;

        while (size > 0 && strchr(" \t\r\n", text[size - 1]))
                size--;
        while (begin < size && strchr(" \t\r\n", text[begin]))
                begin++;
        for (size_t i = begin; i < size; i++) {
                if (text[i] <= ' ' || text[i] > '~')
                        return false;
        }
        memmove(text, text + begin, size - begin);
        text[size - begin] = '\0';
        return size > begin;
}

static int read_all(int fd, char *text, size_t *ret_size) {
        size_t size = 0;
        ssize_t got;

        while (size <= TOKEN_MOST_BYTES) {
                got = read(fd, text + size, TOKEN_MOST_BYTES + 1 - size);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                size += (size_t)got;
        }
        *ret_size = size;
        return 0;
}

int http_bearer_get(struct http_bearer *bearer, const char **ret_token) {
        CLEANUP(close_fdp) int fd = -1;
        size_t size = 0;
        struct stat now;
        char *text;
        int r;

        if (bearer->token && stat(bearer->path, &now) == 0 && is_same(&now, &bearer->read)) {
                *ret_token = bearer->token;
                return 0;
        }
        forget(bearer);
        fd = open(bearer->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &bearer->read) < 0)
                return -errno;
        text = malloc(TOKEN_MOST_BYTES + 2);
        if (!text)
                return -ENOMEM;
        r = read_all(fd, text, &size);
        if (r == 0 && (size > TOKEN_MOST_BYTES || !trim(text, size)))
                r = -EBADMSG;
        if (r < 0) {
                explicit_bzero(text, TOKEN_MOST_BYTES + 2);
                free(text);
                return r;
        }
        bearer->token = text;
        *ret_token = text;
        return 0;
}
