/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching an absent block again: exactly its range is read, and must give exactly its extent. If
 * it does not, or cannot be read, the block is lost. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/*
 * Results as part_issue(): 0, FEED_E_WINDOW, FEED_E_ROOM, -ENOMEM. The block is absent and has no
 * job.
 */
int refetch_start(struct feed *feed, struct block *block, uint64_t room_bytes,
                  struct reader *charged);

/* Cancels all of a feed; those that a decoder has end when it is done. */
void refetch_drop_all(struct feed *feed);
