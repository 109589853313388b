/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts through the decoders: in file order, one at a time for each file. A record that a part cuts
 * is bridged: its head is carried over, as much of the next part is put behind it as the record
 * needs, and decoding goes on in the next part's own buffer behind it. So the bytes of a part are
 * never moved, except for what lies across a border.
 *
 * A decoder makes no more of a part than the quota holds that pays for it; inside of a TFRecord, no
 * more than the ring had room for. Then it is paused, and its bytes are held (hold.h).
 *
 * At rest (no part under way, none with a decoder) nothing is carried: what was left over is read
 * again when there is more. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/* Goes on with the first part, if it has arrived and no decoder is busy with the file. */
void part_decode_advance(struct feed *feed);

/*
 * Goes on with a part whose decoding is paused, until what it makes fills about room_bytes of the
 * ring. charged (may be NULL) is the reader whose quota pays. 0; FEED_E_ROOM: that is less than a
 * segment.
 */
int part_decode_resume(struct feed *feed, uint64_t room_bytes, struct reader *charged);

/* The feed's task has news (struct decoder_task, on_event). */
void part_decode_on_task(struct decoder_task *task, const struct decoder_event *event);

/* Forgets what was carried over, unless a decoder reads it. */
void part_decode_drop_carry(struct feed *feed);
