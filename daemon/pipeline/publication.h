/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing: an extent of new bytes becomes the next block of its file, and everybody learns of
 * it. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/*
 * A DECODER_EXTENT of the feed's task. Without memory for it the feed is marked as broken, and goes
 * back to the last published block when the task is done.
 */
void publication_add(struct feed *feed, const struct decoder_event *event);
