/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables of reader_operations, one for each transport. The reader must not be called from
 * inside of its operations, so what a flush finds acknowledged is handed over in the loop's next
 * turn (connection_soon).
 */
#include "daemon/serve/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/base.h"
#include "daemon/core/log.h"
#include "daemon/publish/ring_queue.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/name.h"
#include "daemon/serve/rpc.h"

struct session {
        struct connection *connection;
        struct reader *reader;
        struct ring_queue_writer *queue; /* NULL for inline */
        uint64_t number;
        uint64_t pushed;
        uint64_t acked;       /* checked */
        uint64_t handed;      /* of it, what the reader was told */
        bool acks_by_message; /* the client's page says nothing */
        bool ended;           /* nothing more is pushed */
};

const char *session_transport_name(enum session_transport transport) {
        static const char *const names[] = { [SESSION_MAP] = "map", [SESSION_INLINE] = "inline" };

        return names[transport];
}

/* The stream cannot go on: says why and closes the connection. */
static void session_break(struct session *session, int code, const char *message) {
        session->ended = true;
        log_warning("session closed", "session=%llu reason=\"%s\"",
                    (unsigned long long)session->number, message);
        connection_finish_with_error(session->connection, code, message);
}

/* What the client's page says, if it may be true; a lie ends the session. */
static uint64_t read_acked(struct session *session) {
        uint64_t claimed = ring_queue_acked(session->queue);

        if (claimed >= session->acked && claimed <= session->pushed)
                return claimed;
        session_break(session, WIRE_E_INVALID,
                      "acked is not between what was acknowledged before and what was sent");
        return session->acked;
}

static void hand_over(struct session *session) {
        if (session->acked == session->handed || session->ended)
                return;
        session->handed = session->acked;
        if (reader_acknowledge(session->reader, session->acked) == -EPROTO)
                session_break(session, WIRE_E_INVALID, "more was acknowledged than was sent");
}

void session_wake(struct session *session) {
        if (!connection_is_open(session->connection))
                return;
        if (session->queue && !session->acks_by_message)
                session->acked = read_acked(session);
        hand_over(session);
}

/* An inline entry that still waits to be written needs its memory: nobody can have done with it. */
static uint64_t sent(const struct session *session) {
        return session->pushed -
               (session->queue ? 0 : connection_extents_waiting(session->connection));
}

void session_acknowledge(struct session *session, uint64_t position) {
        session->acks_by_message = true;
        if (position < session->acked || position > sent(session)) {
                session_break(session, WIRE_E_INVALID,
                              "ack: position is not between the last one and what was sent");
                return;
        }
        session->acked = position;
        hand_over(session);
}

static bool can_push(const struct session *session) {
        return !session->ended && connection_is_open(session->connection);
}

static bool map_has_room(void *userdata) {
        const struct session *session = userdata;

        return can_push(session) && ring_queue_has_room(session->queue, session->acked);
}

static void map_push(void *userdata, const struct ring_entry *entry, const void *extent) {
        struct session *session = userdata;

        (void)extent; /* the client has it mapped */
        ring_queue_push(session->queue, entry);
        session->pushed++;
}

static void map_flush(void *userdata) {
        struct session *session = userdata;

        if (ring_queue_flush(session->queue))
                connection_wake(session->connection);
        if (!session->acks_by_message && ring_queue_acked(session->queue) != session->acked)
                connection_soon(session->connection);
}

/*
 * What is returned counts at once; the reader hears of it once more in the next turn, in case it
 * only compared.
 */
static uint64_t map_set_kick(void *userdata, uint64_t kick_at) {
        struct session *session = userdata;

        ring_queue_set_kick(session->queue, kick_at);
        if (!session->acks_by_message && can_push(session))
                session->acked = read_acked(session);
        if (session->acked != session->handed)
                connection_soon(session->connection);
        return session->acked;
}

static bool inline_has_room(void *userdata) {
        const struct session *session = userdata;

        return can_push(session) && session->pushed - session->acked < SESSION_INLINE_ENTRIES;
}

static void inline_push(void *userdata, const struct ring_entry *entry, const void *extent) {
        struct session *session = userdata;

        session->pushed++;
        if (connection_queue_extent(session->connection, entry, extent)) {
                session->ended = true;
                connection_fail(session->connection);
        }
}

static void inline_flush(void *userdata) {
        struct session *session = userdata;

        connection_flush(session->connection);
}

/* Every acknowledgement is a message, which wakes us anyway. */
static uint64_t inline_set_kick(void *userdata, uint64_t kick_at) {
        const struct session *session = userdata;

        (void)kick_at;
        return session->acked;
}

/* What was delivered stays valid, as its pins do, until the client closes the connection. */
static void source_failed(void *userdata, const struct catalog_source *source) {
        struct session *session = userdata;
        json_t *params = catalog_json_failure(&source->failure);

        session->ended = true;
        name_set(params, "source", source->name, strlen(source->name));
        json_object_set_new(params, "data",
                            json_pack("{s:O}", "code", json_object_get(params, "code")));
        json_object_set_new(params, "code", json_integer(WIRE_E_SOURCE));
        if (session->queue)
                ring_queue_end(session->queue);
        connection_send_json(session->connection, rpc_notification("stream_failed", params), NULL,
                             0);
}

/*
 * The reader has looked at the same claims and found them wrong, or there is no memory for what it
 * has to say.
 */
static void broken(void *userdata, int error) {
        struct session *session = userdata;

        if (session->ended)
                return;
        if (error == -EPROTO)
                session_break(session, WIRE_E_INVALID, "more was acknowledged than was sent");
        else
                session_break(session, WIRE_E_INTERNAL, strerror(-error));
}

static const struct reader_operations operations[] = {
        [SESSION_MAP] = { map_has_room, map_push, map_flush, map_set_kick, source_failed, broken },
        [SESSION_INLINE] = { inline_has_room, inline_push, inline_flush, inline_set_kick,
                             source_failed, broken },
};

static void session_freep(struct session **session) {
        session_free(*session);
}

/* Makes the queue and the three descriptors that the client gets. */
static int open_queue(struct session *session, const struct ring *ring, int ret_fds[SESSION_FDS]) {
        CLEANUP(close_fdp) int data_fd = fcntl(ring_data_fd(ring), F_DUPFD_CLOEXEC, 0);
        struct ring_status status;
        int r;

        if (data_fd < 0)
                return -errno;
        ring_status(ring, &status);
        r = ring_queue_new(status.instance_id, &session->queue, &ret_fds[1], &ret_fds[2]);
        if (!r)
                ret_fds[0] = steal_fd(&data_fd);
        return r;
}

int session_new(struct pipeline *pipeline, struct connection *connection, uint64_t number,
                enum session_transport transport, const struct reader_options *options,
                struct session **ret_session, int ret_fds[SESSION_FDS], uint64_t *ret_ring_bytes) {
        CLEANUP(session_freep) struct session *session = calloc(1, sizeof(*session));
        int fds[SESSION_FDS] = { -1, -1, -1 };
        int r = 0;

        if (!session)
                return -ENOMEM;
        session->connection = connection;
        session->number = number;
        if (transport == SESSION_MAP)
                r = open_queue(session, pipeline_ring(pipeline), fds);
        if (!r)
                r = reader_new(pipeline, options, &operations[transport], session, &session->reader,
                               ret_ring_bytes);
        if (r) {
                for (size_t i = 0; i < SESSION_FDS; i++)
                        close_fdp(&fds[i]);
                return r;
        }
        memcpy(ret_fds, fds, sizeof(fds));
        *ret_session = steal_pointer(&session);
        return 0;
}

struct session *session_free(struct session *session) {
        if (!session)
                return NULL;
        session->reader = reader_free(session->reader);
        if (session->queue)
                ring_queue_end(session->queue);
        session->queue = ring_queue_free(session->queue);
        free(session);
        return NULL;
}

int session_prioritize(struct session *session, const char *const *runs, size_t count) {
        return reader_prioritize(session->reader, runs, count);
}

uint64_t session_number(const struct session *session) {
        return session->number;
}

enum session_transport session_transport(const struct session *session) {
        return session->queue ? SESSION_MAP : SESSION_INLINE;
}

void session_status(const struct session *session, struct reader_status *ret_status) {
        reader_status(session->reader, ret_status);
}
