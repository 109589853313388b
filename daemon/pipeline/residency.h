/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which blocks lie in which segment, who still needs them, and which segment a decoder gets next
 * (docs/RING.md, "Recycling").
 */
#pragma once

#include "daemon/pipeline/pipeline_state.h"

struct block;
struct reader;

int residency_init(struct pipeline *pipeline); /* -ENOMEM */
void residency_deinit(struct pipeline *pipeline);

/* The block's extent lies there now; readers that want it count it as needed. */
void residency_add(struct pipeline *pipeline, struct block *block, uint32_t segment,
                   uint32_t offset_bytes);

/* The block's memory is given up (its file was replaced or is gone, or its segment is recycled). */
void residency_remove(struct pipeline *pipeline, struct block *block);

/* Keeps the decoders' stock of segments full: never used ones first, then by recycling. */
void residency_grant(struct pipeline *pipeline);

/*
 * Bytes of the ring that a job may count on: segments never used, and, for readers and waiters,
 * closed ones without pins that `reader` (may be NULL) does not need and no other reader needs
 * within its read-ahead; less what is committed.
 */
uint64_t residency_room(struct pipeline *pipeline, struct reader *reader);

/*
 * Likewise, but segments that no reader needs at all: for blocks that are fetched again beyond
 * everybody's read-ahead. Were it enough that nobody needs them soon, two readers of which each
 * wants a ring would take turns in throwing the other's blocks out.
 */
uint64_t residency_room_unneeded(const struct pipeline *pipeline);

uint64_t residency_room_unused(const struct pipeline *pipeline);
