/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damage is not believed at first: on fresh bytes the network may have lied, or the writer may be in
 * the middle of a page. Where a decoder meets it, the rest of its part is read again (the ticket is
 * given up first; the bytes before it are repeated, to see that the file was not written over), and
 * damage is believed when both reads agree; where a length or zeros are wrong in
 * a file that was changed lately, after a back-off and a third read. Bytes that agreed are believed
 * as a whole, so a part is read again once, however much in it is damaged. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/* The feed's task has ended with STAGE_DOUBT: believes what it met, or has it read again. */
void reread_doubt(struct feed *feed);

/* No part of the feed is under way any more. */
void reread_drop(struct feed *feed);

/* Sends the reads whose time has come, as far as there is room for them. */
void reread_start_due(struct pipeline *pipeline);

void reread_init(struct pipeline *pipeline);

/* Part of closing the pipeline: pipeline_part_closed() when it is done. */
void reread_close(struct pipeline *pipeline);
