/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/store/store_harness.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/store_http.h"

#define GUARD_BYTES 64
#define GUARD 0xa5

const struct http_client_options impatient = {
        .connect_ms = 10000, .first_byte_ms = 1500, .progress_ms = 1500, .idle_ms = 600000
};

/*
 * libuv opens a pipe for signals with the first loop and never closes it: not a leak of the test
 * that is first to have one.
 */
__attribute__((constructor)) static void open_signal_pipe(void) {
        uv_loop_t loop;

        if (uv_loop_init(&loop) == 0)
                uv_loop_close(&loop);
}

static void init(struct store_harness *harness) {
        signal(SIGPIPE, SIG_IGN);
        memset(harness, 0, sizeof(*harness));
        ck_assert_int_eq(uv_loop_init(&harness->loop), 0);
}

void store_harness_open(struct store_harness *harness, const char *url) {
        const char *message = "";
        int r;

        init(harness);
        r = store_open(&harness->loop, url, &harness->store, &message);
        ck_assert_msg(r == 0, "%s: %d %s", url, r, message);
}

void store_harness_open_http(struct store_harness *harness, const char *url,
                             const struct http_client_options *options) {
        const char *message = "";

        init(harness);
        ck_assert_int_eq(store_http_new(&harness->loop, url, options, &harness->store, &message),
                         0);
}

static void forget_rows(struct store_harness *harness) {
        for (size_t i = 0; i < harness->row_count; i++)
                free(harness->rows[i].name);
        free(harness->rows);
        harness->rows = NULL;
        harness->row_count = harness->unreadable_count = 0;
}

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

void store_harness_close(struct store_harness *harness) {
        bool closed = false;

        harness->store->operations->close(harness->store, on_closed, &closed);
        uv_run(&harness->loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        ck_assert_int_eq(uv_loop_close(&harness->loop), 0);
        forget_rows(harness);
        free(harness->buffer);
        harness->buffer = NULL;
}

static void on_row(void *userdata, const struct store_row *row) {
        struct store_harness *harness = userdata;
        struct harness_row *kept;

        harness->rows = realloc(harness->rows, (harness->row_count + 1) * sizeof(*harness->rows));
        kept = &harness->rows[harness->row_count++];
        kept->name = malloc(row->name_size + 1);
        memcpy(kept->name, row->name, row->name_size);
        kept->name[row->name_size] = '\0';
        kept->name_size = row->name_size;
        kept->row = *row;
        kept->row.name = NULL;
}

static void on_unreadable(void *userdata, const char *directory, size_t size,
                          const struct store_failure *failure) {
        struct store_harness *harness = userdata;

        ck_assert_uint_lt(harness->unreadable_count, ARRAY_SIZE(harness->unreadable));
        snprintf(harness->unreadable[harness->unreadable_count++], sizeof(harness->unreadable[0]),
                 "%.*s: %s", (int)size, directory, failure->code);
}

/* uv_run() would go on to wait for events if this was a timer's doing. */
static void set_done(struct store_harness *harness) {
        harness->done = true;
        uv_stop(&harness->loop);
}

static void on_listed(void *userdata, const struct store_failure *failure,
                      const struct store_list_counts *counts) {
        struct store_harness *harness = userdata;

        harness->failure = *failure;
        harness->requests = counts->requests;
        set_done(harness);
}

static int compare_rows(const void *a, const void *b) {
        return strcmp(((const struct harness_row *)a)->name, ((const struct harness_row *)b)->name);
}

static void wait_until_done(struct store_harness *harness) {
        ck_assert(!harness->done); /* never from inside of the call */
        while (!harness->done)
                ck_assert(uv_run(&harness->loop, UV_RUN_ONCE) || harness->done);
}

void store_harness_list(struct store_harness *harness) {
        static const struct store_list_callbacks callbacks = { on_row, on_unreadable, on_listed,
                                                               NULL };

        forget_rows(harness);
        harness->done = false;
        ck_assert_int_eq(harness->store->operations->list(harness->store, NULL, &callbacks, harness,
                                                          &harness->list),
                         0);
        wait_until_done(harness);
        if (harness->row_count)
                qsort(harness->rows, harness->row_count, sizeof(*harness->rows), compare_rows);
}

const struct harness_row *store_harness_row(const struct store_harness *harness, const char *name) {
        for (size_t i = 0; i < harness->row_count; i++) {
                if (strcmp(harness->rows[i].name, name) == 0)
                        return &harness->rows[i];
        }
        return NULL;
}

static void on_read(void *userdata, const struct store_read_result *result) {
        struct store_harness *harness = userdata;

        harness->result = *result;
        set_done(harness);
}

void store_harness_read(struct store_harness *harness, const char *name, uint64_t offset,
                        uint64_t size) {
        struct store_read_range range = {
                .name = name, .name_size = strlen(name), .offset = offset, .size_bytes = size
        };
        struct store_read *read;

        free(harness->buffer);
        range.buffer = harness->buffer = malloc(size + GUARD_BYTES);
        memset(harness->buffer, GUARD, size + GUARD_BYTES);
        harness->done = false;
        ck_assert_int_eq(
                harness->store->operations->read(harness->store, &range, on_read, harness, &read),
                0);
        wait_until_done(harness);
        for (size_t i = 0; i < GUARD_BYTES; i++)
                ck_assert_uint_eq(harness->buffer[size + i], GUARD);
}
