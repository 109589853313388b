/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of the ring (docs/RING.md): checks what the daemon sent, maps it, and takes
 * entries from the queue. Every word that the daemon can write is read once into a local, checked,
 * and the local is used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/ring_format.h"

struct shared_map {
        const uint8_t *data;
        uint64_t data_bytes;
        const struct ring_queue *queue;
        const struct ring_entry *entries;
        struct ring_ack *ack;
        uint64_t queue_bytes, ack_bytes;
        uint64_t segments_offset, segment_bytes, table_offset;
        uint32_t segment_count, entry_count;
        uint64_t tail;  /* as last read */
        uint64_t taken; /* entries given out */
        uint64_t acked;
        const char *problem; /* static; why -EBADF or -EPROTO */
};

/*
 * Maps data, queue and ack fd; they stay the caller's. -EBADF: not a ring that this code can read,
 * or not sealed as it must be so that reading cannot fault (map->problem says which); -errno of
 * mmap(2). On failure there is nothing to close.
 */
int shared_map_open(struct shared_map *map, const int fds[3]);
void shared_map_close(struct shared_map *map); /* one that is all zero, too */

/* Takes the next entry. *ret_extent is NULL for one without an extent. 0; HR_AGAIN; -EPROTO. */
int shared_map_next(struct shared_map *map, struct ring_entry *ret_entry,
                    const uint8_t **ret_extent);

/*
 * Acknowledges everything that was taken. True: the daemon waits for that and wants a wake frame.
 */
bool shared_map_acknowledge(struct shared_map *map);

/* Before sleeping on the socket: asks to be woken. False: entries came meanwhile, do not sleep. */
bool shared_map_sleep(struct shared_map *map);
void shared_map_awake(struct shared_map *map);

/* The daemon ended the session. */
bool shared_map_is_closed(const struct shared_map *map);
