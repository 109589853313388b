/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flat store in memory, as S3 lists one: any range of sorted names, in pages, several listings at
 * once. A page comes when the test says so. What pages cost is counted as a server would.
 */
#pragma once

#include "daemon/store/store.h"

#define FLAT_PAGE_OBJECTS 1000u

struct flat_key {
        char *name;
        uint64_t size_bytes;
        int64_t mtime_ns;
};

struct flat_store {
        struct store store; /* must be first */
        uv_timer_t handle;
        struct flat_key *keys; /* sorted when listed */
        size_t count, space;
        bool is_sorted;
        struct store_list *lists; /* under way, oldest first */
        unsigned list_count, most_at_once;
        uint64_t requests;              /* pages that were asked for */
        unsigned fail_after;            /* 0: no; else that page, counted from now, fails */
        enum store_failure_class class; /* how */
        unsigned repeat;                /* so many pages more come twice */
        unsigned starts_left;           /* of fail_starts: so many listings more can be started */
        bool fail_starts;
        void (*on_closed)(void *userdata);
        void *closed_userdata;
};

struct flat_store *flat_store_new(uv_loop_t *loop, const char *url);

void flat_store_add(struct flat_store *flat, const char *name, uint64_t size_bytes,
                    int64_t mtime_ns);
void flat_store_remove(struct flat_store *flat, const char *name);

/* The next page of the listing that has waited longest. False: none is under way. */
bool flat_store_page(struct flat_store *flat);
