/* SPDX-License-Identifier: Apache-2.0 */
/* A place is `source id/run/item`, names as hex: opaque to the client, and safe for any bytes. */
#include "daemon/serve/page.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/serve/name.h"

#define BYTES_MOST (4u << 20)
#define LOOKED_AT_MOST 50000u

/* Where to go on: behind an item of a run of a source. */
struct place {
        size_t source_index;
        char *run, *item; /* NULL: from the start */
        size_t run_size, item_size;
};

struct page {
        const struct page_items *items;
        const struct params_globs *runs;
        const void *filter;
        json_t *rows;
        size_t limit, bytes, looked_at;
        /* what was looked at last; NULL: nothing yet. Of a run that does not match, any item */
        const struct catalog_run *last_run;
        size_t last_index;
};

static void place_deinit(struct place *place) {
        free(place->run);
        free(place->item);
}

static bool find_source(const struct catalog *catalog, uint64_t id, size_t *ret_index) {
        for (size_t i = 0; i < catalog->source_count; i++) {
                if (catalog->sources[i]->id == id) {
                        *ret_index = i;
                        return true;
                }
        }
        return false;
}

static bool parse_id(const char *text, uint64_t *ret_id) {
        json_t *id = json_stringn(text, strnlen(text, 16));
        bool right = params_parse_id(id, ret_id);

        json_decref(id);
        return right && text[16] == '/';
}

static int parse_place(struct rpc_call *call, const struct catalog *catalog, struct place *place) {
        const char *text = NULL, *slash;
        uint64_t id;
        int r = params_string(call, "after", &text);

        if (r || !text)
                return r;
        if (!parse_id(text, &id) || !find_source(catalog, id, &place->source_index))
                return rpc_fail(call, WIRE_E_PARAMS, "after: not a place of this list");
        slash = strchr(text + 17, '/');
        if (slash) {
                place->run = name_from_hex(text + 17, (size_t)(slash - text - 17),
                                           &place->run_size);
                place->item = name_from_hex(slash + 1, strlen(slash + 1), &place->item_size);
        }
        return place->run && place->item
                       ? 0
                       : rpc_fail(call, WIRE_E_PARAMS, "after: not a place of this list");
}

static json_t *print_place(const struct page *page) {
        const struct catalog_run *run = page->last_run;
        size_t item_size = 0;
        CLEANUP(freep) char *item = page->items->name(run, page->last_index, &item_size);
        json_t *source_id = name_id(run->source->id);
        json_t *run_hex = name_hex(run->name.bytes, run->name.size);
        json_t *item_hex = item ? name_hex(item, item_size) : NULL;
        json_t *place = json_sprintf("%s/%s/%s", json_string_value(source_id),
                                     json_string_value(run_hex),
                                     item_hex ? json_string_value(item_hex) : "");

        json_decref(source_id);
        json_decref(run_hex);
        json_decref(item_hex);
        return place;
}

static int compare(const struct catalog_name *name, const char *bytes, size_t size) {
        int order = memcmp(name->bytes, bytes, name->size < size ? name->size : size);

        return order ? order : (name->size > size) - (name->size < size);
}

/* The first run that is not before the named one. */
static size_t find_run(const struct catalog_source *source, const struct place *place) {
        size_t low = 0, high = source->run_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare(&source->runs[middle]->name, place->run, place->run_size) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool is_full(const struct page *page) {
        return json_array_size(page->rows) >= page->limit || page->bytes >= BYTES_MOST ||
               page->looked_at >= LOOKED_AT_MOST;
}

/* Adds the run's items from index on. 0; 1: the page is full and something is left; -ENOMEM. */
static int take_run(struct page *page, const struct catalog_run *run, size_t index) {
        size_t count = page->items->count(run);

        for (; index < count; index++) {
                if (is_full(page))
                        return 1;
                page->looked_at++;
                page->last_run = run;
                page->last_index = index;
                if (page->items->matches(run, index, page->filter)) {
                        json_t *row = page->items->row(run, index);

                        page->bytes += json_dumpb(row, NULL, 0, JSON_COMPACT);
                        if (json_array_append_new(page->rows, row))
                                return -ENOMEM;
                }
        }
        return 0;
}

static int take_source(struct page *page, const struct catalog_source *source,
                       const struct place *place) {
        size_t first = place->run ? find_run(source, place) : 0;

        for (size_t i = first; i < source->run_count; i++) {
                const struct catalog_run *run = source->runs[i];
                bool begun = place->run && i == first &&
                             !compare(&run->name, place->run, place->run_size);
                int r;

                if (is_full(page))
                        return 1;
                if (!params_globs_match(page->runs, run->name.bytes)) {
                        page->looked_at++;
                        page->last_run = run;
                        page->last_index = 0;
                        continue;
                }
                r = take_run(page, run,
                             begun ? page->items->behind(run, place->item, place->item_size) : 0);
                if (r)
                        return r;
        }
        return 0;
}

static int take_sources(struct page *page, const struct catalog *catalog,
                        const struct catalog_source *source, const struct place *place) {
        static const struct place start = { 0 };
        int r = 0;

        for (size_t i = place->source_index; !r && i < catalog->source_count; i++) {
                if (!source || source == catalog->sources[i])
                        r = take_source(page, catalog->sources[i],
                                        i == place->source_index ? place : &start);
        }
        return r;
}

static int page_fill(struct rpc_call *call, struct page *page, const struct catalog *catalog,
                     const struct catalog_source *source, json_t **ret_result) {
        CLEANUP(place_deinit) struct place place = { 0 };
        int r = parse_place(call, catalog, &place);
        json_t *result;

        if (!r)
                r = take_sources(page, catalog, source, &place);
        if (r < 0 || r == RPC_FAILED)
                return r;
        result = json_pack("{s:O}", page->items->list, page->rows);
        if (r && page->last_run) /* a page has room for one item at least, so there was one */
                json_object_set_new(result, "next", print_place(page));
        *ret_result = result;
        return result ? 0 : -ENOMEM;
}

int page_answer(struct rpc_call *call, const struct catalog *catalog,
                const struct catalog_source *source, const struct params_globs *runs,
                const struct page_items *items, const void *filter, json_t **ret_result) {
        struct page page = {
                .items = items, .runs = runs, .filter = filter, .limit = PAGE_ROWS_MOST
        };
        uint64_t limit = PAGE_ROWS_MOST;
        int r = 0;

        if (json_object_get(call->params, "limit"))
                r = params_u64(call, "limit", INT64_MAX, &limit);
        if (r)
                return r;
        page.limit = (size_t)max_u64(1, min_u64(limit, PAGE_ROWS_MOST));
        page.rows = json_array();
        r = page.rows ? page_fill(call, &page, catalog, source, ret_result) : -ENOMEM;
        json_decref(page.rows);
        return r;
}
