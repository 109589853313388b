/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: the stream of entries to one client, between a reader of the pipeline and a
 * connection. One of two transports (docs/PROTOCOL.md): `map`, a queue in shared memory, or
 * `inline`, extent frames on the socket, written from the ring's memory. Loop thread.
 *
 * What the client acknowledges is a claim: it is checked against what was pushed, and a wrong one
 * ends this connection only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/reader.h"
#include "daemon/serve/connection.h"

struct session;

enum session_transport { SESSION_MAP, SESSION_INLINE };

#define SESSION_INLINE_ENTRIES 64u /* not acknowledged, at most */
#define SESSION_FDS 3              /* of `map`: data, queue, ack */

/*
 * Begins a stream; deliveries come from the loop, never from inside. ret_fds are the caller's (all
 * -1 for inline). -errno; READER_E_NO_ROOM with the ring size that would do.
 */
int session_new(struct pipeline *pipeline, struct connection *connection, uint64_t number,
                enum session_transport transport, const struct reader_options *options,
                struct session **ret_session, int ret_fds[SESSION_FDS], uint64_t *ret_ring_bytes);

/*
 * Ends the stream and drops its pins; the connection must not hold extents of it any more. NULL is
 * taken; returns NULL.
 */
struct session *session_free(struct session *session);

/*
 * The client sent a wake frame, or connection_soon() was asked for: looks at what it acknowledged.
 */
void session_wake(struct session *session);

/*
 * The client said by a message how many entries it has done with. From then on its page is not
 * looked at.
 */
void session_acknowledge(struct session *session, uint64_t position);

/* As reader_prioritize(). */
int session_prioritize(struct session *session, const char *const *runs, size_t count);

uint64_t session_number(const struct session *session);
enum session_transport session_transport(const struct session *session);
const char *session_transport_name(enum session_transport transport);
void session_status(const struct session *session, struct reader_status *ret_status);
