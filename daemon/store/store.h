/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: where a source's bytes are. One table entry (struct store_type) for each kind of
 * storage; what it makes of a URL is a struct store, with which sources are listed and ranges are
 * read. Everything runs on the loop thread and answers by callback, never from inside the call. No
 * retries, no windows, no budgets here: daemon/fetch has them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/store/mount.h"

#include "daemon/store/price.h"

struct store;
struct config_access;

/*
 * Why storage did not answer as wanted. code and message are for people: "403", "ENOENT";
 * "Forbidden", ...
 */
enum store_failure_class {
        STORE_OK = 0,
        /* worth another try: connect, reset, short body, timeouts, 408, 429, 500, 502, 503, 504 */
        STORE_TRANSIENT,
        /* likewise, and the endpoint wants fewer requests (429, 503, reset, refused) */
        STORE_THROTTLED,
        STORE_PERMANENT, /* 401, 403, 404, 405, EACCES, ENOENT ...: another try is for later */
        STORE_NO_RANGE,  /* the object is larger than the read and the server ignores ranges */
        STORE_END,       /* 416 or an empty 206: nothing at or behind that offset */
        STORE_CHANGED,   /* 412: the object is not the version that was asked for */
};

/* The code of a failed read of an object that somebody must bring back first, in any store. */
#define STORE_CODE_ARCHIVED "archived"

struct store_failure {
        enum store_failure_class class;
        char code[40];
        char message[480];       /* a line, and behind a newline perhaps what to do about it */
        uint64_t retry_after_ms; /* 0: not said */
};

/*
 * One object of a listing. name is relative to the source, without a leading slash, bytes as they
 * are in storage.
 */
struct store_row {
        const char *name;
        size_t name_size;
        uint64_t size_bytes; /* UINT64_MAX: the listing does not say */
        int64_t mtime_ns;    /* since 1970; INT64_MIN: not said */
        char tag[64];        /* strong ETag, inode or "": compared for equality only */
        bool is_archived;    /* cannot be read before somebody brings it back */
};

struct store_list_counts;

/*
 * Which part of a source is listed, where listings are flat (store.is_flat): rows come in the order
 * of their names' bytes then.
 */
struct store_list_range {
        /* a directory relative to the source, "a/b" without a slash at its end; "": the source */
        const char *below;
        size_t below_size;
        /* directories are not entered but given to on_directory */
        bool one_level;
        /* names behind `after`, up to `until` and with it; NULL: from the first, to the last */
        const char *after, *until;
        /*
         * A page has ended and another one follows: what the listing has cost and seen so far, and
         * the last name of the page, relative to the source, event file or not. With the
         * userdata of the callbacks; NULL if nobody asks for that.
         */
        void (*on_page)(void *userdata, const struct store_list_counts *counts,
                        const char *last_name, size_t size);
};

/* What a listing has cost, and seen. */
struct store_list_counts {
        uint64_t requests;
        uint64_t repeated; /* of them: for a page that had failed before */
        uint64_t objects;  /* of flat stores: foreign ones, which are not given, too */
};

struct store_list_callbacks {
        /*
         * Rows as they are parsed; only names whose base name contains "tfevents" are given. The
         * row is borrowed.
         */
        void (*on_row)(void *userdata, const struct store_row *row);
        /*
         * The listing ended, complete if failure->class is STORE_OK. A directory below the source
         * that cannot be read does not end a listing: it is given to on_unreadable, and rows below
         * it must be taken as unknown, not as gone. Last call.
         */
        void (*on_unreadable)(void *userdata, const char *directory, size_t size,
                              const struct store_failure *failure);
        void (*on_done)(void *userdata, const struct store_failure *failure,
                        const struct store_list_counts *counts);
        /*
         * A directory relative to the source, without a slash at its end: only where the range says
         * one_level. NULL if nobody asks for that.
         */
        void (*on_directory)(void *userdata, const char *directory, size_t size);
};

/* What is read: up to size_bytes at offset of the object into buffer. */
struct store_read_range {
        const char *name; /* relative to the source */
        size_t name_size;
        uint64_t offset;
        uint64_t size_bytes;
        /* the caller's; it must live until on_done or until read_cancel() gives it back */
        uint8_t *buffer;
        /*
         * The version that the listing named: a store whose listings and answers share tags
         * (store.has_shared_tags) fails with STORE_CHANGED if the object has another one. NULL or
         * "": any.
         */
        const char *tag;
};

struct store_read_result {
        /* class STORE_OK: all below is valid; else what arrived before is, too */
        struct store_failure failure;
        /* bytes now in the buffer, contiguous from the read's offset */
        uint64_t size_bytes;
        /* of the whole object as this answer says; UINT64_MAX: not said */
        uint64_t total_bytes;
        char tag[64]; /* of this answer: compare with other answers' tags only */
        /* time to the first byte, since the request had gone out; to the end, since the call */
        uint64_t first_byte_ns, total_ns;
};

struct store_list;
struct store_read;

struct store_type {
        const char *name;
        const char *const *schemes; /* NULL-terminated: "http", "https"; "" for plain paths */
        /* True for a URL of another scheme that is this type's, too. NULL: there is none. */
        bool (*claims)(const char *url);
        /*
         * Makes a store of a URL that this type understands. -EINVAL: not a URL of this type;
         * *ret_message says why (static).
         */
        int (*new)(uv_loop_t *loop, const char *url, struct store **ret_store,
                   const char **ret_message);
        /* Instead of it, where a source's own access is of use. NULL: it is of none. */
        int (*new_with)(uv_loop_t *loop, const char *url, const struct config_access *access,
                        struct store **ret_store, const char **ret_message);
};

/* Fields common to every store, first member of the type's own struct. */
struct store {
        const struct store_operations *operations;
        /*
         * absolute, normalised, without user, password and query: the source's name in ids and
         * output
         */
        char *url;
        char *endpoint; /* "http://host:port" or "file": what a window is for */
        /* what its requests cost; NULL: nothing (file systems, endpoints of one's own) */
        const struct store_price *price;
        /*
         * requests that were sent: listings are counted by whoever lists (of struct
         * store_list_counts), reads by daemon/fetch, those for credentials by the store
         */
        struct request_count requests;
        /* as whom storage is asked, for people; NULL: not known (yet), or nobody */
        char *identity;
        /* requests in flight to begin with: 128 for HTTP, 16 for file systems */
        unsigned window_start;
        /* its listings are flat, paged and sorted: any range of names can be listed, at once */
        bool is_flat;
        unsigned page_objects; /* of a page of a listing that is not the last; 0: 1000 */
        /* tags of a listing are the tags of answers: they guard reads */
        bool has_shared_tags;
        /* tags of a listing are inodes: they stay while a file is written to */
        bool tags_name_files;
        /* what a file system's root is on; type "" while that is not known, or no file system */
        struct mount mount;
        /* how changes are heard of beside listings, for people; NULL: not at all */
        const char *events;
        /* a read has no deadline of its own: a thread may wait in the kernel for ever */
        bool reads_hang;
};

struct store_operations {
        /*
         * Starts a listing of everything under the source, or of a range of it (NULL: all; stores
         * that are not flat take nothing else, -ENOTSUP, and one listing at a time). Freed after
         * on_done, or by cancel. The range is borrowed for the call.
         */
        int (*list)(struct store *store, const struct store_list_range *range,
                    const struct store_list_callbacks *callbacks, void *userdata,
                    struct store_list **ret_list);
        /* Ends a listing without any further callback. */
        void (*list_cancel)(struct store_list *list);
        /*
         * Reads a range. Fewer bytes are no error where the object ends. Status, Content-Range and
         * length of the answer are checked. The range and its name are borrowed for the call. With
         * on_done the read is over and must not be cancelled; the store may be closed in it.
         */
        int (*read)(struct store *store, const struct store_read_range *range,
                    void (*on_done)(void *userdata, const struct store_read_result *result),
                    void *userdata, struct store_read **ret_read);
        /*
         * Since when (uv_hrtime()) a read waits for its answer to begin: when its request had gone out,
         * or while it cannot go out, when that was begun. 0: the answer has begun, or the request
         * waits for a name or credentials; asking twice would not help. NULL: that cannot be told, and
         * no read is worth a second one (a file system).
         */
        uint64_t (*read_waits_since_ns)(const struct store_read *read);
        /*
         * Ends a read without on_done. True: the buffer is the caller's again. False: a thread is
         * still inside of the kernel with it (a file system that hangs); on_released(userdata) is
         * called when the buffer is the caller's again.
         */
        bool (*read_cancel)(struct store_read *read, void (*on_released)(void *userdata),
                            void *userdata);
        /*
         * Closes everything; on_closed is called when no handle and no thread of the store is left.
         * The store is freed then.
         */
        void (*close)(struct store *store, void (*on_closed)(void *userdata), void *userdata);
        /*
         * From now on on_change is called when something may have changed below the source, as soon
         * as that is known; is_deletion: something may be gone. A hint: listings stay the truth.
         * NULL: not any more. The operation is NULL where a store has no such thing; -errno: it
         * cannot now.
         */
        int (*watch)(struct store *store, void (*on_change)(void *userdata, bool is_deletion),
                     void *userdata);
};

/*
 * Opens the store for a URL or a path. *ret_message (may be NULL) explains -EINVAL for people:
 * unknown scheme, no host ...; the text is static. Other errors are -errno.
 */
int store_open(uv_loop_t *loop, const char *url, struct store **ret_store,
               const char **ret_message);

/* The same with what the source is configured with; borrowed. -EINVAL also if it has no use here. */
int store_open_with(uv_loop_t *loop, const char *url, const struct config_access *access,
                    struct store **ret_store, const char **ret_message);
