/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two small areas of one session: the queue, which only the daemon can write, and the
 * acknowledgement page, which only the client can write (common/ring_format.h, docs/RING.md). Loop
 * thread.
 *
 * Nothing that the client does to its page can hurt: its size is sealed, so a read never faults for
 * good, and every word is read once. What was read is for the caller to check.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/ring_format.h"

struct ring_queue_writer;

/*
 * Makes both areas. The descriptors are the caller's, to be passed to the client and closed: the
 * writer has mapped what it needs. -errno.
 */
int ring_queue_new(uint64_t instance_id, struct ring_queue_writer **ret_writer, int *ret_queue_fd,
                   int *ret_ack_fd);

/* Unmaps; what the client has mapped stays its own. NULL is taken; returns NULL. */
struct ring_queue_writer *ring_queue_free(struct ring_queue_writer *writer);

/*
 * True while one more entry fits, given how many the client has acknowledged (checked: at most what
 * was pushed).
 */
bool ring_queue_has_room(const struct ring_queue_writer *writer, uint64_t acked);

/*
 * Writes an entry behind the last one; there must be room. The client does not see it before
 * ring_queue_flush().
 */
void ring_queue_push(struct ring_queue_writer *writer, const struct ring_entry *entry);

/* Makes what was pushed visible. Returns true if the client sleeps and must be woken. */
bool ring_queue_flush(struct ring_queue_writer *writer);

/*
 * Asks for a wake frame when kick_at entries are acknowledged; returns what is acknowledged now,
 * read after that.
 */
uint64_t ring_queue_set_kick(struct ring_queue_writer *writer, uint64_t kick_at);

/* What the client's page says now: a claim, to be checked by the caller. */
uint64_t ring_queue_acked(const struct ring_queue_writer *writer);

/* Tells the client that nothing more will come. */
void ring_queue_end(struct ring_queue_writer *writer);

/* Entries pushed since the session began. */
uint64_t ring_queue_pushed(const struct ring_queue_writer *writer);
