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
#include "daemon/core/config.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_files.h"
#include "daemon/store/types.h"

#define STORE_HTTP_WINDOW_START 128

struct store_http {
        struct http_files files;
        char *directory;   /* encoded path in front of names, without a trailing slash */
        char *bearer_file; /* NULL: none */
        char *certificate; /* NULL: none */
        bool is_tls;
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
        free(http->bearer_file);
        free(http->certificate);
        free(http);
}

/* What proves who asks, or would. */
static void advise(void *userdata, long status, struct store_failure *failure) {
        const struct store_http *http = userdata;

        if (status == 400 && http->is_tls && !http->certificate)
                failure_advise(failure, "perhaps the server wants a certificate: "
                                        "client_certificate of the source");
        else if (status == 400 && http->certificate)
                failure_advise(failure, "perhaps the server does not take the certificate of %s",
                               http->certificate);
        else if (status != 401)
                return;
        else if (http->bearer_file)
                failure_advise(failure, "the token of %s (bearer_file) was not taken",
                               http->bearer_file);
        else if (http->files.url.user)
                failure_advise(failure, "the user and the password of the URL were not taken");
        else
                failure_advise(failure, "the server wants a login: ~/.netrc, a user and a password "
                                        "in the URL, or bearer_file of the source");
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
                .advise = advise,
                .userdata = http,
        };
        http->directory = strdup(files->url.path);
        files->shown = strdup(files->store.url);
        files->store.endpoint = strdup(files->url.endpoint);
        http->is_tls = strcmp(files->url.scheme, "https") == 0;
        if (!http->directory || !files->shown || !files->store.endpoint)
                return -ENOMEM;
        if (files->place.is_manifest) {
                *strrchr(http->directory, '/') = '\0';
                *strrchr(files->shown, '/') = '\0';
        }
        return 0;
}

/* -EINVAL: *ret_message says why; -ENOMEM. */
static int set_login(struct store_http *http, const struct http_client_options *options,
                     const char **ret_message) {
        if (options->bearer_file && http->files.url.user)
                *ret_message = "bearer_file is for URLs without a user";
        else if (options->client_key && !options->client_certificate)
                *ret_message = "client_key is for a client_certificate, and there is none";
        else if (options->client_certificate && !http->is_tls)
                *ret_message = "client_certificate is for https:// only";
        else if ((options->bearer_file && !(http->bearer_file = strdup(options->bearer_file))) ||
                 (options->client_certificate &&
                  !(http->certificate = strdup(options->client_certificate))))
                return -ENOMEM;
        else
                return 0;
        return -EINVAL;
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
                r = set_login(http, options, ret_message);
        if (r == 0)
                r = http_client_new(loop, &files->url, options, &files->client);
        if (r < 0) {
                http_free(files);
                return r;
        }
        *ret_store = &files->store;
        return 0;
}

static int http_open(uv_loop_t *loop, const char *url, const struct config_access *access,
                     struct store **ret_store, const char **ret_message) {
        struct http_client_options options = http_client_defaults;

        options.bearer_file = access->bearer_file;
        options.client_certificate = access->client_certificate;
        options.client_key = access->client_key;
        return store_http_new(loop, url, &options, ret_store, ret_message);
}

static const char *const schemes[] = { "http", "https", NULL };

const struct store_type store_type_http = { .name = "http",
                                            .schemes = schemes,
                                            .new_with = http_open };
