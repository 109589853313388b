/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways in which a web server names the entries of a directory: how it is asked, and how its answer
 * is parsed, as a stream. http_listing.h walks the tree with one of them.
 */
#pragma once

#include "daemon/store/autoindex.h"
#include "daemon/store/store.h"

struct http_index {
        const char *name;           /* for people */
        const char *method;         /* NULL: GET */
        const char *const *headers; /* NULL: none */
        const char *body;           /* NULL: none */
        long status;                /* of a listing: 200, 207 */
        /*
         * A parser. path is that of the directory, as it is asked for (encoded, without a query);
         * borrowed for the call. on_entry returns false to get no more. -ENOMEM.
         */
        int (*new)(const char *path,
                   bool (*on_entry)(void *userdata, const struct autoindex_entry *entry),
                   void *userdata, void **ret_parser);
        /* 0, AUTOINDEX_E_*, -ENOMEM; then nothing follows but free(). */
        int (*feed)(void *parser, const uint8_t *bytes, size_t size);
        int (*finish)(void *parser);
        /*
         * After finish(): what is added to the query to get the next page of the same directory,
         * the caller's to free; NULL: this was the last. The function is NULL where there are no
         * pages.
         */
        char *(*next)(void *parser);
        /* What an error's text says. NULL: the status alone counts. */
        void (*judge)(long status, const char *body, size_t size, const char *thing,
                      struct store_failure *ret_failure);
        void (*free)(void *parser);
};

extern const struct http_index http_index_json; /* nginx's autoindex, and manifests */
extern const struct http_index http_index_dav;  /* WebDAV */
extern const struct http_index http_index_hdfs; /* WebHDFS */
