/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listing over HTTP: a manifest in one request, or nginx's JSON autoindex or WebDAV, one request
 * for each directory, many at once. Which of the two a server has, its first answer tells; it costs
 * one request more to find out, once. A directory that answers with the same listing as one above it is a loop
 * (a link to it), and is left out.
 */
#pragma once

#include "daemon/store/http_client.h"
#include "daemon/store/http_index.h"
#include "daemon/store/store.h"

struct http_listing;

struct http_listing_place {
        /* encoded, of the directory, without a trailing slash; or of the manifest */
        const char *path;
        const char *query; /* with its question mark, or "" */
        const char *shown; /* the URL for people */
        bool is_manifest;
        /* how the server lists; the listing sets it when it finds out that it is another way */
        const struct http_index **index;
        /* adds to a failure what to do about an error's status; NULL: nothing is known */
        void (*advise)(void *userdata, long status, struct store_failure *failure);
        void *userdata;
};

/*
 * The callbacks are those of store_operations.list(); place is borrowed while the listing lives,
 * which is until after on_done or until http_listing_cancel(). -ENOMEM and what http_client_send()
 * says.
 */
int http_listing_start(uv_loop_t *loop, struct http_client *client,
                       const struct http_listing_place *place,
                       const struct store_list_callbacks *callbacks, void *userdata,
                       struct http_listing **ret_listing);

void http_listing_cancel(struct http_listing *listing);
