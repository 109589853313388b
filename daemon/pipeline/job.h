/* SPDX-License-Identifier: Apache-2.0 */
/* One read of a file on its way: requested, arrived, being decoded. Belongs to a feed. */
#pragma once

#include "daemon/pipeline/decoder_pool.h"
#include "daemon/fetch/fetch.h"

struct feed;
struct block;
struct reader;

#define JOB_RECORD_UNKNOWN UINT64_MAX

struct job {
        struct list node; /* of the feed's parts or refetches */
        struct feed *feed;
        struct fetch_job *fetch; /* holds the ticket and its bytes */
        uint64_t offset, size_bytes;
        /* the first bytes repeat what was read before, to see that the file is still the same */
        unsigned overlap_bytes;
        bool arrived, accepted;
        struct fetch_result result; /* when it has arrived */
        /* a block fetched again; NULL: a part that is read for the first time */
        struct block *block;
        struct decoder_task task; /* of a block fetched again, or a part that is decoded ahead */
        /* the file as it was, should it be replaced while a decoder reads this */
        struct block_file identity;
        /* if its block or part goes meanwhile, it ends when its decoder is done */
        bool decoding;
        /* of a part: decoded before its turn has come (part_ahead.h) */
        uint64_t first_record_offset; /* where its first record begins, or JOB_RECORD_UNKNOWN */
        enum {
                JOB_AHEAD_NOT,
                JOB_AHEAD_UNTAKEN,    /* its extents are held */
                JOB_AHEAD_TAKEN,      /* its turn has come: they are published */
                JOB_AHEAD_FOR_NOBODY, /* a decoder is at it, but they are not wanted any more */
                JOB_AHEAD_NEVER,      /* was, and will not be again */
        } ahead;
        bool ahead_last;      /* what the decoder was told of the end of the file */
        bool leaving;         /* given up, but a decoder is at it */
        struct list in_ahead; /* in pipeline->ahead while its extents are held */
        struct decoder_event *held;
        size_t held_count, held_space;
        void (*on_taken_done)(struct feed *feed, struct decoder_task *task);
        uint64_t committed_bytes;
        struct reader *charged; /* whose quota it uses, or NULL */
        struct list in_reader;  /* then: in its charged_jobs */
        unsigned charged_segments;
};

struct job *job_new(struct feed *feed); /* NULL: no memory */

/* Sends the request for [offset, offset + size_bytes). FEED_E_WINDOW: not now. -ENOMEM. */
int job_start(struct job *job, void (*on_done)(void *userdata, const struct fetch_result *result));

/* What it will fill of the ring, and who pays for that with quota (NULL: nobody). */
void job_commit(struct job *job, uint64_t ring_bytes, struct reader *charged);
void job_uncharge(struct job *job);

/* Nothing of it will fill the ring now, and nobody pays for it. */
void job_uncommit(struct job *job);

/* Ends a job that no decoder has, and frees it. */
void job_end(struct job *job);
