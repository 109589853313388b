/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An http or https URL in parts. The parts that may hold secrets (user, password, query) stand
 * apart from those that are shown.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct http_url {
        char *scheme;          /* "http" or "https" */
        char *host;            /* lower case, an IPv6 address without brackets */
        char *port;            /* always there */
        char *endpoint;        /* "http://host:port" */
        char *user, *password; /* decoded; NULL if there are none */
        char *path;            /* encoded, without trailing slashes: "" for the root */
        char *query;           /* with its question mark; "" if there is none */
};

/* -EINVAL: *ret_message (static) says what is wrong; -ENOMEM. */
int http_url_init(struct http_url *url, const char *text, const char **ret_message);
void http_url_deinit(struct http_url *url);

/*
 * Percent-encodes a name of any bytes but slashes, which separate components. Writes at most three
 * times its size, without NUL, and returns the end of what it wrote.
 */
char *http_url_encode(const char *name, size_t size, char *ret_encoded);
