/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: bytes that stay in their tickets when a decoder is done with them, because the TFRecord in
 * them fills more of the ring than there is to have at a time. Of a part that is read for the first
 * time, decoding is paused; of absent blocks, the read is kept for the block behind. Either way the
 * TFRecord is fetched once, not once a block. A hold lasts while a session that stands in it goes on
 * acknowledging (pipeline_options.hold_ns at most between two); then the tickets are given up, and
 * the rest is read again when somebody wants it. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

void hold_init(struct pipeline *pipeline);

/* The feed holds something from now on. */
void hold_begin(struct feed *feed);

/* It may hold nothing any more. */
void hold_check(struct feed *feed);

/* Part of closing the pipeline: pipeline_part_closed() when it is done. */
void hold_close(struct pipeline *pipeline);
