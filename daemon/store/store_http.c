/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files behind a web server: listed by nginx's JSON autoindex, or by a manifest if the URL ends in
 * ".json", and read by ranges. A write callback of libcurl copies straight into the reader's
 * buffer: the one copy.
 */
#include "daemon/store/store_http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_listing.h"
#include "daemon/store/types.h"

#define STORE_HTTP_WINDOW_START 128
/* of the text of an error that is read to keep its connection */
#define STORE_HTTP_ERROR_MOST_BYTES (256u << 10)

struct store_http {
        struct store store;
        uv_loop_t *loop;
        struct http_url url;
        struct http_client *client;
        struct http_listing_place place;
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
        uint64_t offset, size_bytes;
        uint8_t *buffer;
        uint64_t got_bytes;
        uint64_t ignored_bytes;
        enum {
                READ_UNJUDGED,
                READ_WANTED,
                READ_NO_RANGE,
                READ_BAD_RANGE,
                READ_TOO_LONG,
                READ_IGNORED
        } verdict;
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void *userdata;
};

/* ---- Reading ---- */

/* Where the answer says that its body lies in the object. */
static uint64_t body_bytes(const struct store_read *read, const struct http_answer *answer) {
        if (answer->status == 206)
                return answer->has_range ? answer->range_end - answer->range_begin
                                         : answer->content_bytes;
        return min_u64(answer->content_bytes, UINT64_MAX - read->offset);
}

static bool range_matches(const struct store_read *read, const struct http_answer *answer) {
        if (!answer->has_range || answer->range_begin != read->offset ||
            answer->range_end > read->offset + read->size_bytes)
                return false;
        if (answer->total_bytes != UINT64_MAX && answer->range_end > answer->total_bytes)
                return false;
        return answer->content_bytes == UINT64_MAX ||
               answer->content_bytes == answer->range_end - answer->range_begin;
}

/* Headers are known. What is the body? */
static void judge(struct store_read *read, const struct http_answer *answer) {
        if (answer->status == 206) {
                read->verdict = range_matches(read, answer) ? READ_WANTED : READ_BAD_RANGE;
        } else if (answer->status == 200) {
                bool fits = answer->content_bytes == UINT64_MAX ||
                            answer->content_bytes <= read->size_bytes;

                read->verdict = read->offset == 0 && fits ? READ_WANTED : READ_NO_RANGE;
        } else {
                read->verdict = READ_IGNORED;
        }
}

static bool on_body(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        struct store_read *read = userdata;

        if (read->verdict == READ_UNJUDGED)
                judge(read, answer);
        if (read->verdict == READ_IGNORED) {
                read->ignored_bytes += size;
                return read->ignored_bytes <= STORE_HTTP_ERROR_MOST_BYTES;
        }
        if (read->verdict != READ_WANTED)
                return false;
        if (size > min_u64(read->size_bytes, body_bytes(read, answer)) - read->got_bytes) {
                /* Without a Content-Length only the body itself says that it is too long. */
                read->verdict = answer->status == 200 ? READ_NO_RANGE : READ_TOO_LONG;
                return false;
        }
        memcpy(read->buffer + read->got_bytes, bytes, size);
        read->got_bytes += size;
        return true;
}

static char *shown_url(const struct store_read *read) {
        char *shown;

        if (asprintf(&shown, "%s%.*s", read->http->url.endpoint, (int)strcspn(read->target, "?"),
                     read->target) < 0)
                return NULL;
        return shown;
}

static uint64_t total_bytes(const struct store_read *read, const struct http_answer *answer,
                            bool complete) {
        if (answer->status != 200)
                return answer->total_bytes;
        if (answer->content_bytes == UINT64_MAX && complete && read->verdict == READ_WANTED)
                return read->got_bytes;
        return answer->content_bytes;
}

/* The answer is whole as far as HTTP can tell; is it what was asked for? */
static void set_failure(struct store_read *read, const struct http_answer *answer,
                        struct store_failure *ret_failure) {
        CLEANUP(freep) char *shown = shown_url(read);
        const char *thing = shown ? shown : read->http->store.url;
        bool empty_206 = answer->status == 206 && answer->content_bytes == 0 && !answer->has_range;

        if (read->verdict == READ_NO_RANGE)
                failure_set(ret_failure, STORE_NO_RANGE, "no-range",
                            "The server ignores ranges, and the object is too large: %s", thing);
        else if (empty_206)
                failure_set(ret_failure, STORE_END, "end", "Nothing at or behind offset %llu: %s",
                            (unsigned long long)read->offset, thing);
        else if (read->verdict == READ_BAD_RANGE)
                failure_set(ret_failure, STORE_TRANSIENT, "bad-range",
                            "Content-Range is not what was asked for: %s", thing);
        else if (read->verdict == READ_TOO_LONG)
                failure_set(ret_failure, STORE_TRANSIENT, "too-long",
                            "The body is longer than Content-Range says: %s", thing);
        else if (answer->status != 200 && answer->status != 206)
                failure_set_status(ret_failure, answer->status, thing);
        else if (read->got_bytes == 0 && read->size_bytes > 0 && answer->status == 200)
                failure_set(ret_failure, STORE_END, "end", "The object is empty: %s", thing);
        else if (body_bytes(read, answer) != UINT64_MAX &&
                 read->got_bytes < body_bytes(read, answer))
                failure_set(ret_failure, STORE_TRANSIENT, "short",
                            "The body is shorter than Content-Range says: %s", thing);
        else
                failure_clear(ret_failure);
        if (ret_failure->class == STORE_TRANSIENT || ret_failure->class == STORE_THROTTLED)
                ret_failure->retry_after_ms = answer->retry_after_ms;
}

static struct store_read *store_read_free(struct store_read *read) {
        free(read->target);
        free(read);
        return NULL;
}

static void on_answer(void *userdata, const struct http_answer *answer,
                      const struct store_failure *transport) {
        struct store_read *read = userdata;
        struct store_read_result result = { .failure = *transport };
        bool ours = read->verdict == READ_NO_RANGE || read->verdict == READ_BAD_RANGE ||
                    read->verdict == READ_TOO_LONG ||
                    (read->verdict == READ_IGNORED &&
                     read->ignored_bytes > STORE_HTTP_ERROR_MOST_BYTES);

        if (transport->class == STORE_OK && read->verdict == READ_UNJUDGED)
                judge(read, answer); /* there was no body */
        if (transport->class == STORE_OK || ours)
                set_failure(read, answer, &result.failure);
        if (read->verdict == READ_WANTED)
                result.size_bytes = read->got_bytes;
        result.total_bytes = total_bytes(read, answer, transport->class == STORE_OK);
        memcpy(result.tag, answer->tag, sizeof(result.tag));
        result.first_byte_ns = answer->first_byte_ns;
        result.total_ns = answer->total_ns;
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
        read->offset = range->offset;
        read->size_bytes = range->size_bytes;
        read->buffer = range->buffer;
        read->on_done = on_done;
        read->userdata = userdata;
        r = make_target(http, range->name, range->name_size, &read->target);
        if (r == 0)
                r = http_client_get(http->client, read->target, range->offset, range->size_bytes,
                                    &handler, read, &read->request);
        if (r < 0) {
                store_read_free(read);
                return r;
        }
        *ret_read = read;
        return 0;
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
