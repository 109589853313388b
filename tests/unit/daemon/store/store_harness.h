/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store on a loop of its own, used as if it were blocking. Everything here asserts that it works.
 */
#pragma once

#include <uv.h>

#include "daemon/store/http_client.h"
#include "daemon/store/store.h"

struct harness_row {
        char *name;
        size_t name_size;
        struct store_row row; /* name is not valid */
};

struct store_harness {
        uv_loop_t loop;
        struct store *store;
        struct harness_row *rows; /* of the last listing, sorted by name */
        size_t row_count;
        char unreadable[16][256]; /* "directory: code" */
        size_t unreadable_count;
        struct store_failure failure;
        uint64_t requests;
        bool done;
        struct store_list *list;
        /* of the last read, size_bytes of the result and guard bytes behind what was asked for */
        uint8_t *buffer;
        struct store_read_result result;
};

/* Deadlines that tests can wait for. */
extern const struct http_client_options impatient;

void store_harness_open(struct store_harness *harness, const char *url);
void store_harness_open_http(struct store_harness *harness, const char *url,
                             const struct http_client_options *options);

/* Asserts that nothing is left on the loop. */
void store_harness_close(struct store_harness *harness);

void store_harness_list(struct store_harness *harness);
/* NULL: not there */
const struct harness_row *store_harness_row(const struct store_harness *harness, const char *name);

/* Asserts that nothing was written behind the buffer. */
void store_harness_read(struct store_harness *harness, const char *name, uint64_t offset,
                        uint64_t size);
