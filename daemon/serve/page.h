/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page of a list over the catalog: rows in the order of sources, runs and items, from behind a
 * place that the client names with `after`. A place is made of names, not of indexes or pointers,
 * so it stays right while the catalog changes.
 *
 * A page ends at its limit of rows, at a few MiB, or when so much was looked at without a match
 * that others had to wait; it may therefore have fewer rows than its limit, or none, and still a
 * `next`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/params.h"

#define PAGE_ROWS_MOST 1000u

/* What the items of a run are. */
struct page_items {
        const char *list; /* the member that has the rows */
        size_t (*count)(const struct catalog_run *run);
        /* Index of the first item behind the named one. */
        size_t (*behind)(const struct catalog_run *run, const char *item, size_t size);
        /*
         * The name of an item in a place; the caller's. NULL: there is no such item, or no memory.
         */
        char *(*name)(const struct catalog_run *run, size_t index, size_t *ret_size);
        bool (*matches)(const struct catalog_run *run, size_t index, const void *filter);
        json_t *(*row)(const struct catalog_run *run, size_t index);
};

/*
 * Answers a call with one page. source: only this one (NULL: all); runs: globs of run names; filter
 * goes to matches(). Reads `after` and `limit` of the call. Outcomes as a handler's.
 */
int page_answer(struct rpc_call *call, const struct catalog *catalog,
                const struct catalog_source *source, const struct params_globs *runs,
                const struct page_items *items, const void *filter, json_t **ret_result);
