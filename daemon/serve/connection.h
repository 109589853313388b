/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connected socket: bytes into whole messages, frames into bytes. The first byte decides
 * whether the other side speaks frames or lines (docs/PROTOCOL.md). Knows nothing of methods or
 * sessions. Loop thread.
 *
 * What a client can make it hold is bounded: input by the largest frame; output by not reading on
 * while answers wait, and above CONNECTION_OUTPUT_MOST_BYTES by closing. A connection ends once,
 * through its on_closed, which comes from the loop and never from inside a call; until then every
 * function may be called and does nothing where it makes no sense any more.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/ring_format.h"

#define CONNECTION_OUTPUT_MOST_BYTES (32u << 20)

struct connection;

struct connection_operations {
        void (*on_json)(void *userdata, const char *text, size_t size);
        void (*on_wake)(void *userdata); /* a wake frame */
        /* after connection_soon(), and when no payload waits to be written any more */
        void (*on_soon)(void *userdata);
        /* lines only: no more requests will come, but answers are still read */
        void (*on_input_end)(void *userdata);
        void (*on_closed)(void *userdata); /* the last call; the connection is freed after it */
};

/* Takes the socket, on failure too. -errno. */
int connection_new(uv_loop_t *loop, int take_fd, const struct connection_operations *operations,
                   void *userdata, struct connection **ret_connection);

/* false after _finish() and _fail() */
bool connection_is_open(const struct connection *connection);
bool connection_is_framed(const struct connection *connection); /* false for lines */

/* Sends a message; takes it and the descriptors, which belong to it. */
void connection_send_json(struct connection *connection, json_t *take_message, int *take_fds,
                          unsigned fd_count);

/*
 * As connection_send_json() with one descriptor, of memory of that size: it counts until it is
 * sent.
 */
void connection_send_memory(struct connection *connection, json_t *take_message, int take_fd,
                            uint64_t size_bytes);

/*
 * As connection_send_json(), but drops the message where the client does not read what was sent
 * before.
 */
void connection_notify(struct connection *connection, json_t *take_message);

/*
 * Queues an extent frame: an entry and its image (NULL: none), which stays where it is until it is
 * written or the connection is closed. Goes out with the next connection_flush(). -ENOMEM.
 */
int connection_queue_extent(struct connection *connection, const struct ring_entry *entry,
                            const void *extent);

/* How many of those are not yet written whole. */
uint64_t connection_extents_waiting(const struct connection *connection);

/*
 * Sends an extent of any size that is not in the ring, in frames of at most 1 MiB; takes its
 * memory.
 */
void connection_send_extent(struct connection *connection, const struct ring_entry *entry,
                            void *take_extent, uint64_t size_bytes);

/* Sends a wake frame; behind other frames it waits, at most one. */
void connection_wake(struct connection *connection);

/* Writes what is queued, as far as the socket takes it; the rest follows by itself. */
void connection_flush(struct connection *connection);

/* Calls on_soon from the loop. */
void connection_soon(struct connection *connection);

/* Bytes of connection_send_memory() and _send_extent() that wait to be written. */
uint64_t connection_payload_bytes(const struct connection *connection);

/* Takes no more input, writes what is queued, then closes. */
void connection_finish(struct connection *connection);

/* Sends a JSON-RPC error without an id, then closes as connection_finish(). */
void connection_finish_with_error(struct connection *connection, int code, const char *message);

/* Closes now. */
void connection_fail(struct connection *connection);
