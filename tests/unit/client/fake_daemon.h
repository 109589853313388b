/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon for tests of the client: answers on one socket from a thread, and leaves its ring's
 * memory to the test, which plays the daemon's other half (and may play it wrongly) on the client's
 * own thread: what happens when is then not up to the scheduler.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/extent_format.h"
#include "common/ring_format.h"
#include "common/wire.h"

#define FAKE_SEGMENTS 4u
#define FAKE_SEGMENT_BYTES RING_SEGMENT_MIN_BYTES
#define FAKE_SEGMENTS_OFFSET RING_AREA_BYTES
#define FAKE_DATA_BYTES (FAKE_SEGMENTS_OFFSET + FAKE_SEGMENTS * FAKE_SEGMENT_BYTES)

struct fake_daemon {
        int client_fd; /* for hr_connect_fd(), which takes it */
        int server_fd, listen_fd;
        pthread_t thread;

        int fds[3]; /* data, queue, ack */
        uint8_t *data;
        struct ring_super *super;
        struct ring_queue *queue;
        struct ring_ack *ack;
        uint64_t pushed;
        int unsealed; /* which of the fds does not get unsealed_seal; -1: none */
        int unsealed_seal;

        /* What the thread answers; set before the call. JSON texts. */
        const char *hello, *series, *subscribe_error, *payload_error;
        bool sends_no_fds;
        const uint8_t *payload; /* an extent */
        uint32_t payload_bytes;
        bool is_payload_inline;
        char *last_subscribe; /* its params; the test frees it */

        /* What the thread saw. */
        atomic_uint wakes, acks;
        atomic_ullong acked; /* of `ack` */
        int stop_fds[2];
};

/* Makes the ring with an empty queue, and the socket. */
void fake_daemon_init(struct fake_daemon *fake);

/* Seals the memory as the daemon does, and starts to answer. */
void fake_daemon_start(struct fake_daemon *fake);

/* As fake_daemon_start(), for the first client that connects at the path. */
void fake_daemon_listen(struct fake_daemon *fake, const char *path);

void fake_daemon_stop(struct fake_daemon *fake); /* the thread; the socket is closed with it */
void fake_daemon_deinit(struct fake_daemon *fake);

/* Puts an entry behind the last one and shows it. No wake frame. */
void fake_daemon_push(struct fake_daemon *fake, const struct ring_entry *entry);

/* Puts an extent at the segment's start and returns an entry for all of it. */
struct ring_entry fake_daemon_place(struct fake_daemon *fake, uint32_t segment, const void *extent,
                                    uint64_t size_bytes);

/* Sends frames of its own on the server's side. */
void fake_daemon_send(struct fake_daemon *fake, enum wire_type type, uint16_t flags,
                      const void *body, size_t size);

#define FAKE_EXTENT_BYTES 4096u

/*
 * What a made extent holds: scalars "loss" (series 0) and "acc" (series 1) in turn, with steps 0,
 * 1, ... and value step / 2.
 */
struct fake_extent {
        const char *run, *path;
        uint64_t source_id, file_id, file_version;
        uint32_t record_count;
        uint32_t again_at; /* > 0: "loss" has a plugin only from this record on (row 2) */
};

/* Writes an extent by hand into memory of FAKE_EXTENT_BYTES, 64-byte aligned. Returns its size. */
uint64_t fake_extent_write(void *memory, const struct fake_extent *fake);

/*
 * An extent with one record, tensor `t` of two floats {1.5, -2}: inline, or marked external and
 * without payload.
 */
uint64_t fake_extent_write_tensor(void *memory, const struct fake_extent *fake, bool is_external);
