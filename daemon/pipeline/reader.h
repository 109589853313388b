/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader: the cursors of one session over all files it wants, its pins and its quota. It decides
 * what is delivered next and what must be fetched for it; how entries reach the client is behind
 * struct reader_operations. Loop thread.
 *
 * Rules (docs/RING.md): blocks of a file are delivered in file order, files of a run in name order
 * at first load; a pin is taken before the entry is pushed; what is held never passes the quota.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ring_format.h"
#include "daemon/discover/catalog.h"

struct pipeline;
struct reader;

enum reader_order { READER_ORDER_RUN, READER_ORDER_SORTED };
enum reader_from { READER_FROM_START, READER_FROM_NOW, READER_FROM_POSITIONS };

struct reader_position {
        uint64_t file_id, file_version, offset;
        uint32_t index;
};

struct reader_options {
        const struct catalog_source *source; /* NULL: all */
        /* Globs (fnmatch), borrowed during reader_new() only; a count of 0 means all. */
        const char *const *runs, *const *tags, *const *plugins;
        size_t run_count, tag_count, plugin_count;
        enum reader_from from;
        const struct reader_position *positions;
        size_t position_count;
        enum reader_order order;
        bool follow;
};

struct reader_operations {
        /* True while one more entry fits the session's queue. */
        bool (*has_room)(void *userdata);
        /*
         * Puts an entry into the queue, not yet visible to the client. extent points to the whole
         * extent's image in the ring (NULL for an entry without one), valid while the entry is
         * pinned, that is until it is acknowledged.
         */
        void (*push)(void *userdata, const struct ring_entry *entry, const void *extent);
        /*
         * After one or more pushes: makes them visible and wakes the client if it sleeps. Must not
         * call back into this module.
         */
        void (*flush)(void *userdata);
        /*
         * Something waits for acknowledgements, and would go on when the client has acknowledged
         * kick_at entries: stores it where the client sees it, fences, and returns what is
         * acknowledged now (read again after the fence).
         */
        uint64_t (*set_kick)(void *userdata, uint64_t kick_at);
        /*
         * The stream (without follow) cannot be completed: this source has no complete listing, and
         * will have none. Once at most.
         */
        void (*source_failed)(void *userdata, const struct catalog_source *source);
        /*
         * The session cannot go on: the client has written nonsense into its acknowledgements
         * (-EPROTO), or memory is out (-ENOMEM). Once at most. Like source_failed it must not free
         * the reader from inside.
         */
        void (*broken)(void *userdata, int error);
};

/*
 * Positive outcome of reader_new(): one more session does not fit; *ret_ring_bytes is the ring size
 * that would do.
 */
#define READER_E_NO_ROOM 1

/*
 * Begins a session. Deliveries start from the loop, never from inside. Takes nothing of options.
 * -ENOMEM, READER_E_NO_ROOM.
 */
int reader_new(struct pipeline *pipeline, const struct reader_options *options,
               const struct reader_operations *operations, void *userdata,
               struct reader **ret_reader, uint64_t *ret_ring_bytes);

/* Ends the session: drops its pins. NULL is taken; returns NULL. */
struct reader *reader_free(struct reader *reader);

/*
 * The client has acknowledged that many entries since the session began. Releases their pins and
 * lets the pipeline go on. -EPROTO: not between what was acknowledged before and what was pushed;
 * the session must be closed.
 */
int reader_acknowledge(struct reader *reader, uint64_t acked);

/*
 * What is of runs that match one of the globs (fnmatch(3), copied) is fetched and delivered before
 * all others, from now on; 0 globs: nothing is. -ENOMEM, and all stays as it was; -EINVAL: the order
 * is `sorted`.
 */
int reader_prioritize(struct reader *reader, const char *const *runs, size_t count);

struct reader_status {
        uint64_t pushed, acked;
        uint64_t records;        /* delivered */
        unsigned held_segments;  /* pinned ones, and those that jobs issued for it will fill */
        unsigned quota_segments; /* what it may hold now */
        uint64_t backlog_bytes;  /* published, wanted, not yet delivered */
        bool ended;
};

void reader_status(const struct reader *reader, struct reader_status *ret_status);
