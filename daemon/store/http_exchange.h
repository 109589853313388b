/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small request to any URL, with its whole answer in memory: what metadata servers and token
 * endpoints are asked. It has a client of its own, which ends with it. Loop thread; nothing is
 * called back from inside a call of the caller's.
 */
#pragma once

#include <stddef.h>
#include <uv.h>

#include "daemon/store/store.h"

#define HTTP_EXCHANGE_MOST_BYTES (1u << 20) /* of an answer; a longer one is a failure */

struct http_exchange;

/* Everything in it is borrowed for the call that takes it. */
struct http_exchange_query {
        const char *url;
        const char *method;         /* NULL: GET */
        const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
        const void *body;           /* NULL: none */
        size_t body_size;
        unsigned timeout_ms;  /* of each try, between two signs of life; 0: 5000 */
        unsigned deadline_ms; /* of all tries together, whatever comes meanwhile; 0: 30000 */
        unsigned tries;       /* after failures of transport, 429 and 5xx; 0: 4 */
        unsigned backoff_ms;  /* bound of the wait before the second try (backoff.h); 0: 200 */
        bool no_proxy;        /* a server of this machine or link, which no proxy can reach */
        /* counts each request that is sent; it must live as long as the exchange. NULL: nobody */
        uint64_t *requests;
};

/* Borrowed for the callback. */
struct http_exchange_answer {
        struct store_failure failure; /* class STORE_OK: an answer came, whatever its status is */
        long status;
        const char *body; /* NUL-terminated; it may hold other NULs */
        size_t body_size;
};

/*
 * on_done is the last call: the exchange is over then, and must not be cancelled any more. -EINVAL:
 * not an http or https URL; -ENOMEM. Redirects are not followed: what is asked for are secrets.
 */
int http_exchange_start(uv_loop_t *loop, const struct http_exchange_query *query,
                        void (*on_done)(void *userdata, const struct http_exchange_answer *answer),
                        void *userdata, struct http_exchange **ret_exchange);

/* Ends it without a callback. Its handles are closed in the next turns of the loop. */
void http_exchange_cancel(struct http_exchange *exchange);
