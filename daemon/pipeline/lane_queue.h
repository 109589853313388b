/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a reader's hungry lanes may ask for bytes: by urgency, and the lanes of one
 * urgency in turns (deficit round robin: Shreedhar and Varghese, "Efficient Fair Queuing using
 * Deficit Round-Robin", 1995), in each round those first whose files changed last. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/heap.h"
#include "daemon/core/list.h"

/* Why a lane is hungry, most urgent first. */
enum lane_urgency {
        LANE_AWAITED,  /* the client waits for it: its cursor is there, or it has said so */
        LANE_GROWS,    /* more of what had been read */
        LANE_NEW,      /* nothing or not all of it was ever read */
        LANE_BACKFILL, /* blocks that left the ring */
};

struct lane_place {
        struct heap_node node; /* in the queue */
        struct list aside;     /* in queue->aside instead: its turn has come in vain */
        enum lane_urgency urgency;
        uint64_t round;      /* turns that it has had, or been queued too late for */
        int64_t changed_ns;  /* mtime of its newest file when it was queued */
        uint64_t serial;     /* of its queueing */
        uint64_t turn_bytes; /* asked for in this turn */
};

struct lane_queue {
        struct heap heap;
        struct list aside;
        uint64_t round;  /* of the lane that was first last */
        uint64_t serial; /* of the last one that was queued */
};

void lane_queue_init(struct lane_queue *queue);
void lane_place_init(struct lane_place *place);

/* Queues it, or moves it forward if it is more urgent now. changed_ns may be INT64_MIN. */
void lane_queue_add(struct lane_queue *queue, struct lane_place *place, enum lane_urgency urgency,
                    int64_t changed_ns);

void lane_queue_remove(struct lane_queue *queue, struct lane_place *place);

/* It can do nothing with its turn now: it is passed over until all who were are put back. */
void lane_queue_put_aside(struct lane_queue *queue, struct lane_place *place);
void lane_queue_put_back(struct lane_queue *queue);

/* Whose turn it is; NULL: nobody is hungry. */
struct lane_place *lane_queue_first(struct lane_queue *queue);

/*
 * The first one has asked for so many bytes of the ring. True: its turn is over, and it stands behind
 * all of its urgency. It goes on for ever while nobody else is queued.
 */
bool lane_queue_spend(struct lane_queue *queue, struct lane_place *place, uint64_t bytes,
                      uint64_t turn_bytes_most);
