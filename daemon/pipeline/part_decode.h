/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts through the decoders: in file order, one at a time for each file. A record that a part cuts
 * is bridged: its head is carried over, as much of the next part is put behind it as the record
 * needs, and decoding goes on in the next part's own buffer behind it. So the bytes of a part are
 * never moved, except for what lies across a border.
 *
 * At rest (no part under way, none with a decoder) nothing is carried: what was left over is read
 * again when there is more. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/* Goes on with the first part, if it has arrived and no decoder is busy with the file. */
void part_decode_advance(struct feed *feed);

/* The feed's task has news (struct decoder_task, on_event). */
void part_decode_on_task(struct decoder_task *task, const struct decoder_event *event);

/* Forgets what was carried over, unless a decoder reads it. */
void part_decode_drop_carry(struct feed *feed);
