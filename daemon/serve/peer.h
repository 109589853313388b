/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer: who is at the other end of one connection, and what it has going on: a session, and calls
 * that are answered later. All of it ends with the connection. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/core/list.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/connection.h"
#include "daemon/serve/rpc.h"
#include "daemon/serve/session.h"

struct server;

#define PEER_CALLS_MOST 80 /* that wait for their answers, of one peer */

struct peer {
        struct list link; /* of the server */
        struct server *server;
        struct connection *connection;
        uid_t uid;
        pid_t pid;
        bool is_private; /* the one whose end ends the daemon */
        bool greeted;
        bool input_ended;
        struct session *session; /* NULL: none */
        struct list calls;       /* struct peer_call */
        size_t call_count, waiting_loads;
};

/* A call that is answered later. */
struct peer_call {
        struct list link; /* of the peer, in the order of arrival */
        struct peer *peer;
        json_t *id;                       /* NULL: a notification, not answered */
        struct pipeline_request *request; /* NULL: not yet asked for */
        struct catalog_source *source;    /* reload, wait_loaded: NULL is all */
        enum { PEER_CALL_OTHER, PEER_CALL_LOAD, PEER_CALL_PAYLOAD, PEER_CALL_DAMAGE } kind;
        struct {
                uint64_t file_id, file_version, offset;
                uint32_t index;
                uint32_t most; /* damage: places */
        } place;               /* payload, damage */
};

/* Takes the socket, on failure too. -errno. */
int peer_new(struct server *server, uv_loop_t *loop, int take_fd, uid_t uid, pid_t pid,
             bool is_private);

/*
 * Notes that the call is answered later. *ret_call lives until peer_call_answer(), or ends with the
 * peer. RPC_FAILED, -ENOMEM.
 */
int peer_call_new(struct rpc_call *rpc, struct peer_call **ret_call);

/*
 * Answers and frees it; its request is done or was cancelled. Takes the message:
 * rpc_result(call->id, ...) or rpc_error().
 */
void peer_call_answer(struct peer_call *call, json_t *take_message);

/* Frees it without an answer (the caller answers), cancelling its request. */
void peer_call_free(struct peer_call *call);

/* Notifications are of interest to it. */
bool peer_listens(const struct peer *peer);
