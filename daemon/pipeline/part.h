/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts: the reads of a file's new bytes, in file order. What arrives is looked at once, in order:
 * is it still the same file, does it go on where the last one ended? Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/* The first part that is under way or not used up; NULL: there is none. */
struct job *part_first(const struct feed *feed);

/*
 * Asks for the next bytes: as many as fit room_bytes of the ring by the file's ratio, but at least
 * one record. charged (may be NULL) is the reader whose quota pays. 0, FEED_E_WINDOW, FEED_E_ROOM,
 * FEED_E_BUSY; -ENOMEM.
 */
int part_issue(struct feed *feed, uint64_t room_bytes, struct reader *charged);

/*
 * Whoever waits until all is loaded keeps nothing: when nothing is under way, the next record goes
 * out, however large it is.
 */
bool part_waiter_pays(const struct pipeline *pipeline);

/* What its parts will fill of the ring. */
uint64_t part_committed_bytes(const struct feed *feed);

/* The file ends with the part that has arrived, as far as is known. */
bool part_is_at_end(const struct feed *feed, const struct job *job);

/* Where the bytes begin that the first part holds, with what was carried over to it. */
uint64_t part_held_offset(const struct feed *feed);

/* Sends the request of a part. 0, FEED_E_WINDOW, -ENOMEM. */
int part_send(struct job *job);

/* Looks at a part that has arrived, once. False: the feed has gone on without it. */
bool part_accept(struct feed *feed, struct job *job);

/* Gives up what is under way and asks again from what is needed next. */
void part_ask_again(struct feed *feed);

/* Ends a part; one that a decoder has ahead of its turn, when that is done. */
void part_end(struct job *job);

/* Ends all parts, but for one whose bytes a decoder reads; nothing is paused any more. */
void part_drop_all(struct feed *feed);
