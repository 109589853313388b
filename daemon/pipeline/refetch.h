/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching an absent block again: exactly its range is read, and must give exactly its extent. If
 * it does not, or cannot be read, the source is listed and it is tried again; after three tries the
 * block is lost. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/* True if it is absent, and neither under way nor lost. */
bool refetch_is_wanted(const struct block *block);

/* True but while a block that could not be fetched waits for its source's next listing. */
bool refetch_is_due(const struct block *block);

/*
 * Results as part_issue(): 0, FEED_E_WINDOW, FEED_E_ROOM, -ENOMEM. The block is absent and has no
 * job.
 */
int refetch_start(struct feed *feed, struct block *block, uint64_t room_bytes,
                  struct reader *charged);

/* Cancels all of a feed; those that a decoder has end when it is done. */
void refetch_drop_all(struct feed *feed);
