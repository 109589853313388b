/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests over HTTP/1.1, ranged GETs above all: libcurl's multi interface on the loop, for one endpoint. Names are
 * resolved here (libcurl would start a thread for each transfer), connections are kept and reused,
 * deadlines are on progress and never on the total. Loop thread; nothing is called back from inside
 * a call of the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/store/http_answer.h"
#include "daemon/store/http_url.h"
#include "daemon/store/store.h"

struct http_client;
struct http_request;

struct http_client_options {
        unsigned connect_ms; /* 3000; name resolution not counted */
        /* 2000: from the request to the answer; or eight times the median, if that is more */
        unsigned first_byte_ms;
        unsigned progress_ms; /* 5000: between two bytes */
        unsigned idle_ms;     /* 60000: without a request; then connections are closed */
        bool insecure;        /* certificates are not checked: for those who asked for it */
        bool no_proxy;        /* whatever the environment says */
        bool no_credentials;  /* neither those of the URL nor of netrc: requests bring their own */
        /* What proves who asks, beside those; paths, borrowed until the client is there. NULL: none */
        const char *bearer_file;        /* with a token, read again when it changes */
        const char *client_certificate; /* PEM, for https */
        const char *client_key;         /* of it, PEM; NULL: it is in the same file */
        /*
         * A server that asks for SPNEGO gets it. on_login, which may be NULL, is told when it took a
         * ticket; from then on the claim is left out of queries, as the ticket says who asks.
         */
        bool negotiates;
        const char *claim; /* "&name=value"; NULL: none */
        void (*on_login)(void *userdata);
        void *login_userdata;
};

extern const struct http_client_options http_client_defaults;

/* What is asked. Everything in it is borrowed for the call that takes it. */
struct http_query {
        const char *method;         /* NULL: GET */
        const char *target;         /* what follows the host: an encoded path and perhaps a query */
        uint64_t begin, size_bytes; /* [begin, begin + size_bytes) is wanted; size 0: all */
        const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
        const void *body;           /* NULL: none */
        size_t body_size;
        bool no_redirects; /* the answer that redirects is given as it is */
};

struct http_handler {
        /*
         * A header of the answer, or of a redirect before it, without spaces around name and value.
         * NULL if nobody cares. It runs inside of libcurl, as on_body.
         */
        void (*on_header)(void *userdata, const char *name, size_t name_size, const char *value,
                          size_t value_size);
        /*
         * A piece of the body; the answer's headers are known. False: no more of it is wanted,
         * which fails the request. It runs inside of libcurl: nothing of this module may be called.
         */
        bool (*on_body)(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                        size_t size);
        /* After one or more pieces of the body, and not inside of libcurl. NULL if nobody cares. */
        void (*on_turn)(void *userdata);
        /*
         * Last call. transport's class is STORE_OK if the answer came whole, whatever its status
         * is.
         */
        void (*on_done)(void *userdata, const struct http_answer *answer,
                        const struct store_failure *transport);
};

/*
 * A client for the server that the URL names (borrowed, it must outlive the client): its user and
 * password are used, and so is a proxy if the environment has one for it. The process must ignore
 * SIGPIPE. -ENOMEM.
 */
int http_client_new(uv_loop_t *loop, const struct http_url *url,
                    const struct http_client_options *options, struct http_client **ret_client);

/*
 * Requests that still run are dropped without a callback. on_closed comes when no handle is left;
 * the client is freed then.
 */
void http_client_close(struct http_client *client, void (*on_closed)(void *userdata),
                       void *userdata);

/* -ENOMEM. */
int http_client_send(struct http_client *client, const struct http_query *query,
                     const struct http_handler *handler, void *userdata,
                     struct http_request **ret_request);

/*
 * Since when (uv_hrtime()) it waits for its answer: since it had gone out, or was made, while it could
 * not go out. 0: the answer has begun, or the name is not resolved yet.
 */
uint64_t http_request_waits_since_ns(const struct http_request *request);

/* Ends the request without a callback; from inside of on_body, return false instead. */
void http_request_cancel(struct http_request *request);
