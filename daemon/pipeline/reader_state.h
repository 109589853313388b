/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a reader, for the scheduler and the feeds. A cursor is one reader's place in one
 * file. A lane is a row of cursors that are delivered one after the other: the files of one run, or
 * (order `sorted`) all files.
 */
#pragma once

#include "daemon/pipeline/feed.h"
#include "daemon/pipeline/lane_queue.h"
#include "daemon/pipeline/reader.h"

struct cursor {
        struct reader *reader;
        struct lane *lane;
        struct feed *feed;
        struct list in_feed;
        /* in reader->ready: a block stands at its position, and it is the lane's turn */
        struct list ready;
        struct block_position position;
        uint64_t begun_version; /* the version of which entries were delivered; 0: none */
        bool turn;              /* its lane has come to it */
        bool finished;          /* its file is settled, and all of it delivered */
        bool waits;             /* its block is absent: not ready before it is resident */
        bool resumes;           /* its position is the client's, not checked yet */
        uint64_t resume_version;
};

struct lane {
        struct reader *reader;
        struct list node;         /* in reader->lanes, or reader->lanes_done */
        struct lane_place hungry; /* in reader->hungry: something of it may have to be fetched */
        bool is_prioritized;      /* the client has said that it waits for it */
        const struct catalog_run *run; /* NULL: all runs (order sorted) */
        struct cursor **cursors;       /* sorted by run and path */
        size_t count, space;
        size_t current; /* those before have had their turn; it is this one's */
        size_t first;   /* those before are finished */
        size_t unfinished;
};

struct notice {
        struct list node;
        struct ring_entry entry;
};

struct reader {
        struct pipeline *pipeline;
        struct list node; /* in pipeline->readers */
        const struct reader_operations *operations;
        void *userdata;
        const struct catalog_source *source; /* NULL: all */
        char **globs;                        /* runs, tags, plugins, one after the other */
        size_t run_count, tag_count, plugin_count;
        enum reader_order order;
        enum reader_from from;
        struct reader_position *positions;
        size_t position_count;
        bool follow;
        uint64_t begin_serial; /* blocks up to it were published before the session began */
        /* for each source of the catalog: the listing that the stream must have seen */
        uint64_t *attempt_wanted;
        size_t source_count;

        struct list lanes, lanes_done, ready, notices;
        struct lane_queue hungry;
        char **prioritized; /* globs */
        size_t prioritized_count;
        size_t unfinished_lanes;
        bool open;  /* the listings it waits for are there: deliveries may begin */
        bool begun; /* some have, before that (lane_advance()) */
        bool ended, failed;
        int error;                   /* why it is broken, until that has been said */
        bool job_held_back, blocked; /* in this pass: by demand; by quota or a full queue */

        uint32_t *need;       /* for each segment: blocks in it that it still wants */
        uint32_t *pins;       /* for each segment: entries that are not acknowledged */
        uint64_t *last_entry; /* for each segment: position of the last such entry */
        uint32_t in_flight[RING_QUEUE_ENTRIES]; /* segment of each entry that is not acknowledged */
        uint64_t pushed, acked, records;
        uint64_t acked_at_ns; /* when it has acknowledged something last */
        unsigned pinned_segments, reserved_segments;
        struct list charged_jobs; /* that reserve them */
};

#define READER_FLOOR_SEGMENTS 2u

/* Orders positions by file, for qsort(3) and bsearch(3). */
int reader_position_compare(const void *a, const void *b);

/* Some reader does. */
bool readers_want_run(const struct pipeline *pipeline, const struct catalog_run *run);
bool reader_wants_run(const struct reader *reader, const struct catalog_run *run);

/* Adds a cursor for the file if the reader wants it. -ENOMEM. */
int reader_add_feed(struct reader *reader, struct feed *feed);

/* A file appeared: readers that want it get a cursor. -ENOMEM. */
int readers_add_feed(struct pipeline *pipeline, struct feed *feed);

/* A block was published behind all others of its feed, or is resident again, or is not any more. */
void readers_block_published(struct feed *feed, struct block *block);
void readers_block_resident(struct feed *feed, struct block *block);
void readers_block_evicted(struct feed *feed, struct block *block);

/* It will never be resident again: its records cannot be read any more. */
void readers_block_lost(struct feed *feed, struct block *block);

void readers_feed_settled(struct feed *feed);
void readers_feed_hungry(struct feed *feed);
void readers_version_known(struct feed *feed);

/* The file begins anew, or is gone; its blocks have been dropped. */
void readers_feed_replaced(struct feed *feed);
void readers_feed_gone(struct feed *feed);

/*
 * The source, which is still in the catalog at that index, goes. Its files are gone afterwards; who
 * reads nothing else has failed.
 */
void readers_source_removed(struct pipeline *pipeline, struct catalog_source *source, size_t index);

/* A listing of the source ended. */
void readers_listed(struct pipeline *pipeline, struct catalog_source *source);

/* True if the position stands before the end of the block. */
bool cursor_wants(const struct cursor *cursor, const struct block *block);

/*
 * The cursor has passed the block, which is resident (delivered, or nothing in it is wanted) or
 * lost.
 */
void cursor_pass(struct cursor *cursor, struct block *block);

/* Nothing stands at the cursor's position now: its lane may go on. */
void cursor_rest(struct cursor *cursor);

/* Back to the beginning, after an entry `replaced` if anything had been delivered. */
void cursor_restart(struct cursor *cursor);

/* Gives the next cursor its turn, when all before it are settled and delivered. */
void lane_advance(struct lane *lane);

/* Something of the feed, one of the lane's, may have to be fetched. */
void lane_set_hungry(struct lane *lane, const struct feed *feed, enum lane_urgency urgency);

/* The reader prioritizes other runs than before. */
void lane_prioritize(struct lane *lane);
void lane_free(struct lane *lane);

/*
 * Puts an entry without an extent before all that is to be delivered. Without memory the session
 * fails.
 */
void reader_notice(struct reader *reader, const struct ring_entry *entry);

/* Delivers what can be delivered. */
void reader_pump(struct reader *reader);

/*
 * Reads the acknowledgements again; tells the client at which one something that waits can go on.
 */
void reader_set_kick(struct reader *reader);

/* How many more segments the reader may hold. */
unsigned reader_quota_left(const struct reader *reader);

uint64_t reader_ahead_bytes(const struct reader *reader);

/*
 * Walks the blocks and unread bytes that the reader wants next, in its order, up to so many bytes
 * of the ring. visit gets a block, or NULL and a feed whose unread bytes come next; it returns
 * false to end the walk.
 */
void reader_walk(struct reader *reader, uint64_t limit_bytes,
                 bool (*visit)(void *userdata, struct feed *feed, struct block *block),
                 void *userdata);
