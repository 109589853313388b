/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding ahead: while a part is with a decoder, those behind it may be with others, so that one
 * large file keeps all of them busy. Where the first record of a part begins is found by going from
 * header to header through the part before, which costs little beside decoding. It is a guess:
 * damage may come between. What a decoder makes ahead is kept (its segments pinned) until the part's
 * turn has come; if decoding then really goes on at that record, it is taken as it is, as an extent
 * is a function of its bytes alone; else it is thrown away. So it is when the ring has no segment
 * left for a decoder. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/* Gives the parts behind the first one to decoders that have nothing to do. */
void part_ahead_start(struct feed *feed);

/*
 * It is the first part's turn, decoding goes on in it at feed->next. True: it was decoded ahead, or
 * is being so: what there is has been published, the feed is decoding, and on_done comes from the
 * loop or from inside when all is. The feed's own task is then as if it had done that.
 */
bool part_ahead_take(struct feed *feed, struct job *job, bool last,
                     void (*on_done)(struct feed *feed, struct decoder_task *task));

/* Throws away what was made of a part; a decoder that is at it makes the rest for nobody. */
void part_ahead_drop(struct job *job);

/* Likewise of all parts of all files, for want of segments. False: there was nothing. */
bool part_ahead_drop_all(struct pipeline *pipeline);
