/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads nginx's JSON autoindex, and manifests of the same form, in pieces as they arrive: an array
 * of objects with "name", "type" ("file" if it is not there, "directory"), "size", "mtime". Memory
 * is bounded by the largest object, not by the listing.
 *
 * nginx writes names as the bytes they are, so what it sends is JSON only if all names are UTF-8.
 * Each byte that is no UTF-8, and each byte of a genuine U+10FF00..U+10FFFF, goes to the JSON
 * parser as the private code point U+10FF00 + byte, and is turned back in the names that come out:
 * no two names become the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTOINDEX_ENTRY_MOST_BYTES (64u << 10)

struct autoindex_entry {
        /* Borrowed, NUL-terminated, holds no other NUL; may hold slashes, "..", anything else. */
        const char *name;
        size_t name_size;
        bool is_directory;
        uint64_t size_bytes; /* UINT64_MAX: not said */
        int64_t mtime_ns;    /* INT64_MIN: not said */
};

struct autoindex {
        /* Returns false to get no more of them. */
        bool (*on_entry)(void *userdata, const struct autoindex_entry *entry);
        void *userdata;
        uint8_t held[16]; /* the end of the last piece that may be half a sequence or escape */
        size_t held_size;
        char *text; /* of the object that is being gathered */
        size_t text_size, text_space;
        int place; /* enum of the .c */
        unsigned depth;
        bool in_string, escaped, stopped;
};

void autoindex_init(struct autoindex *index,
                    bool (*on_entry)(void *userdata, const struct autoindex_entry *entry),
                    void *userdata);
void autoindex_deinit(struct autoindex *index);

/* Outcomes. */
#define AUTOINDEX_E_DAMAGED 1    /* it began as a listing, but goes on as none */
#define AUTOINDEX_E_NO_LISTING 2 /* it is something else altogether: HTML, say */
#define AUTOINDEX_E_TOO_LARGE 3  /* one object passes AUTOINDEX_ENTRY_MOST_BYTES */

/*
 * Takes the next piece. 0, AUTOINDEX_E_*, -ENOMEM; after a failure the index is good for
 * autoindex_deinit() only.
 */
int autoindex_feed(struct autoindex *index, const uint8_t *bytes, size_t size);

/* There is no more: 0 if the listing was complete, else AUTOINDEX_E_*. */
int autoindex_finish(struct autoindex *index);
