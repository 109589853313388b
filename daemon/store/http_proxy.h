/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy that the environment names for a URL: http_proxy, https_proxy, all_proxy and no_proxy,
 * in lower case or in capitals (but HTTP_PROXY, which a request to a CGI program can set).
 */
#pragma once

#include "daemon/store/http_url.h"

struct http_proxy {
        const char *url;      /* borrowed of the environment; it may hold a password. NULL: none */
        const char *variable; /* static: which variable named it */
        const char *exempt;   /* borrowed: no_proxy; NULL: not set */
        char *shown;          /* without user and password; NULL: it is no URL of a proxy */
};

/* -ENOMEM. */
int http_proxy_find(const struct http_url *url, struct http_proxy *ret_proxy);
void http_proxy_deinit(struct http_proxy *proxy);
