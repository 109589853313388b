/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/curl_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/core/fd_limit.h"

struct curl_loop_socket {
        uv_poll_t poll;
        struct curl_loop *curl;
        curl_socket_t fd;
        int events;   /* what is watched now */
        bool resting; /* curl does not look at it: an idle connection */
};

/* ---- Sockets ---- */

static void maybe_closed(struct curl_loop *curl) {
        if (curl->open_handles > 0)
                return;
        free(curl->sockets);
        curl->sockets = NULL;
        curl->on_closed(curl->userdata);
}

static void on_socket_closed(uv_handle_t *handle) {
        struct curl_loop_socket *socket = handle->data;
        struct curl_loop *curl = socket->curl;

        free(socket);
        curl->open_handles--;
        maybe_closed(curl);
}

static void on_socket_event(uv_poll_t *poll, int status, int events) {
        struct curl_loop_socket *socket = poll->data;
        struct curl_loop *curl = socket->curl;
        int flags = 0, running;

        if (socket->resting) {
                /*
                 * The server closed an idle connection, or talks without being asked. libcurl sees
                 * it when it wants it again.
                 */
                uv_poll_stop(poll);
                socket->events = 0;
                return;
        }
        if (status < 0) {
                /*
                 * libuv 1.44 says EBADF for POLLERR, and has stopped watching. CURL_CSELECT_ERR
                 * would drop what still lies in the socket and hide why it failed; a read tells
                 * both.
                 */
                socket->events = 0;
                flags = CURL_CSELECT_IN | CURL_CSELECT_OUT;
        }
        if (events & UV_READABLE)
                flags |= CURL_CSELECT_IN;
        if (events & UV_WRITABLE)
                flags |= CURL_CSELECT_OUT;
        curl_multi_socket_action(curl->multi, socket->fd, flags, &running);
        curl->on_turn(curl->userdata);
}

static int make_socket(struct curl_loop *curl, curl_socket_t fd,
                       struct curl_loop_socket **ret_socket) {
        struct curl_loop_socket *socket;

        if ((size_t)fd >= curl->socket_space) {
                size_t space = align_up((uint64_t)fd + 1, 256);
                struct curl_loop_socket **sockets = realloc(curl->sockets,
                                                            space * sizeof(*sockets));

                if (!sockets)
                        return -ENOMEM;
                memset(sockets + curl->socket_space, 0,
                       (space - curl->socket_space) * sizeof(*sockets));
                curl->sockets = sockets;
                curl->socket_space = space;
        }
        socket = calloc(1, sizeof(*socket));
        if (!socket || uv_poll_init(curl->loop, &socket->poll, fd) < 0) {
                free(socket);
                return -ENOMEM;
        }
        socket->poll.data = socket;
        socket->curl = curl;
        socket->fd = fd;
        curl->open_handles++;
        curl->sockets[fd] = socket;
        *ret_socket = socket;
        return 0;
}

/* Nothing is watched any more; the descriptor may be closed already. */
static void drop_socket(struct curl_loop *curl, struct curl_loop_socket *socket) {
        curl->sockets[socket->fd] = NULL;
        uv_close((uv_handle_t *)&socket->poll, on_socket_closed);
}

/*
 * libcurl lets go of a socket at the end of each request and takes it again at the next one. It
 * stays watched in between, which saves two system calls for each request. Not one that is still
 * connecting: libcurl 7.88 closes such a socket without on_curl_close(), before it says
 * CURL_POLL_REMOVE.
 */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *unused) {
        struct curl_loop *curl = userdata;
        struct curl_loop_socket *socket = (size_t)fd < curl->socket_space ? curl->sockets[fd]
                                                                          : NULL;
        int events = (what & CURL_POLL_IN ? UV_READABLE : 0) |
                     (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

        (void)unused;
        if (what == CURL_POLL_REMOVE) {
                if (socket && curl->is_established(easy))
                        socket->resting = true;
                else if (socket)
                        drop_socket(curl, socket);
                return 0;
        }
        if (!socket && make_socket(curl, fd, &socket) < 0)
                return -1;
        socket->resting = false;
        if (socket->events != events) {
                socket->events = events;
                if (uv_poll_start(&socket->poll, events, on_socket_event) < 0)
                        return -1;
        }
        return 0;
}

/* The poll handle must go before its descriptor: libuv aborts on a closed one. */
static int on_curl_close(void *userdata, curl_socket_t fd) {
        struct curl_loop *curl = userdata;
        struct curl_loop_socket *socket = (size_t)fd < curl->socket_space ? curl->sockets[fd]
                                                                          : NULL;

        if (socket)
                drop_socket(curl, socket);
        return close(fd);
}

static void on_curl_timeout(uv_timer_t *timer) {
        struct curl_loop *curl = timer->data;
        int running;

        curl_multi_socket_action(curl->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        curl->on_turn(curl->userdata);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *userdata) {
        struct curl_loop *curl = userdata;

        (void)multi;
        if (curl->closing)
                return 0;
        if (timeout_ms < 0)
                uv_timer_stop(&curl->timer);
        else
                uv_timer_start(&curl->timer, on_curl_timeout, (uint64_t)timeout_ms, 0);
        return 0;
}

/* ---- Life ---- */

void curl_loop_init(struct curl_loop *curl, uv_loop_t *loop, void (*on_turn)(void *userdata),
                    bool (*is_established)(CURL *easy), void *userdata) {
        *curl = (struct curl_loop){ .loop = loop,
                                    .open_handles = 1,
                                    .on_turn = on_turn,
                                    .is_established = is_established,
                                    .userdata = userdata };
        uv_timer_init(loop, &curl->timer);
        curl->timer.data = curl;
}

int curl_loop_open(struct curl_loop *curl) {
        if (curl->multi)
                return 0;
        curl->multi = curl_multi_init();
        if (!curl->multi)
                return -ENOMEM;
        curl_multi_setopt(curl->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
        curl_multi_setopt(curl->multi, CURLMOPT_SOCKETDATA, curl);
        curl_multi_setopt(curl->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
        curl_multi_setopt(curl->multi, CURLMOPT_TIMERDATA, curl);
        curl_multi_setopt(curl->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
        /* Connections are dropped when a burst drains unless the cache can hold all of them. */
        curl_multi_setopt(curl->multi, CURLMOPT_MAXCONNECTS, (long)fd_limit_for_connections());
        return 0;
}

void curl_loop_adopt(struct curl_loop *curl, CURL *easy) {
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_curl_close);
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, curl);
}

void curl_loop_drop(struct curl_loop *curl) {
        uv_timer_stop(&curl->timer);
        if (curl->multi)
                curl_multi_cleanup(curl->multi);
        curl->multi = NULL;
}

static void on_timer_closed(uv_handle_t *handle) {
        struct curl_loop *curl = handle->data;

        curl->open_handles--;
        maybe_closed(curl);
}

void curl_loop_close(struct curl_loop *curl, void (*on_closed)(void *userdata)) {
        curl->closing = true;
        curl->on_closed = on_closed;
        curl_loop_drop(curl);
        uv_close((uv_handle_t *)&curl->timer, on_timer_closed);
}
