/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a subscription: entries of either transport, checked, into batches. The extent of
 * the current batch stays in place until the next entry is asked for; only then is it acknowledged.
 */
#pragma once

#include "client/include/headrace.h"
#include "client/lib/inbox.h"
#include "client/lib/series_table.h"
#include "client/lib/shared_map.h"
#include "common/extent_view.h"
#include "common/ring_format.h"

/* Globs, copied. */
struct globs {
        char **patterns;
        size_t count;
};

/*
 * An entry becomes several batches where a series says more of itself within it: hr_series changes
 * between two batches only.
 */
struct stream_rest {
        struct ring_entry entry; /* with the records that are left; record_count 0: none */
        struct known_file *file;
        uint32_t learned;   /* rows of the series table */
        uint32_t looked_at; /* records before it use learned rows only */
};

struct stream {
        enum hr_transport transport;
        struct shared_map map;
        struct inbox_item *item; /* inline: of the current batch */
        uint64_t taken, acked;   /* inline: entries */

        struct globs tags, plugins;
        struct globs runs; /* of a connection with names of sources; else the daemon looks */
        bool asks_series;  /* began behind the start: metadata may stand before it */
        bool has_source;
        uint64_t source_id; /* has_source: records of other sources are not given out */

        struct series_table table;
        struct restarts restarts;
        struct hr_withdrawal *withdrawals; /* of the current batch */
        size_t withdrawal_space;
        struct extent_view view;     /* of the current batch; bytes NULL: none */
        struct hr_series **series;   /* of its series table: NULL where the filters say no */
        struct known_series **known; /* likewise, all */
        size_t series_space;
        struct stream_rest rest;    /* of the entry: what the current batch left over */
        struct inbox_item *payload; /* that hr_payload() fetched */
        const void *payload_memory; /* likewise, mapped */
        uint64_t payload_bytes;

        bool ended;
        unsigned since_pump; /* batches since the socket was looked at */
};

struct stream *stream_free(struct stream *stream); /* takes NULL, returns NULL */

/* Forgets a fetched payload. */
void stream_drop_payload(struct stream *stream);
