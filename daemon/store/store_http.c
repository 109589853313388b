/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files behind a web server: listed by nginx's JSON autoindex, by WebDAV, or by a manifest if the URL ends in
 * ".json", and read by ranges.
 */
#include "daemon/store/store_http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_listing.h"
#include "daemon/store/http_read.h"
#include "daemon/store/types.h"

#define STORE_HTTP_WINDOW_START 128

struct store_http {
        struct store store;
        uv_loop_t *loop;
        struct http_url url;
        struct http_client *client;
        struct http_listing_place place;
        const struct http_index *index; /* how the server lists */
        char *directory; /* encoded path in front of names, without a trailing slash */
        struct store_list *list;
        void (*on_closed)(void *userdata);
        void *userdata;
};

struct store_list {
        struct store_http *http;
        struct http_listing *listing;
        struct store_list_callbacks callbacks;
        void *userdata;
};

struct store_read {
        struct store_http *http;
        struct http_request *request;
        char *target;
        struct http_read body;
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void *userdata;
};

/* ---- Reading ---- */

static bool on_body(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        struct store_read *read = userdata;

        return http_read_take(&read->body, answer, bytes, size);
}

static char *shown_url(const struct store_read *read) {
        char *shown;

        if (asprintf(&shown, "%s%.*s", read->http->url.endpoint, (int)strcspn(read->target, "?"),
                     read->target) < 0)
                return NULL;
        return shown;
}

static struct store_read *store_read_free(struct store_read *read) {
        http_read_deinit(&read->body);
        free(read->target);
        free(read);
        return NULL;
}

static void on_answer(void *userdata, const struct http_answer *answer,
                      const struct store_failure *transport) {
        struct store_read *read = userdata;
        CLEANUP(freep) char *shown = shown_url(read);
        struct store_read_result result;

        http_read_end(&read->body, answer, transport, shown ? shown : read->http->store.url,
                      &result);
        read->on_done(read->userdata, &result);
        store_read_free(read);
}

static int make_target(const struct store_http *http, const char *name, size_t name_size,
                       char **ret_target) {
        size_t size = strlen(http->directory), query_size = strlen(http->url.query);
        char *target = malloc(size + 1 + 3 * name_size + query_size + 1), *at = target;

        if (!target)
                return -ENOMEM;
        at = mempcpy(at, http->directory, size);
        *at++ = '/';
        at = http_url_encode(name, name_size, at);
        memcpy(at, http->url.query, query_size + 1);
        *ret_target = target;
        return 0;
}

static int http_read(struct store *store, const struct store_read_range *range,
                     void (*on_done)(void *userdata, const struct store_read_result *result),
                     void *userdata, struct store_read **ret_read) {
        static const struct http_handler handler = { .on_body = on_body, .on_done = on_answer };
        struct store_http *http = (struct store_http *)store;
        struct store_read *read;
        int r;

        if (range->size_bytes == 0 || range->offset > UINT64_MAX - range->size_bytes)
                return -EINVAL;
        read = calloc(1, sizeof(*read));
        if (!read)
                return -ENOMEM;
        read->http = http;
        http_read_init(&read->body, range, false);
        read->on_done = on_done;
        read->userdata = userdata;
        r = make_target(http, range->name, range->name_size, &read->target);
        if (r == 0) {
                struct http_query query = { .target = read->target,
                                            .begin = range->offset,
                                            .size_bytes = range->size_bytes };

                r = http_client_send(http->client, &query, &handler, read, &read->request);
        }
        if (r < 0) {
                store_read_free(read);
                return r;
        }
        *ret_read = read;
        return 0;
}

static bool http_read_has_begun(const struct store_read *read) {
        return http_request_has_begun(read->request);
}

static bool http_read_cancel(struct store_read *read, void (*on_released)(void *userdata),
                             void *userdata) {
        (void)on_released;
        (void)userdata;
        http_request_cancel(read->request);
        store_read_free(read);
        return true;
}

/* ---- Listing ---- */

static void on_row(void *userdata, const struct store_row *row) {
        struct store_list *list = userdata;

        list->callbacks.on_row(list->userdata, row);
}

static void on_unreadable(void *userdata, const char *directory, size_t size,
                          const struct store_failure *failure) {
        struct store_list *list = userdata;

        list->callbacks.on_unreadable(list->userdata, directory, size, failure);
}

static void on_listed(void *userdata, const struct store_failure *failure,
                      const struct store_list_counts *counts) {
        struct store_list *list = userdata;
        struct store_list ended = *list;

        list->http->list = NULL;
        free(list);
        ended.callbacks.on_done(ended.userdata, failure, counts);
}

static int http_list(struct store *store, const struct store_list_range *range,
                     const struct store_list_callbacks *callbacks, void *userdata,
                     struct store_list **ret_list) {
        static const struct store_list_callbacks own = { on_row, on_unreadable, on_listed, NULL };
        struct store_http *http = (struct store_http *)store;
        struct store_list *list;
        int r;

        if (range)
                return -ENOTSUP;
        MUST(!http->list);
        list = calloc(1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        list->http = http;
        list->callbacks = *callbacks;
        list->userdata = userdata;
        r = http_listing_start(http->loop, http->client, &http->place, &own, list, &list->listing);
        if (r < 0) {
                free(list);
                return r;
        }
        http->list = list;
        *ret_list = list;
        return 0;
}

static void http_list_cancel(struct store_list *list) {
        list->http->list = NULL;
        http_listing_cancel(list->listing);
        free(list);
}

/* ---- Life ---- */

static void store_http_free(struct store_http *http) {
        http_url_deinit(&http->url);
        free(http->directory);
        free(http->store.url);
        free(http->store.endpoint);
        free(http);
}

static void on_client_closed(void *userdata) {
        struct store_http *http = userdata;
        void (*on_closed)(void *) = http->on_closed;
        void *on_closed_userdata = http->userdata;

        store_http_free(http);
        if (on_closed)
                on_closed(on_closed_userdata);
}

static void http_close(struct store *store, void (*on_closed)(void *userdata), void *userdata) {
        struct store_http *http = (struct store_http *)store;

        http->on_closed = on_closed;
        http->userdata = userdata;
        if (http->list)
                http_list_cancel(http->list);
        http_client_close(http->client, on_client_closed, http);
}

static const struct store_operations operations = {
        .list = http_list,
        .list_cancel = http_list_cancel,
        .read = http_read,
        .read_has_begun = http_read_has_begun,
        .read_cancel = http_read_cancel,
        .close = http_close,
};

static bool is_manifest(const char *path) {
        size_t size = strlen(path);

        return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

static int set_places(struct store_http *http) {
        http->place = (struct http_listing_place){
                .path = http->url.path,
                .query = http->url.query,
                .shown = http->store.url,
                .is_manifest = is_manifest(http->url.path),
                .index = &http->index,
        };
        http->directory = strdup(http->url.path);
        if (!http->directory)
                return -ENOMEM;
        if (http->place.is_manifest)
                *strrchr(http->directory, '/') = '\0';
        http->store.endpoint = strdup(http->url.endpoint);
        return http->store.endpoint ? 0 : -ENOMEM;
}

int store_http_new(uv_loop_t *loop, const char *url, const struct http_client_options *options,
                   struct store **ret_store, const char **ret_message) {
        struct store_http *http = calloc(1, sizeof(*http));
        int r;

        if (!http)
                return -ENOMEM;
        http->store.operations = &operations;
        http->store.window_start = STORE_HTTP_WINDOW_START;
        http->loop = loop;
        http->index = &http_index_json;
        r = http_url_init(&http->url, url, ret_message);
        if (r == 0 && (r = source_url_normalize(url, &http->store.url)) == -EINVAL)
                *ret_message = "the URL names no host";
        if (r == 0)
                r = set_places(http);
        if (r == 0)
                r = http_client_new(loop, &http->url, options, &http->client);
        if (r < 0) {
                store_http_free(http);
                return r;
        }
        *ret_store = &http->store;
        return 0;
}

static int http_new(uv_loop_t *loop, const char *url, struct store **ret_store,
                    const char **ret_message) {
        return store_http_new(loop, url, &http_client_defaults, ret_store, ret_message);
}

static const char *const schemes[] = { "http", "https", NULL };

const struct store_type store_type_http = { .name = "http", .schemes = schemes, .new = http_new };
