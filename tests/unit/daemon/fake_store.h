/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that does nothing by itself: the test says what a listing has and when it ends, and
 * answers each read, or fails it, when it wants to. Nothing of it depends on time.
 */
#pragma once

#include "daemon/store/store.h"

#define FAKE_READS_MOST 4096

struct store_list {
        struct fake_store *store;
};

struct store_read {
        struct fake_store *store;
        char *name;
        uint64_t offset, size;
        char tag[64]; /* of the version that is wanted; "": any */
        uint8_t *buffer;
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void *userdata;
};

struct fake_store {
        struct store store; /* must be first */
        uv_timer_t handle;  /* closes later, as those of real stores do */
        struct store_list list;
        const struct store_list_callbacks *callbacks; /* NULL: no listing is under way */
        void *list_userdata;
        unsigned lists, canceled_lists, canceled_reads;
        int list_error;                            /* of the next call of list */
        struct store_read *reads[FAKE_READS_MOST]; /* under way, oldest first */
        unsigned read_count, reads_made;
        uint64_t bytes_read; /* asked for by them */
        uint64_t bytes_sent; /* that answers had */
        bool tells;          /* it can say when something changes, and to whom it does */
        void (*on_change)(void *userdata, bool is_deletion);
        void *change_userdata;
        void (*on_closed)(void *userdata);
        void *closed_userdata;
};

struct fake_store *fake_store_new(uv_loop_t *loop, const char *url);

/* Of the listing that is under way. */
void fake_store_row(struct fake_store *fake, const char *name, uint64_t size_bytes,
                    int64_t mtime_ns);
void fake_store_tagged_row(struct fake_store *fake, const char *name, uint64_t size_bytes,
                           int64_t mtime_ns, const char *tag);
void fake_store_archived_row(struct fake_store *fake, const char *name, uint64_t size_bytes,
                             int64_t mtime_ns, const char *tag);
void fake_store_unreadable(struct fake_store *fake, const char *directory);
void fake_store_listed(struct fake_store *fake, enum store_failure_class class);

/* Answers the read at that place with what it asks for of a file's bytes, and is over with it. */
void fake_store_answer(struct fake_store *fake, unsigned at, const uint8_t *bytes,
                       uint64_t size_bytes, const char *tag);
void fake_store_fail(struct fake_store *fake, unsigned at, enum store_failure_class class,
                     const char *code);
