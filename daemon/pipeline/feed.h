/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A feed: one event file on its way through the straight line. It asks for the file's bytes in
 * parts, hands them to the decoders in order (what a part leaves over is bridged to the next),
 * publishes the blocks that come back, fetches absent blocks again, and follows what the listing
 * says of the file: grown, replaced, gone. Loop thread.
 */
#pragma once

#include "daemon/pipeline/block.h"
#include "daemon/pipeline/job.h"
#include "daemon/pipeline/pipeline_state.h"

/* Bytes that look damaged and are read again (reread.h). */
struct reread {
        struct list node; /* in pipeline->rereading until the read is sent */
        uint64_t due_ns;
        uint64_t begin, end; /* of what was read before, and */
        uint32_t crc32c;     /* of that */
        unsigned tries;      /* of this place; 0: nothing is in doubt */
        unsigned agreed;     /* reads in a row that were the same */
};

/* What a feed has only while something of it is under way: most feeds rest. */
struct feed_work {
        struct feed *feed;
        struct list parts;          /* jobs that read new bytes, in file order */
        struct list leaving;        /* of them, those that were given up while a decoder has them */
        struct list refetches;      /* jobs that read absent blocks again */
        struct list kept;           /* of them, those that are done and whose bytes are held */
        struct block_file identity; /* borrows the names of the catalog */
        struct decoder_task task;   /* decodes the parts, one after the other */
        struct reread reread;
        uint64_t need_bytes; /* the item at next is at least that long */
        /* bytes that the parts before have left over, and as many of the next part as were tried */
        uint8_t *carry;
        uint64_t carry_offset, carry_bytes, carry_space;
        uint64_t held_at_ns; /* it began to hold something, or did so again (hold.h) */
        struct list holding; /* in pipeline->holding while it does */
};

/* There may be a million of these at rest: what only work needs belongs there. */
struct feed {
        struct pipeline *pipeline;
        struct catalog_file *file;
        struct feed_work *work; /* NULL: it rests */
        struct block_index index;
        struct list cursors; /* of the readers that want the file */
        struct list waiters; /* of the requests that wait until it is settled */
        /*
         * in pipeline->hungry while bytes are left to ask for, in pipeline->failed or ->archived
         * while it waits for another try
         */
        struct list queue;

        struct block_position next; /* everything before is published or skipped */
        uint64_t search_offset;     /* block_decode.h */
        uint64_t issued_offset;     /* bytes before are asked for, or not needed */
        uint64_t promised_end;      /* of the record at next, by its right header; 0: none */
        /* Of a part: grows with the largest record, so that none lies in more than two. */
        uint64_t part_bytes;
        uint64_t whole_bytes;     /* where the server ignores ranges: the size that it told */
        uint64_t believed_offset; /* damage that begins before is believed */
        uint64_t source_bytes_done, extent_bytes_done; /* their ratio tells what a job will fill */
        uint64_t retry_at_ns;
        uint64_t read_tag; /* that answers have had, as tag_hash() says; 0: none */
        uint8_t tail[16];  /* the bytes before next: what `checked` compares */
        uint8_t tail_bytes;
        uint8_t failures;              /* in a row; counted as far as the wait depends on it */
        enum damage search_damage : 8; /* with search_offset; block_decode.h */
        bool failed : 1;               /* it is in pipeline->failed or ->archived */
        /* it changed: parts repeat the last bytes before them, to see that it only grew */
        bool checked : 1;
        bool unguarded : 1;  /* the object is another version than the listing said */
        bool probe : 1;      /* the listing does not say whether there is more */
        bool has_values : 1; /* not only event marks */
        bool no_ranges : 1;  /* the server ignores ranges: read whole */
        bool decoding : 1;
        bool bridging : 1;
        bool paused : 1; /* between two extents of the first part: it goes on when it is resumed */
        /* the file was replaced meanwhile: what the running task makes is of the old version */
        bool discard : 1;
        /*
         * an extent of the running task could not be kept (no memory): go back to the last
         * published one
         */
        bool broken : 1;
        bool replaced : 1; /* and nobody has been told yet, as the new version is not known */
        bool late : 1;     /* its next records come after it had been settled without them */
        bool gone : 1;     /* left storage: ends when its tasks do */
};

/* Makes its work, if it has none. -ENOMEM. */
int feed_need_work(struct feed *feed);

/* Frees its work, if it is settled and nothing of it is under way. */
void feed_drop_idle_work(struct feed *feed);

/* True while parts of it are asked for, or not used up. */
static inline bool feed_has_parts(const struct feed *feed) {
        return feed->work && !list_is_empty(&feed->work->parts);
}

/* Who its extents are of now; borrows the names of the catalog. */
struct block_file feed_identity(const struct feed *feed);

/* -ENOMEM. */
int feed_new(struct pipeline *pipeline, struct catalog_file *file, struct feed **ret_feed);

/*
 * Cancels what is under way and frees it. No task of it may be with a decoder, unless the pool is
 * closed.
 */
void feed_free(struct feed *feed);

/* The listing says so. */
void feed_changed(struct feed *feed, enum watch_change change);
void feed_gone(struct feed *feed);
void feed_retry(struct feed *feed);

/* True while there are bytes that can be asked for now. */
bool feed_is_hungry(const struct feed *feed);

/* Why no job went out. */
#define FEED_E_WINDOW 1 /* there is no place in the endpoint's window or in the budget */
#define FEED_E_ROOM 2   /* the room is too small */
#define FEED_E_BUSY 3   /* enough of this file is under way */

/* The block that holds the position or comes next; NULL: nothing is published there yet. */
struct block *feed_block_at(const struct feed *feed, struct block_position position);

/* What the bytes that are asked for, and not published yet, will fill. */
uint64_t feed_estimate_under_way(const struct feed *feed);

/* The other way round: bytes of the file that will fill so much of the ring. */
uint64_t feed_source_bytes(const struct feed *feed, uint64_t ring_bytes);

/* The lowest byte that is still needed, and how many are listed behind what was asked for. */
uint64_t feed_offset(const struct feed *feed);
uint64_t feed_left(const struct feed *feed);

/* The version that reads of new bytes ask for; NULL: any. */
const char *feed_guard(const struct feed *feed);

/*
 * A long record at next is not all there yet. As long as that is so, a file that has grown is only
 * asked for the record's header: else what there is of the record would be read at each growth.
 */
bool feed_awaits_record(const struct feed *feed);

/* Puts it into the pipeline's queue of hungry feeds, or takes it out. */
void feed_set_hungry(struct feed *feed);
void feed_not_hungry(struct feed *feed);

/*
 * No part is under way: either all is asked for and the file is settled, or it goes on from where
 * it is.
 */
void feed_rest(struct feed *feed);

/* It cannot be read: settled as such, and tried again later. */
void feed_fail(struct feed *feed, const struct store_failure *failure);

/* The file is another one than it was: from the beginning, as a new version. */
void feed_restart(struct feed *feed);

/* If it was replaced and nobody was told yet, the news goes out. */
void feed_tell_replaced(struct feed *feed);

/* True while a decoder has something of it. */
bool feed_has_tasks(const struct feed *feed);

/* A feed that is gone and has no tasks leaves the catalog. */
void feed_end(struct feed *feed);

/* What a decoder is told of the file, to go on at feed->next. */
struct block_input feed_input(const struct feed *feed, const uint8_t *bytes, uint64_t offset,
                              uint64_t size);

/* What the file's unread bytes will fill in the ring, by its ratio so far. */
uint64_t feed_estimate(const struct feed *feed, uint64_t source_bytes);
