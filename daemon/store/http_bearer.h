/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bearer token (RFC 6750) in a file, which whoever renews it writes anew: it is read again when
 * the file has changed. Loop thread; the file is a small local one.
 */
#pragma once

#include <sys/stat.h>

struct http_bearer {
        char *path;
        char *token;      /* NULL: none was read yet */
        struct stat read; /* of the file, when the token was read */
};

/* -ENOMEM. */
int http_bearer_init(struct http_bearer *bearer, const char *path);
void http_bearer_deinit(struct http_bearer *bearer);

/*
 * The token as the file has it now, without spaces around it; borrowed until the next call. -EBADMSG:
 * what it holds is no token; -errno of open(2) and read(2).
 */
int http_bearer_get(struct http_bearer *bearer, const char **ret_token);
