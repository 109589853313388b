/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi handle on the loop: libcurl says which sockets and which timeout it wants watched,
 * libuv watches them, and after each call into libcurl the owner looks what has come of it. Loop
 * thread.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <uv.h>

struct curl_loop_socket;

struct curl_loop {
        uv_loop_t *loop;
        CURLM *multi;                      /* NULL: none yet, or no more */
        struct curl_loop_socket **sockets; /* by descriptor */
        size_t socket_space;
        uv_timer_t timer;
        unsigned open_handles;
        bool closing;
        /* After a call into libcurl. It may do anything, also close this. */
        void (*on_turn)(void *userdata);
        /* True if the easy handle's connection has brought an answer. */
        bool (*is_established)(CURL *easy);
        void (*on_closed)(void *userdata);
        void *userdata;
};

void curl_loop_init(struct curl_loop *curl, uv_loop_t *loop, void (*on_turn)(void *userdata),
                    bool (*is_established)(CURL *easy), void *userdata);

/* Makes the multi handle, unless there is one. -ENOMEM. */
int curl_loop_open(struct curl_loop *curl);

/* For each easy handle: its sockets are closed here. */
void curl_loop_adopt(struct curl_loop *curl, CURL *easy);

/* Ends the multi handle and all idle connections. No easy handle may be in it. */
void curl_loop_drop(struct curl_loop *curl);

/* As curl_loop_drop(); on_closed comes when no handle is left. */
void curl_loop_close(struct curl_loop *curl, void (*on_closed)(void *userdata));
