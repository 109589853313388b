/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_read.h"

struct store_list {
        struct http_files *files;
        struct http_listing *listing;
        struct store_list_callbacks callbacks;
        void *userdata;
};

struct store_read {
        struct http_files *files;
        struct http_request *request;
        struct http_read body;
        char *thing; /* for people */
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void *userdata;
};

/* ---- Reading ---- */

static struct store_read *read_free(struct store_read *read) {
        http_read_deinit(&read->body);
        free(read->thing);
        free(read);
        return NULL;
}

static bool on_body(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        struct store_read *read = userdata;

        return http_read_take(&read->body, answer, bytes, size);
}

static void on_answer(void *userdata, const struct http_answer *answer,
                      const struct store_failure *transport) {
        struct store_read *read = userdata;
        const struct http_files *files = read->files;
        struct store_read_result result;
        bool is_status = http_read_end(&read->body, answer, transport, read->thing, &result);

        if (is_status && files->kind->judge)
                files->kind->judge(answer->status, read->body.error ? read->body.error : "",
                                   read->body.error_size, read->thing, &result.failure);
        if (is_status && files->place.advise)
                files->place.advise(files->place.userdata, answer->status, &result.failure);
        if (files->kind->range_is_in_target)
                result.tag[0] = '\0';
        read->on_done(read->userdata, &result);
        read_free(read);
}

static int send_read(struct store_read *read, const struct store_read_range *range) {
        static const struct http_handler handler = { .on_body = on_body, .on_done = on_answer };
        const struct http_files *files = read->files;
        bool has_range = !files->kind->range_is_in_target;
        CLEANUP(freep) char *target = files->kind->make_target(files, range);
        struct http_query query = { .target = target,
                                    .begin = has_range ? range->offset : 0,
                                    .size_bytes = has_range ? range->size_bytes : 0 };

        if (!target)
                return -ENOMEM;
        if (asprintf(&read->thing, "%s/%.*s", files->shown, (int)range->name_size, range->name) <
            0) {
                read->thing = NULL;
                return -ENOMEM;
        }
        return http_client_send(files->client, &query, &handler, read, &read->request);
}

static int files_read(struct store *store, const struct store_read_range *range,
                      void (*on_done)(void *userdata, const struct store_read_result *result),
                      void *userdata, struct store_read **ret_read) {
        struct http_files *files = (struct http_files *)store;
        struct store_read *read;
        int r;

        if (range->size_bytes == 0 || range->offset > UINT64_MAX - range->size_bytes)
                return -EINVAL;
        read = calloc(1, sizeof(*read));
        if (!read)
                return -ENOMEM;
        read->files = files;
        read->on_done = on_done;
        read->userdata = userdata;
        http_read_init(&read->body, range, files->kind->judge != NULL);
        read->body.body_is_range = files->kind->range_is_in_target;
        r = send_read(read, range);
        if (r < 0) {
                read_free(read);
                return r;
        }
        *ret_read = read;
        return 0;
}

static uint64_t files_read_waits_since_ns(const struct store_read *read) {
        return http_request_waits_since_ns(read->request);
}

static bool files_read_cancel(struct store_read *read, void (*on_released)(void *userdata),
                              void *userdata) {
        (void)on_released;
        (void)userdata;
        http_request_cancel(read->request);
        read_free(read);
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

        list->files->list = NULL;
        free(list);
        ended.callbacks.on_done(ended.userdata, failure, counts);
}

static int files_list(struct store *store, const struct store_list_range *range,
                      const struct store_list_callbacks *callbacks, void *userdata,
                      struct store_list **ret_list) {
        static const struct store_list_callbacks own = { .on_row = on_row,
                                                         .on_unreadable = on_unreadable,
                                                         .on_done = on_listed };
        struct http_files *files = (struct http_files *)store;
        struct store_list *list;
        int r;

        if (range)
                return -ENOTSUP;
        MUST(!files->list);
        list = calloc(1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        list->files = files;
        list->callbacks = *callbacks;
        list->userdata = userdata;
        r = http_listing_start(files->loop, files->client, &files->place, &own, list,
                               &list->listing);
        if (r < 0) {
                free(list);
                return r;
        }
        files->list = list;
        *ret_list = list;
        return 0;
}

static void files_list_cancel(struct store_list *list) {
        list->files->list = NULL;
        http_listing_cancel(list->listing);
        free(list);
}

/* ---- Life ---- */

void http_files_deinit(struct http_files *files) {
        http_url_deinit(&files->url);
        free(files->shown);
        free(files->store.url);
        free(files->store.endpoint);
        free(files->store.identity);
}

static void on_client_closed(void *userdata) {
        struct http_files *files = userdata;
        void (*on_closed)(void *) = files->on_closed;
        void *on_closed_userdata = files->userdata;

        files->kind->free(files);
        if (on_closed)
                on_closed(on_closed_userdata);
}

static void files_close(struct store *store, void (*on_closed)(void *userdata), void *userdata) {
        struct http_files *files = (struct http_files *)store;

        files->on_closed = on_closed;
        files->userdata = userdata;
        if (files->list)
                files_list_cancel(files->list);
        http_client_close(files->client, on_client_closed, files);
}

const struct store_operations http_files_operations = {
        .list = files_list,
        .list_cancel = files_list_cancel,
        .read = files_read,
        .read_waits_since_ns = files_read_waits_since_ns,
        .read_cancel = files_read_cancel,
        .close = files_close,
};
