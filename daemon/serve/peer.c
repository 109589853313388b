/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/peer.h"

#include <errno.h>

#include "common/base.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/server.h"

static void on_ask(void *userdata) {
        const struct peer *peer = userdata;

        pipeline_ask(server_pipeline(peer->server));
}

static void on_json(void *userdata, const char *text, size_t size) {
        struct peer *peer = userdata;
        bool framed = connection_is_framed(peer->connection);
        struct rpc_caller caller = { .framed = framed, .greeted = peer->greeted, .on_ask = on_ask };
        json_t *reply;

        if (!framed && size == 0)
                return; /* an empty line */
        reply = rpc_dispatch(methods, method_count, caller, peer, text, size);
        if (reply)
                connection_send_json(peer->connection, reply, NULL, 0);
}

static void on_wake(void *userdata) {
        struct peer *peer = userdata;

        if (peer->session)
                session_wake(peer->session);
}

static void on_soon(void *userdata) {
        struct peer *peer = userdata;

        if (peer->session)
                session_wake(peer->session);
        methods_start_reads(peer);
}

static void finish_if_idle(struct peer *peer) {
        if (peer->input_ended && !peer->call_count)
                connection_finish(peer->connection);
}

static void on_input_end(void *userdata) {
        struct peer *peer = userdata;

        peer->input_ended = true;
        finish_if_idle(peer);
}

static void on_closed(void *userdata) {
        struct peer *peer = userdata;
        struct server *server = peer->server;
        bool is_private = peer->is_private;

        list_for_each(node, &peer->calls) peer_call_free(list_owner(node, struct peer_call, link));
        session_free(peer->session);
        list_remove(&peer->link);
        free(peer);
        server_peer_gone(server, is_private);
}

static const struct connection_operations operations = {
        .on_json = on_json,
        .on_wake = on_wake,
        .on_soon = on_soon,
        .on_input_end = on_input_end,
        .on_closed = on_closed,
};

int peer_new(struct server *server, uv_loop_t *loop, int take_fd, uid_t uid, pid_t pid,
             bool is_private) {
        CLEANUP(close_fdp) int fd = take_fd;
        CLEANUP(freep) struct peer *peer = calloc(1, sizeof(*peer));
        int r;

        if (!peer)
                return -ENOMEM;
        peer->server = server;
        peer->uid = uid;
        peer->pid = pid;
        peer->is_private = is_private;
        list_init(&peer->calls);
        r = connection_new(loop, steal_fd(&fd), &operations, peer, &peer->connection);
        if (r)
                return r;
        list_append(server_peers(server), &peer->link);
        steal_pointer(&peer);
        return 0;
}

int peer_call_new(struct rpc_call *rpc, struct peer_call **ret_call) {
        struct peer *peer = rpc->userdata;
        struct peer_call *call;

        if (peer->call_count >= PEER_CALLS_MOST)
                return rpc_fail(rpc, WIRE_E_LIMIT, "more than %d calls wait for their answers",
                                PEER_CALLS_MOST);
        call = calloc(1, sizeof(*call));
        if (!call)
                return -ENOMEM;
        call->peer = peer;
        call->id = json_incref(rpc->id);
        list_append(&peer->calls, &call->link);
        peer->call_count++;
        *ret_call = call;
        return 0;
}

void peer_call_free(struct peer_call *call) {
        if (call->request)
                pipeline_request_cancel(call->request);
        if (call->kind == PEER_CALL_LOAD)
                call->peer->waiting_loads--;
        call->peer->call_count--;
        list_remove(&call->link);
        json_decref(call->id);
        free(call);
}

void peer_call_answer(struct peer_call *call, json_t *take_message) {
        struct peer *peer = call->peer;

        if (call->id && take_message)
                connection_send_json(peer->connection, take_message, NULL, 0);
        else
                json_decref(take_message);
        call->request = NULL;
        peer_call_free(call);
        finish_if_idle(peer);
}

bool peer_listens(const struct peer *peer) {
        return (peer->session || peer->waiting_loads) && connection_is_open(peer->connection);
}
