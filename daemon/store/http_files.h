/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stores of directories and files behind HTTP share: listings by http_listing.h, ranged reads
 * by http_read.h, and the way they end. A kind of such stores says how a file is asked for and what
 * an error's text means; its own struct begins with this one.
 */
#pragma once

#include "daemon/store/http_client.h"
#include "daemon/store/http_listing.h"
#include "daemon/store/store.h"

struct http_files;

struct http_files_kind {
        /* What follows the host in the request for a range; the caller's to free. NULL: no memory. */
        char *(*make_target)(const struct http_files *files, const struct store_read_range *range);
        /*
         * The target says which range is wanted: a 200 is its bytes, and its tag is of no version.
         * Else a Range header says it.
         */
        bool range_is_in_target;
        /* What an error's text says. NULL: the status alone counts. */
        void (*judge)(long status, const char *body, size_t size, const char *thing,
                      struct store_failure *ret_failure);
        void (*free)(struct http_files *files); /* of the store, behind all that runs */
};

struct http_files {
        struct store store;
        const struct http_files_kind *kind;
        uv_loop_t *loop;
        struct http_url url;
        struct http_client *client; /* NULL: none yet */
        struct http_listing_place place;
        const struct http_index *index; /* how the server lists */
        char *shown;                    /* what names of files stand behind, for people */
        struct store_list *list;
        void (*on_closed)(void *userdata);
        void *userdata;
};

extern const struct store_operations http_files_operations;

/* Frees what it has, but the client; a part of kind->free(). */
void http_files_deinit(struct http_files *files);
