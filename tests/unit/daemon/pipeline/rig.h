/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole pipeline on a small ring, between a store that answers when the test says so and
 * sessions that acknowledge when the test says so. A program says RIG_STORE_OPEN once, so that
 * store_open_with() opens that store. Every record that is delivered is checked where it arrives, and
 * every extent again when it is acknowledged.
 */
#pragma once

#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/reader.h"
#include "tests/unit/daemon/events.h"
#include "tests/unit/daemon/fake_store.h"

#define RIG_RING_BYTES (4u << 20) /* 64 segments of 64 KiB */
#define RIG_SEGMENT_BYTES (64u << 10)
#define RIG_FILES_MOST 64
#define RIG_ENTRIES_MOST 65536

struct rig_file {
        char name[64];
        struct events events;
        int64_t steps;   /* scalars in it: step i has the value i */
        uint64_t listed; /* what the listing says; UINT64_MAX: nothing */
        int64_t mtime_ns;
        char tag[16], listed_tag[16]; /* of answers, and of the listing */
        bool hidden;                  /* not listed */
        bool archived;                /* listed as such */
        uint64_t id;
};

struct rig {
        uv_loop_t loop;
        struct pipeline *pipeline;
        struct fake_store *store;
        struct catalog_source *source;
        struct rig_file files[RIG_FILES_MOST];
        unsigned file_count;
        /*
         * the last listing counts as old for new sessions; else as fresh, however slowly the test
         * runs
         */
        bool stale;
        unsigned failed_files, damaged, replaced, gone_runs, failing, recovered; /* events */
        unsigned most_under_way;                                                 /* reads at once */
};

extern struct rig rig;

int rig_store_open(uv_loop_t *loop, const char *url, struct store **ret_store);

#define RIG_STORE_OPEN \
        int store_open_with(uv_loop_t *loop, const char *url, const struct config_access *access, \
                            struct store **ret_store, const char **ret_message) { \
                (void)access; \
                (void)ret_message; \
                return rig_store_open(loop, url, ret_store); \
        }

struct session_entry {
        struct ring_entry entry;
        const void *extent;
        int64_t first_step, last_step; /* of its records that are for the session; -1: no values */
};

struct session {
        struct reader *reader;
        struct session_entry *entries;
        uint64_t pushed, acked, kick_at, kicks;
        uint64_t queue_entries; /* has_room() is false beyond */
        uint64_t lie;           /* not 0: what the acknowledgement page says */
        /* for each file of the rig: what must come next; -1: anything */
        int64_t next_step[RIG_FILES_MOST];
        bool any_step; /* there are holes */
        uint64_t flushed, records, lost, ends, replaced, gone;
        int error;
        unsigned sources_failed;
};

/*
 * The usual options, and the steps that rig_begin() and rig_end() are made of, for a test in which
 * each may fail.
 */
extern const struct pipeline_options rig_usual;
void rig_prepare(void);
int rig_add_source(const char **ret_message);
void rig_forget(void);

/* NULL: the usual ones; the first listing is under way */
void rig_begin(const struct pipeline_options *options);
void rig_end(void);

struct rig_file *rig_add_file(const char *name, int64_t steps);
void rig_append(struct rig_file *file, int64_t steps);
void rig_list(void);       /* ends the listing that is under way with all files */
void rig_list_again(void); /* asks for another one, and ends it */
struct catalog_file *rig_catalog_file(const struct rig_file *file);

void rig_quiet(void); /* until nothing moves any more */
/* the read at that place among those under way; then quiet */
void rig_answer(unsigned at);
void rig_answer_all(void);                    /* oldest first, until none is left */
int rig_read_of(const struct rig_file *file); /* place of its oldest read under way; -1: none */

/* NULL: from start, no follow */
void session_begin(struct session *session, const struct reader_options *options);
void session_prepare(struct session *session);
/* after session_prepare(); as reader_new() */
int session_try(struct session *session, const struct reader_options *options);
void session_end(struct session *session);
void session_acknowledge(struct session *session, uint64_t acked); /* and tells the reader */
/*
 * As a client does it: stores the acknowledgement, and wakes the daemon only if it asked for that.
 * Returns true if it did.
 */
bool session_acknowledge_as_client(struct session *session, uint64_t acked);
unsigned session_held(const struct session *session); /* segments that its entries pin */
/* All of every file has come, once. */
void session_must_be_complete(const struct session *session);
