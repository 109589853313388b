/* SPDX-License-Identifier: Apache-2.0 */
/* sources, runs, files, series: what the catalog holds. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/page.h"
#include "daemon/serve/server.h"

static const struct catalog *catalog_of(const struct rpc_call *call) {
        const struct peer *peer = call->userdata;

        return pipeline_catalog(server_pipeline(peer->server));
}

json_t *methods_source_rows(struct server *server) {
        const struct catalog *catalog = pipeline_catalog(server_pipeline(server));
        json_t *rows = json_array();

        for (size_t i = 0; i < catalog->source_count; i++)
                json_array_append_new(rows, catalog_json_source(catalog->sources[i]));
        return rows;
}

int methods_sources(struct rpc_call *call, json_t **ret_result) {
        const struct peer *peer = call->userdata;

        *ret_result = json_pack("{s:o}", "sources", methods_source_rows(peer->server));
        return *ret_result ? 0 : -ENOMEM;
}

static char *dup_name(const struct catalog_name *name, size_t *ret_size) {
        *ret_size = name->size;
        return strndup(name->bytes, name->size);
}

static size_t run_count(const struct catalog_run *run) {
        (void)run;
        return 1;
}

static size_t run_behind(const struct catalog_run *run, const char *item, size_t size) {
        (void)run, (void)item, (void)size;
        return 1;
}

static char *run_item(const struct catalog_run *run, size_t index, size_t *ret_size) {
        (void)run, (void)index;
        *ret_size = 0;
        return strdup("");
}

/* The filter: whether what is excluded is wanted, too. */
static bool run_matches(const struct catalog_run *run, size_t index, const void *filter) {
        (void)index;
        return *(const bool *)filter || !catalog_run_is_excluded(run);
}

static bool file_matches(const struct catalog_run *run, size_t index, const void *filter) {
        return *(const bool *)filter || !run->files[index]->excluded;
}

static json_t *run_row(const struct catalog_run *run, size_t index) {
        (void)index;
        return catalog_json_run(run);
}

static const struct page_items run_items = { "runs",   run_count,   run_behind,
                                             run_item, run_matches, run_row };

static size_t file_count(const struct catalog_run *run) {
        return run->file_count;
}

static size_t file_behind(const struct catalog_run *run, const char *item, size_t size) {
        size_t low = 0, high = run->file_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const struct catalog_name *path = &run->files[middle]->path;
                int order = memcmp(path->bytes, item, min_u64(path->size, size));

                if (order < 0 || (order == 0 && path->size <= size))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static char *file_name(const struct catalog_run *run, size_t index, size_t *ret_size) {
        return index < run->file_count ? dup_name(&run->files[index]->path, ret_size) : NULL;
}

static json_t *file_row(const struct catalog_run *run, size_t index) {
        return catalog_json_file(run->files[index]);
}

static const struct page_items file_items = { "files",   file_count,   file_behind,
                                              file_name, file_matches, file_row };

struct series_filter {
        struct params_globs tags, plugins;
};

static size_t series_count(const struct catalog_run *run) {
        return run->series_count;
}

/* Series only grow in number, in order of appearance: an index is as good as a name. */
static size_t series_behind(const struct catalog_run *run, const char *item, size_t size) {
        size_t index = size ? strtoull(item, NULL, 10) : 0;

        return size && index < run->series_count ? index + 1 : size ? run->series_count : 0;
}

static char *series_item(const struct catalog_run *run, size_t index, size_t *ret_size) {
        char *text = NULL;
        int size = index < run->series_count ? asprintf(&text, "%zu", index) : -1;

        if (size < 0)
                return NULL;
        *ret_size = (size_t)size;
        return text;
}

static const char *text_of(const struct catalog_name *name) {
        return name->bytes ? name->bytes : "";
}

static bool series_matches(const struct catalog_run *run, size_t index, const void *filter) {
        const struct series_filter *wanted = filter;
        const struct catalog_series *series = run->series[index];

        return params_globs_match(&wanted->tags, text_of(&series->tag)) &&
               params_globs_match(&wanted->plugins, text_of(&series->plugin));
}

static json_t *series_row(const struct catalog_run *run, size_t index) {
        return catalog_json_series(run->series[index]);
}

static const struct page_items series_items = { "series",    series_count,   series_behind,
                                                series_item, series_matches, series_row };

static int list(struct rpc_call *call, const struct page_items *items, const void *filter,
                json_t **ret_result) {
        struct catalog_source *source = NULL;
        CLEANUP(params_globs_deinit) struct params_globs runs = { 0 };
        int r = methods_find_source(call, &source);

        if (!r)
                r = params_globs(call, "run", &runs);
        return r ? r
                 : page_answer(call, catalog_of(call), source, &runs, items, filter, ret_result);
}

static int list_all(struct rpc_call *call, const struct page_items *items, json_t **ret_result) {
        bool excluded = false;
        int r = params_bool(call, "excluded", &excluded);

        return r ? r : list(call, items, &excluded, ret_result);
}

int methods_runs(struct rpc_call *call, json_t **ret_result) {
        return list_all(call, &run_items, ret_result);
}

int methods_files(struct rpc_call *call, json_t **ret_result) {
        return list_all(call, &file_items, ret_result);
}

/* The series of these ids, those that are known. */
static int series_by_ids(struct rpc_call *call, const json_t *ids, json_t **ret_result) {
        json_t *rows;
        size_t i;
        json_t *value;

        if (!json_is_array(ids))
                return rpc_fail(call, WIRE_E_PARAMS, "ids must be a list");
        if (json_array_size(ids) > PAGE_ROWS_MOST)
                return rpc_fail(call, WIRE_E_LIMIT, "ids: more than %u", PAGE_ROWS_MOST);
        rows = json_array();
        json_array_foreach((json_t *)ids, i, value) {
                const struct catalog_series *series;
                uint64_t id;

                if (!params_parse_id(value, &id)) {
                        json_decref(rows);
                        return rpc_fail(call, WIRE_E_PARAMS,
                                        "ids must be strings of 16 hex digits");
                }
                series = catalog_find_series(catalog_of(call), id);
                if (series)
                        json_array_append_new(rows, catalog_json_series(series));
        }
        *ret_result = json_pack("{s:o}", "series", rows);
        return *ret_result ? 0 : -ENOMEM;
}

static void filter_deinit(struct series_filter *filter) {
        params_globs_deinit(&filter->tags);
        params_globs_deinit(&filter->plugins);
}

int methods_series(struct rpc_call *call, json_t **ret_result) {
        CLEANUP(filter_deinit) struct series_filter filter = { 0 };
        const json_t *ids = json_object_get(call->params, "ids");
        int r;

        if (ids && !json_is_null(ids))
                return series_by_ids(call, ids, ret_result);
        r = params_globs(call, "tag", &filter.tags);
        if (!r)
                r = params_globs(call, "plugin", &filter.plugins);
        return r ? r : list(call, &series_items, &filter, ret_result);
}
