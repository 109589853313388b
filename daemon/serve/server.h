/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: the listener, everybody who is connected, and what is told to them without being
 * asked. Loop thread.
 *
 * It listens to the pipeline's events (pipeline_listen) for notifications and for the log.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/core/list.h"
#include "daemon/pipeline/pipeline.h"

struct server;

#define SERVER_CONNECTIONS_MOST 1024u

struct server_options {
        /* where to listen (common/socket_path.h); NULL: a private daemon */
        const char *socket_path;
        /* of a private daemon: a connected socket, taken on failure too; else -1 */
        int socket_fd;
        const char *version;     /* "headraced 0.1.0" */
        uint64_t settings_id;    /* common/settings_id.h */
        uint64_t inflight_bytes; /* the budget, for `status` */
        /* count 0: whoever the socket's mode lets in; else these, root and our own */
        const uid_t *allow_uids;
        size_t allow_uid_count;
        /* who may add and remove sources besides root and us, and below which URLs (NULL: all) */
        const uid_t *admin_uids;
        size_t admin_uid_count;
        char *const *allow_sources; /* borrowed, ends with NULL */
        unsigned connections_max;   /* 0: SERVER_CONNECTIONS_MOST */
        /* the private socket's client has gone: time to exit. From the loop */
        void (*on_end)(void *userdata);
        void *userdata;
};

/*
 * Starts to serve. Strings and lists of options are copied. Outcomes and *ret_error as
 * listener_new() (daemon/serve/listener.h): LISTENER_E_RUNNING (1) where another daemon has the
 * path.
 */
int server_new(uv_loop_t *loop, struct pipeline *pipeline, const struct server_options *options,
               struct server **ret_server, char **ret_error);

/*
 * Stops listening, closes every connection and frees the readers; on_closed follows, from the loop,
 * when no handle is left. The server is freed then. To be called before pipeline_close().
 */
void server_close(struct server *server, void (*on_closed)(void *userdata), void *userdata);

/* For the files of daemon/serve. */
struct pipeline *server_pipeline(struct server *server);
const struct server_options *server_options(const struct server *server);
struct list *server_peers(struct server *server); /* struct peer */
uint64_t server_next_session(struct server *server);
uint64_t server_uptime_ns(const struct server *server);
void server_peer_gone(struct server *server, bool was_private);
