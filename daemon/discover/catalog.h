/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: sources, their runs, the runs' event files, and the series seen in them. Only a
 * structure: who lists, fetches and decodes changes it. Everything is owned by the loop thread.
 * Names are bytes and may hold anything but NUL and a leading slash; each is NUL-terminated too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/extent_format.h"
#include "daemon/core/cells.h"
#include "daemon/core/id_map.h"
#include "daemon/core/list.h"
#include "daemon/discover/file_damage.h"
#include "daemon/store/store.h"

enum catalog_state {
        CATALOG_QUEUED = 0,
        CATALOG_LOADING,
        CATALOG_UNREADABLE,
        CATALOG_ARCHIVED, /* cannot be read before somebody brings it back */
        CATALOG_GONE,
        CATALOG_EMPTY,       /* 0 bytes in storage */
        CATALOG_HEADER_ONLY, /* loaded, but it holds no value */
        CATALOG_LOADED,
        CATALOG_EXCLUDED, /* a filter leaves it out: nothing is read of it */
};

/* The words of docs/PROTOCOL.md: "queued", ... "unreadable" stands without its code. */
const char *catalog_state_name(enum catalog_state state);

struct catalog_name {
        char *bytes; /* NUL-terminated */
        size_t size;
};

struct pipeline;
struct remove_request;
struct watch;

struct catalog_series {
        struct catalog_run *run;
        uint64_t id;
        struct catalog_name tag, plugin, content, display_name, description;
        uint8_t data_class; /* resolved: enum extent_class */
        uint8_t written_as; /* of the value that its metadata is from: enum extent_written_as */
        bool has_metadata;
        bool is_several_plugins;         /* its values disagree on the plugin */
        uint64_t extents;                /* that have it */
        uint64_t from_file, from_offset; /* id, and begin of the extent that its metadata is from */
        /*
         * True: some of it was too long for that extent. The value of from_file that has all of it.
         */
        bool is_left_out;
        uint32_t left_out_index;
        uint64_t left_out_offset;
};

/* There may be a million of these: its path and its tag stand behind it in the same memory. */
struct catalog_file {
        struct catalog_run *run;
        struct catalog_name path; /* relative to the source */
        char *tag;                /* of its row; "": it has none. catalog_set_tag() */
        uint64_t id, version;     /* version is 0 until the first 24 bytes are known */
        uint64_t listed_bytes;    /* UINT64_MAX: the listing does not say */
        int64_t mtime_ns;         /* INT64_MIN: unknown */
        uint64_t loaded_bytes;    /* everything before is published or skipped */
        uint64_t records;
        struct file_damage *damage;    /* NULL: none */
        struct store_failure *failure; /* NULL: none */
        const char *excluded;  /* by which filter, borrowed from the source's; NULL: it is not */
        void *blocks;          /* of the pipeline; NULL: it has only the row */
        struct list unread;    /* of the pipeline, while that is so: pipeline/unread.h */
        uint32_t seen_listing; /* number of the last listing that had it; 0: never */
        uint32_t replacements; /* seen by this daemon at this path */
        uint8_t missing;       /* complete listings in a row without it */
        uint8_t tag_room;      /* bytes behind the path, for a tag and its NUL */
        enum catalog_state state : 8;
        bool settled : 1;
        /* from the run before: no listing has had it yet, so that its tag is no guard for reads */
        bool is_remembered : 1;
        bool is_archived : 1; /* as its row says; the state is that of the last try */
        char memory[];
};

struct catalog_run {
        struct catalog_source *source;
        struct catalog_name name; /* "." for the source itself */
        uint64_t id;
        struct catalog_file **files; /* sorted by path */
        size_t file_count, file_space;
        size_t excluded_count;          /* of them */
        struct catalog_series **series; /* in order of appearance */
        size_t series_count, series_space;
        uint64_t
                swept; /* number of the last sweep that looked at this run alone; 0: none (sweep.h) */
        bool has_last_step;
        int64_t last_step;
};

/* A directory below a source that cannot be read: what lies in it is unknown. */
struct catalog_unreadable {
        struct catalog_name directory; /* relative to the source */
        struct store_failure failure;
};

enum catalog_source_state { CATALOG_SOURCE_LOADING = 0, CATALOG_SOURCE_OK, CATALOG_SOURCE_FAILING };

struct catalog_source {
        struct catalog *catalog;
        char *name; /* for people; the URL where none was given */
        uint64_t id;
        struct store *store; /* its url is the source's */
        enum catalog_source_state state;
        struct store_failure failure; /* of the listing */
        bool was_failing;             /* and that has been told */
        uint64_t listings;            /* complete ones */
        uint64_t attempts;            /* listings that have ended, complete or not */
        bool has_remembered;          /* files are known from the run before */
        uint64_t listed_at_ns;        /* uv_hrtime() of the last complete one */
        struct store_price price;     /* of its requests: the store's, or what is configured */
        /* directories that the last listing could not read */
        struct catalog_unreadable *unreadable;
        size_t unreadable_count;
        struct catalog_run **runs; /* sorted by name */
        size_t run_count, run_space;
        size_t file_count, settled_count, excluded_count; /* those are settled, too */
        struct filter *filter;                            /* which files are left out; NULL: none */
        struct watch *watch;                              /* that keeps it up to date */
        /* of the pipeline, when it has left the catalog (pipeline/source_removal.h) */
        struct pipeline *removed_from;
        struct remove_request *removal; /* who waits for it; NULL: nobody */
        struct list in_removals;
        bool removing_files;
        /* of the pipeline: its last pass that found the endpoint's window full */
        uint64_t full_in_pass;
};

/* What sources that are not there any more have asked of an endpoint: the day's limit counts it. */
struct catalog_endpoint {
        char *name;
        struct request_count requests; /* today[] alone */
};

struct catalog {
        struct catalog_source **sources;
        size_t source_count;
        struct catalog_endpoint *endpoints;
        size_t endpoint_count;
        struct id_map runs, files, series; /* by id */
        struct cells cells;                /* what there is of each file, also of the pipeline */
};

void catalog_init(struct catalog *catalog);
/* frees everything but the stores, which the owner closes before */
void catalog_deinit(struct catalog *catalog);

/*
 * Takes the store, on failure too. name may be NULL. -ENOMEM, -EEXIST (the same URL, or name).
 */
int catalog_add_source(struct catalog *catalog, const char *name, struct store *take_store,
                       struct catalog_source **ret_source);

/*
 * Takes back a source that was just added and has nothing yet; its store is the caller's to close,
 * afterwards.
 */
void catalog_remove_source(struct catalog_source *source);

/*
 * Takes the source at that index out: it is found no more, but stays with what it has until
 * catalog_free_source(). Its store is the caller's to close.
 */
void catalog_take_source(struct catalog_source *source, size_t index);
void catalog_free_source(struct catalog_source *source);

/* By name or URL; NULL if there is none. */
struct catalog_source *catalog_find_source(const struct catalog *catalog, const char *name);

/*
 * Finds or makes the file, and its run. A new one has no tag yet, and room for one of tag_size
 * bytes, that costs nothing more. *ret_added (may be NULL) tells which. -ENOMEM.
 */
int catalog_add_file(struct catalog_source *source, const char *path, size_t size, size_t tag_size,
                     struct catalog_file **ret_file, bool *ret_added);

/* -ENOMEM: only where the tag is longer than there is room for; it has the old one then. */
int catalog_set_tag(struct catalog_file *file, const char *tag);

/* By id; NULL if there is none. */
struct catalog_file *catalog_find_file(const struct catalog *catalog, uint64_t id);
struct catalog_run *catalog_find_run(const struct catalog *catalog, uint64_t id);
struct catalog_series *catalog_find_series(const struct catalog *catalog, uint64_t id);

/* Removes the file, and its run when it was the last. Its blocks pointer must be NULL. */
void catalog_remove_file(struct catalog_file *file);

/*
 * Learns the series of an extent of the file that is published for the first time: new tags, and
 * metadata, of which the first one counts in the order of the run's files, however their extents
 * arrive. The image is valid. -ENOMEM.
 */
int catalog_learn(const struct catalog_file *file, const struct extent_header *extent);

/*
 * Adds what was sent to the endpoint on this day to the sums: for all sources, and those that were
 * taken out.
 */
void catalog_requests_today(const struct catalog *catalog, const char *endpoint, int64_t now_s,
                            uint64_t sums[REQUEST_KINDS]);

/* Forgets and learns which directories cannot be read. -ENOMEM. */
void catalog_clear_unreadable(struct catalog_source *source);
int catalog_add_unreadable(struct catalog_source *source, const char *directory, size_t size,
                           const struct store_failure *failure);

/*
 * Sets or, with NULL, forgets why a file could not be read. Without memory the file has no failure.
 */
void catalog_set_failure(struct catalog_file *file, const struct store_failure *failure);

/* Sets a file's state; settled is kept in step with the source's count. */
void catalog_set_state(struct catalog_file *file, enum catalog_state state, bool settled);

/*
 * A filter leaves the file out, of which nothing was read so far; why is borrowed from the source's
 * filter. NULL: not any more, the file is as a new one.
 */
void catalog_set_excluded(struct catalog_file *file, const char *why);

/* All of its files are left out. */
static inline bool catalog_run_is_excluded(const struct catalog_run *run) {
        return run->excluded_count == run->file_count;
}

/* A run's state: the least finished of its files. */
enum catalog_state catalog_run_state(const struct catalog_run *run);
