/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload: an external payload is read again and answered as memory or as frames. What one client
 * has going on at once of calls that read is bounded: its further ones wait in its list until their
 * turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/server.h"

#define RUNNING_MOST 4
#define UNWRITTEN_MOST_BYTES (16u << 20)

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Own memory with the extent in it that nobody can change any more. */
static int seal_copy(const void *extent, uint64_t size_bytes, int *ret_fd) {
        unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
        CLEANUP(close_fdp) int fd = memfd_create("headrace-payload", flags | MFD_NOEXEC_SEAL);
        uint64_t written = 0;

        if (fd < 0 && errno == EINVAL)
                fd = memfd_create("headrace-payload", flags);
        if (fd < 0)
                return -errno;
        while (written < size_bytes) {
                ssize_t n = write(fd, (const uint8_t *)extent + written, size_bytes - written);

                if (n < 0 && errno != EINTR)
                        return -errno;
                written += n > 0 ? (uint64_t)n : 0;
        }
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                return -errno;
        *ret_fd = steal_fd(&fd);
        return 0;
}

static bool is_inline(const struct peer *peer) {
        return peer->session && session_transport(peer->session) == SESSION_INLINE;
}

static json_t *describe(const struct peer_call *call, uint64_t size_bytes) {
        return rpc_result(call->id,
                          json_pack("{s:I, s:s}", "size_bytes", (json_int_t)size_bytes, "transport",
                                    is_inline(call->peer) ? "inline" : "map"));
}

static void answer_inline(struct peer_call *call, void *take_extent, uint64_t size_bytes) {
        struct connection *connection = call->peer->connection;
        struct ring_entry entry = {
                .segment = UINT32_MAX,
                .size_bytes = (uint32_t)min_u64(size_bytes, UINT32_MAX),
                .record_count = 1,
                .file_id = call->place.file_id,
                .source_offset = call->place.offset,
        };

        connection_send_json(connection, describe(call, size_bytes), NULL, 0);
        connection_send_extent(connection, &entry, take_extent, size_bytes);
        peer_call_answer(call, NULL);
}

static void answer_memory(struct peer_call *call, void *take_extent, uint64_t size_bytes) {
        CLEANUP(freep) void *extent = take_extent;
        int fd = -1;
        int r = seal_copy(extent, size_bytes, &fd);

        if (r) {
                peer_call_answer(call, rpc_error(call->id, WIRE_E_INTERNAL, strerror(-r), NULL));
                return;
        }
        connection_send_memory(call->peer->connection, describe(call, size_bytes), fd, size_bytes);
        peer_call_answer(call, NULL);
}

json_t *methods_read_error(json_t *id, int error, const struct store_failure *failure) {
        json_t *data, *message;

        if (error < 0)
                return rpc_error(id, WIRE_E_INTERNAL, strerror(-error), NULL);
        if (error == PIPELINE_E_VERSION_GONE)
                return rpc_error(id, WIRE_E_VERSION_GONE, "that version of the file is gone", NULL);
        data = failure ? catalog_json_failure(failure) : NULL;
        message = json_incref(json_object_get(data, "message"));
        if (data)
                json_object_del(data, "message");
        data = rpc_error(id, WIRE_E_UNREADABLE,
                         message && json_string_length(message) ? json_string_value(message)
                                                                : "it cannot be read",
                         data);
        json_decref(message);
        return data;
}

static void on_payload(void *userdata, int error, const struct store_failure *failure,
                       void *take_memory, uint64_t size_bytes) {
        struct peer_call *call = userdata;
        struct peer *peer = call->peer;

        call->request = NULL;
        if (error) {
                peer_call_answer(call, methods_read_error(call->id, error, failure));
        } else if (!call->id || !connection_is_open(peer->connection)) {
                free(take_memory);
                peer_call_answer(call, NULL);
        } else if (is_inline(peer)) {
                answer_inline(call, take_memory, size_bytes);
        } else {
                answer_memory(call, take_memory, size_bytes);
        }
        connection_soon(peer->connection); /* the next one starts from the loop */
}

int methods_start_payload(struct peer_call *call) {
        return pipeline_payload(server_pipeline(call->peer->server), call->place.file_id,
                                call->place.file_version, call->place.offset, call->place.index,
                                on_payload, call, &call->request);
}

void methods_start_reads(struct peer *peer) {
        static int (*const starts[])(struct peer_call * call) = {
                [PEER_CALL_PAYLOAD] = methods_start_payload,
                [PEER_CALL_DAMAGE] = methods_start_damage,
        };
        size_t running = 0;

        list_for_each(node, &peer->calls) {
                struct peer_call *call = list_owner(node, struct peer_call, link);
                int (*start)(struct peer_call *) = starts[call->kind];
                int r = 0;

                if (!start)
                        continue;
                if (running == RUNNING_MOST ||
                    connection_payload_bytes(peer->connection) > UNWRITTEN_MOST_BYTES)
                        return;
                if (!call->request)
                        r = start(call);
                if (r)
                        peer_call_answer(call, methods_read_error(call->id, r, NULL));
                else
                        running++;
        }
}

int methods_payload(struct rpc_call *rpc, json_t **ret_result) {
        struct peer *peer = rpc->userdata;
        uint64_t file_id, file_version, offset, index;
        struct peer_call *call;
        int r = params_id(rpc, "file", &file_id);

        (void)ret_result;
        if (!r)
                r = params_id(rpc, "file_version", &file_version);
        if (!r)
                r = params_u64(rpc, "offset", INT64_MAX, &offset);
        if (!r)
                r = params_u64(rpc, "index", UINT32_MAX, &index);
        if (!r)
                r = peer_call_new(rpc, &call);
        if (r)
                return r;
        call->kind = PEER_CALL_PAYLOAD;
        call->place.file_id = file_id;
        call->place.file_version = file_version;
        call->place.offset = offset;
        call->place.index = (uint32_t)index;
        methods_start_reads(peer);
        return RPC_LATER;
}
