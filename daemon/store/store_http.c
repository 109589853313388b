/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files behind a web server: listed by nginx's JSON autoindex, by WebDAV, or by a manifest if the URL ends in
 * ".json", and read by ranges.
 */
#include "daemon/store/store_http.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/store/http_files.h"
#include "daemon/store/types.h"

#define STORE_HTTP_WINDOW_START 128

struct store_http {
        struct http_files files;
        char *directory; /* encoded path in front of names, without a trailing slash */
};

static char *make_target(const struct http_files *files, const struct store_read_range *range) {
        const struct store_http *http = (const struct store_http *)files;
        size_t size = strlen(http->directory), query_size = strlen(files->url.query);
        char *target = malloc(size + 1 + 3 * range->name_size + query_size + 1), *at = target;

        if (!target)
                return NULL;
        at = mempcpy(at, http->directory, size);
        *at++ = '/';
        at = http_url_encode(range->name, range->name_size, at);
        memcpy(at, files->url.query, query_size + 1);
        return target;
}

static void http_free(struct http_files *files) {
        struct store_http *http = (struct store_http *)files;

        http_files_deinit(files);
        free(http->directory);
        free(http);
}

static const struct http_files_kind kind = { .make_target = make_target, .free = http_free };

static bool is_manifest(const char *path) {
        size_t size = strlen(path);

        return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

static int set_places(struct store_http *http) {
        struct http_files *files = &http->files;

        files->place = (struct http_listing_place){
                .path = files->url.path,
                .query = files->url.query,
                .shown = files->store.url,
                .is_manifest = is_manifest(files->url.path),
                .index = &files->index,
        };
        http->directory = strdup(files->url.path);
        files->shown = strdup(files->store.url);
        files->store.endpoint = strdup(files->url.endpoint);
        if (!http->directory || !files->shown || !files->store.endpoint)
                return -ENOMEM;
        if (files->place.is_manifest) {
                *strrchr(http->directory, '/') = '\0';
                *strrchr(files->shown, '/') = '\0';
        }
        return 0;
}

int store_http_new(uv_loop_t *loop, const char *url, const struct http_client_options *options,
                   struct store **ret_store, const char **ret_message) {
        struct store_http *http = calloc(1, sizeof(*http));
        struct http_files *files = &http->files;
        int r;

        if (!http)
                return -ENOMEM;
        files->store.operations = &http_files_operations;
        files->store.window_start = STORE_HTTP_WINDOW_START;
        files->kind = &kind;
        files->loop = loop;
        files->index = &http_index_json;
        r = http_url_init(&files->url, url, ret_message);
        if (r == 0 && (r = source_url_normalize(url, &files->store.url)) == -EINVAL)
                *ret_message = "the URL names no host";
        if (r == 0)
                r = set_places(http);
        if (r == 0)
                r = http_client_new(loop, &files->url, options, &files->client);
        if (r < 0) {
                http_free(files);
                return r;
        }
        *ret_store = &files->store;
        return 0;
}

static int http_new(uv_loop_t *loop, const char *url, struct store **ret_store,
                    const char **ret_message) {
        return store_http_new(loop, url, &http_client_defaults, ret_store, ret_message);
}

static const char *const schemes[] = { "http", "https", NULL };

const struct store_type store_type_http = { .name = "http", .schemes = schemes, .new = http_new };
