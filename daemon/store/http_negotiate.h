/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A login by SPNEGO (RFC 4559), with the Kerberos ticket that the user's cache has. GSS-API waits for
 * the key distribution centre, so the one request that logs in is made by a thread of the loop's
 * pool. What comes of it is the server's cookie; where there is none, each request of its own has
 * to negotiate, and finds the service's ticket in the cache by then. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/store/store.h"

struct http_negotiate_job;

struct http_negotiate {
        uv_loop_t *loop;
        struct http_negotiate_job *job; /* NULL: none runs */
        unsigned logins;                /* that succeeded */
        char *cookie;                   /* "name=value; ...", of the last one; NULL: none */
        void (*on_done)(void *userdata, const struct store_failure *failure);
        void *userdata;
};

/* How the server is reached: as for all other requests. Borrowed for the call. */
struct http_negotiate_way {
        const char *url; /* of what needs a login */
        const char *ca_bundle, *proxy, *exempt;
        bool insecure;
        unsigned timeout_ms;
};

/* on_done follows each http_negotiate_start(); class STORE_OK: one is logged in. */
void http_negotiate_init(struct http_negotiate *negotiate, uv_loop_t *loop,
                         void (*on_done)(void *userdata, const struct store_failure *failure),
                         void *userdata);

/* A login that still runs is let go: it ends by itself, without a callback. */
void http_negotiate_deinit(struct http_negotiate *negotiate);

/* Logs in, unless that is under way. -errno. */
int http_negotiate_start(struct http_negotiate *negotiate, const struct http_negotiate_way *way);
