/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs and files stand in arrays sorted by name, as paging and the order `sorted` want them.
 * Listings come sorted, or nearly, so that an insertion is nearly always an append.
 */
#include "daemon/discover/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "common/metadata.h"
#include "common/name_id.h"
#include "daemon/discover/filter.h"

const char *catalog_state_name(enum catalog_state state) {
        static const char *const names[] = {
                [CATALOG_QUEUED] = "queued",
                [CATALOG_LOADING] = "loading",
                [CATALOG_UNREADABLE] = "unreadable",
                [CATALOG_ARCHIVED] = "archived",
                [CATALOG_GONE] = "gone",
                [CATALOG_EMPTY] = "empty",
                [CATALOG_HEADER_ONLY] = "header only",
                [CATALOG_LOADED] = "loaded",
                [CATALOG_EXCLUDED] = "excluded",
        };

        return names[state];
}

static int name_set(struct catalog_name *name, const void *bytes, size_t size) {
        char *copy = malloc(size + 1);

        if (!copy)
                return -ENOMEM;
        memcpy(copy, bytes, size);
        copy[size] = '\0';
        free(name->bytes);
        *name = (struct catalog_name){ .bytes = copy, .size = size };
        return 0;
}

static int name_compare(const struct catalog_name *name, const char *bytes, size_t size) {
        int r = memcmp(name->bytes, bytes, name->size < size ? name->size : size);

        return r ? r : (name->size > size) - (name->size < size);
}

/* Makes room for one more pointer. */
static int array_reserve(void *array_pointer, size_t count, size_t *space) {
        void **array = *(void ***)array_pointer, **bigger;
        size_t wanted = *space ? 2 * *space : 4;

        if (count < *space)
                return 0;
        bigger = realloc(array, wanted * sizeof(array[0]));
        if (!bigger)
                return -ENOMEM;
        *(void ***)array_pointer = bigger;
        *space = wanted;
        return 0;
}

static void array_insert(void *array_pointer, size_t count, size_t at, void *value) {
        void **array = *(void ***)array_pointer;

        memmove(array + at + 1, array + at, (count - at) * sizeof(array[0]));
        array[at] = value;
}

static void array_remove(void *array_pointer, size_t count, size_t at) {
        void **array = *(void ***)array_pointer;

        memmove(array + at, array + at + 1, (count - at - 1) * sizeof(array[0]));
}

void catalog_init(struct catalog *catalog) {
        *catalog = (struct catalog){ 0 };
        cells_init(&catalog->cells);
        id_map_init(&catalog->runs);
        id_map_init(&catalog->files);
        id_map_init(&catalog->series);
}

static void series_free(struct catalog_series *series) {
        id_map_remove(&series->run->source->catalog->series, series->id);
        free(series->tag.bytes);
        free(series->plugin.bytes);
        free(series->content.bytes);
        free(series->display_name.bytes);
        free(series->description.bytes);
        free(series);
}

/* In the row's own memory: path, NUL, tag_room bytes. */
static char *tag_memory(struct catalog_file *file) {
        return file->memory + file->path.size + 1;
}

static void tag_free(struct catalog_file *file) {
        if (file->tag != tag_memory(file))
                free(file->tag);
}

static size_t file_bytes(size_t path_size, size_t tag_room) {
        return offsetof(struct catalog_file, memory) + path_size + 1 + tag_room;
}

static void file_free(struct catalog_file *file) {
        list_remove(&file->unread);
        tag_free(file);
        free(file->damage);
        free(file->failure);
        cells_give(&file->run->source->catalog->cells, file,
                   file_bytes(file->path.size, file->tag_room));
}

static void run_free(struct catalog_run *run) {
        for (size_t i = 0; i < run->series_count; i++)
                series_free(run->series[i]);
        for (size_t i = 0; i < run->file_count; i++)
                file_free(run->files[i]);
        free(run->series);
        free(run->files);
        free(run->name.bytes);
        free(run);
}

static void source_free(struct catalog_source *source) {
        for (size_t i = 0; i < source->run_count; i++)
                run_free(source->runs[i]);
        catalog_clear_unreadable(source);
        filter_free(source->filter);
        free(source->runs);
        free(source->name);
        free(source);
}

void catalog_deinit(struct catalog *catalog) {
        for (size_t i = 0; i < catalog->source_count; i++)
                source_free(catalog->sources[i]);
        for (size_t i = 0; i < catalog->endpoint_count; i++)
                free(catalog->endpoints[i].name);
        free(catalog->endpoints);
        free(catalog->sources);
        cells_deinit(&catalog->cells);
        id_map_deinit(&catalog->runs);
        id_map_deinit(&catalog->files);
        id_map_deinit(&catalog->series);
        *catalog = (struct catalog){ 0 };
}

int catalog_add_source(struct catalog *catalog, const char *name, struct store *take_store,
                       struct catalog_source **ret_source) {
        struct catalog_source **sources, *source;
        int r = -ENOMEM;

        if (catalog_find_source(catalog, take_store->url) ||
            (name && catalog_find_source(catalog, name))) {
                take_store->operations->close(take_store, NULL, NULL);
                return -EEXIST;
        }
        source = calloc(1, sizeof(*source));
        sources = realloc(catalog->sources, (catalog->source_count + 1) * sizeof(sources[0]));
        if (sources)
                catalog->sources = sources;
        if (source)
                source->name = strdup(name ? name : take_store->url);
        if (!source || !sources || !source->name) {
                if (source)
                        source_free(source);
                take_store->operations->close(take_store, NULL, NULL);
                return r;
        }
        source->catalog = catalog;
        source->store = take_store;
        if (take_store->price)
                source->price = *take_store->price;
        source->id = name_id_source(take_store->url);
        catalog->sources[catalog->source_count++] = source;
        *ret_source = source;
        return 0;
}

void catalog_remove_source(struct catalog_source *source) {
        struct catalog *catalog = source->catalog;

        MUST(source->run_count == 0 && catalog->sources[catalog->source_count - 1] == source);
        catalog->source_count--;
        source_free(source);
}

/* Without memory the count of the day is too low. */
static void keep_requests(struct catalog *catalog, const struct store *store) {
        struct catalog_endpoint *more;

        for (size_t i = 0; i < catalog->endpoint_count; i++)
                if (!strcmp(catalog->endpoints[i].name, store->endpoint)) {
                        request_count_merge_day(&catalog->endpoints[i].requests, &store->requests);
                        return;
                }
        more = realloc(catalog->endpoints, (catalog->endpoint_count + 1) * sizeof(more[0]));
        if (!more)
                return;
        catalog->endpoints = more;
        more += catalog->endpoint_count;
        *more = (struct catalog_endpoint){ .name = strdup(store->endpoint) };
        if (!more->name)
                return;
        request_count_merge_day(&more->requests, &store->requests);
        catalog->endpoint_count++;
}

void catalog_take_source(struct catalog_source *source, size_t index) {
        struct catalog *catalog = source->catalog;

        MUST(catalog->sources[index] == source);
        array_remove(&catalog->sources, catalog->source_count--, index);
        keep_requests(catalog, source->store);
}

void catalog_free_source(struct catalog_source *source) {
        source_free(source);
}

struct catalog_source *catalog_find_source(const struct catalog *catalog, const char *name) {
        for (size_t i = 0; i < catalog->source_count; i++)
                if (!strcmp(catalog->sources[i]->name, name) ||
                    !strcmp(catalog->sources[i]->store->url, name))
                        return catalog->sources[i];
        return NULL;
}

/*
 * Where the owner of that name is in an array of pointers that is sorted by name, or would be put.
 * name_at is the offset of the name in what the pointers point to. The last place is looked at
 * first.
 */
static size_t place_of(const void *array, size_t count, size_t name_at, const char *name,
                       size_t size, bool *ret_found) {
        char *const *pointers = array;
        size_t low = 0, high = count, middle = count ? count - 1 : 0;

        while (low < high) {
                if (name_compare(
                            (const struct catalog_name *)(const void *)(pointers[middle] + name_at),
                            name, size) < 0)
                        low = middle + 1;
                else
                        high = middle;
                middle = (low + high) / 2;
        }
        *ret_found = low < count &&
                     name_compare(
                             (const struct catalog_name *)(const void *)(pointers[low] + name_at),
                             name, size) == 0;
        return low;
}

static size_t run_place(const struct catalog_source *source, const char *name, size_t size,
                        bool *ret_found) {
        return place_of(source->runs, source->run_count, offsetof(struct catalog_run, name), name,
                        size, ret_found);
}

static size_t file_place(const struct catalog_run *run, const char *path, size_t size,
                         bool *ret_found) {
        return place_of(run->files, run->file_count, offsetof(struct catalog_file, path), path,
                        size, ret_found);
}

static int run_add(struct catalog_source *source, const char *name, size_t size,
                   struct catalog_run **ret_run) {
        struct catalog_run *run;
        bool found;
        size_t at = run_place(source, name, size, &found);
        int r;

        if (found) {
                *ret_run = source->runs[at];
                return 0;
        }
        r = array_reserve(&source->runs, source->run_count, &source->run_space);
        if (r < 0)
                return r;
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->source = source;
        run->id = name_id_run(source->store->url, name, size);
        r = name_set(&run->name, name, size);
        if (r == 0)
                r = id_map_add(&source->catalog->runs, run->id, run);
        if (r < 0) {
                run_free(run);
                return r;
        }
        array_insert(&source->runs, source->run_count++, at, run);
        *ret_run = run;
        return 0;
}

static void run_remove(struct catalog_run *run) {
        struct catalog_source *source = run->source;
        bool found;
        size_t at = run_place(source, run->name.bytes, run->name.size, &found);

        MUST(found);
        array_remove(&source->runs, source->run_count--, at);
        id_map_remove(&source->catalog->runs, run->id);
        run_free(run);
}

static struct catalog_file *file_new(struct catalog_run *run, const char *path, size_t size,
                                     size_t tag_size) {
        size_t tag_room = min_u64(tag_size + 1, UINT8_MAX);
        struct catalog_file *file = cells_take(&run->source->catalog->cells,
                                               file_bytes(size, tag_room));

        if (!file)
                return NULL;
        memcpy(file->memory, path, size);
        file->path = (struct catalog_name){ .bytes = file->memory, .size = size };
        file->tag = tag_memory(file);
        file->tag_room = (uint8_t)tag_room;
        list_init(&file->unread);
        file->run = run;
        file->id = name_id_file(run->source->store->url, path, size);
        file->listed_bytes = UINT64_MAX;
        file->mtime_ns = INT64_MIN;
        return file;
}

static int file_add(struct catalog_run *run, const char *path, size_t size, size_t tag_size,
                    size_t at, struct catalog_file **ret_file) {
        struct catalog_file *file = file_new(run, path, size, tag_size);
        int r;

        if (!file)
                return -ENOMEM;
        r = array_reserve(&run->files, run->file_count, &run->file_space);
        if (r == 0)
                r = id_map_add(&run->source->catalog->files, file->id, file);
        if (r < 0) {
                file_free(file);
                return r;
        }
        array_insert(&run->files, run->file_count++, at, file);
        run->source->file_count++;
        *ret_file = file;
        return 0;
}

int catalog_add_file(struct catalog_source *source, const char *path, size_t size, size_t tag_size,
                     struct catalog_file **ret_file, bool *ret_added) {
        const char *slash = memrchr(path, '/', size);
        struct catalog_run *run;
        bool found;
        size_t at;
        int r;

        r = slash ? run_add(source, path, (size_t)(slash - path), &run)
                  : run_add(source, ".", 1, &run);
        if (r < 0)
                return r;
        at = file_place(run, path, size, &found);
        if (ret_added)
                *ret_added = !found;
        if (found) {
                *ret_file = run->files[at];
                return 0;
        }
        r = file_add(run, path, size, tag_size, at, ret_file);
        if (r < 0 && run->file_count == 0)
                run_remove(run);
        return r;
}

int catalog_set_tag(struct catalog_file *file, const char *tag) {
        char *kept = tag_memory(file);
        size_t size = strlen(tag) + 1;

        if (size <= file->tag_room)
                memmove(kept, tag, size);
        else
                kept = strdup(tag);
        if (!kept)
                return -ENOMEM;
        tag_free(file);
        file->tag = kept;
        return 0;
}

struct catalog_file *catalog_find_file(const struct catalog *catalog, uint64_t id) {
        return id_map_find(&catalog->files, id);
}

struct catalog_run *catalog_find_run(const struct catalog *catalog, uint64_t id) {
        return id_map_find(&catalog->runs, id);
}

struct catalog_series *catalog_find_series(const struct catalog *catalog, uint64_t id) {
        return id_map_find(&catalog->series, id);
}

void catalog_remove_file(struct catalog_file *file) {
        struct catalog_run *run = file->run;
        bool found;
        size_t at = file_place(run, file->path.bytes, file->path.size, &found);

        MUST(found && !file->blocks);
        catalog_set_excluded(file, NULL);
        catalog_set_state(file, file->state, false);
        array_remove(&run->files, run->file_count--, at);
        run->source->file_count--;
        id_map_remove(&run->source->catalog->files, file->id);
        file_free(file);
        if (run->file_count == 0)
                run_remove(run);
}

void catalog_requests_today(const struct catalog *catalog, const char *endpoint, int64_t now_s,
                            uint64_t sums[REQUEST_KINDS]) {
        for (size_t i = 0; i < catalog->source_count; i++) {
                const struct store *store = catalog->sources[i]->store;

                if (!strcmp(store->endpoint, endpoint))
                        request_count_today(&store->requests, now_s, sums);
        }
        for (size_t i = 0; i < catalog->endpoint_count; i++)
                if (!strcmp(catalog->endpoints[i].name, endpoint))
                        request_count_today(&catalog->endpoints[i].requests, now_s, sums);
}

void catalog_clear_unreadable(struct catalog_source *source) {
        for (size_t i = 0; i < source->unreadable_count; i++)
                free(source->unreadable[i].directory.bytes);
        free(source->unreadable);
        source->unreadable = NULL;
        source->unreadable_count = 0;
}

int catalog_add_unreadable(struct catalog_source *source, const char *directory, size_t size,
                           const struct store_failure *failure) {
        struct catalog_unreadable *bigger = realloc(
                source->unreadable, (source->unreadable_count + 1) * sizeof(bigger[0]));
        int r;

        if (!bigger)
                return -ENOMEM;
        source->unreadable = bigger;
        bigger += source->unreadable_count;
        *bigger = (struct catalog_unreadable){ .failure = *failure };
        r = name_set(&bigger->directory, directory, size);
        if (r == 0)
                source->unreadable_count++;
        return r;
}

void catalog_set_failure(struct catalog_file *file, const struct store_failure *failure) {
        if (failure && !file->failure)
                file->failure = malloc(sizeof(*file->failure));
        if (failure && file->failure) {
                *file->failure = *failure;
                return;
        }
        free(file->failure);
        file->failure = NULL;
}

void catalog_set_state(struct catalog_file *file, enum catalog_state state, bool settled) {
        struct catalog_source *source = file->run->source;

        source->settled_count += settled;
        source->settled_count -= file->settled;
        file->settled = settled;
        file->state = state;
}

void catalog_set_excluded(struct catalog_file *file, const char *why) {
        size_t change = (size_t)(why != NULL) - (size_t)(file->excluded != NULL);

        file->excluded = why;
        file->run->excluded_count += change;
        file->run->source->excluded_count += change;
        if (change)
                catalog_set_state(file, why ? CATALOG_EXCLUDED : CATALOG_QUEUED, why != NULL);
}

enum catalog_state catalog_run_state(const struct catalog_run *run) {
        enum catalog_state state = run->file_count ? CATALOG_EXCLUDED : CATALOG_GONE;

        for (size_t i = 0; i < run->file_count; i++)
                if (run->files[i]->state < state)
                        state = run->files[i]->state;
        return state;
}

/*
 * The run's series of that tag. -EEXIST: another tag has its id (a collision): that series stays
 * out of the catalog.
 */
static int series_add(struct catalog_run *run, uint64_t id, struct extent_string tag,
                      struct catalog_series **ret_series) {
        struct id_map *map = &run->source->catalog->series;
        struct catalog_series *series = id_map_find(map, id);
        int r;

        if (series) {
                *ret_series = series;
                return series->run == run && name_compare(&series->tag, (const char *)tag.bytes,
                                                          tag.size) == 0
                               ? 0
                               : -EEXIST;
        }
        r = array_reserve(&run->series, run->series_count, &run->series_space);
        if (r < 0)
                return r;
        series = calloc(1, sizeof(*series));
        if (!series)
                return -ENOMEM;
        series->run = run;
        series->id = id;
        r = name_set(&series->tag, tag.bytes, tag.size);
        if (r == 0)
                r = id_map_add(map, id, series);
        if (r < 0) {
                free(series->tag.bytes);
                free(series);
                return r;
        }
        run->series[run->series_count++] = series;
        *ret_series = series;
        return 0;
}

static struct extent_string name_string(const struct catalog_name *name) {
        return (struct extent_string){ .bytes = (const uint8_t *)name->bytes, .size = name->size };
}

static struct metadata series_metadata(const struct catalog_series *series) {
        return (struct metadata){
                .plugin = name_string(&series->plugin),
                .content = name_string(&series->content),
                .display_name = name_string(&series->display_name),
                .description = name_string(&series->description),
                .data_class = series->data_class,
                .written_as = series->written_as,
                .is_given = series->has_metadata,
        };
}

/*
 * True if the extent of that file stands before the one that the series' metadata is from. What a
 * file said that is gone stands.
 */
static bool is_earlier(const struct catalog_series *series, const struct catalog_file *file,
                       uint64_t offset) {
        const struct catalog_file *from;

        if (series->from_file == file->id)
                return offset < series->from_offset;
        from = catalog_find_file(file->run->source->catalog, series->from_file);
        return from && name_compare(&from->path, file->path.bytes, file->path.size) > 0;
}

static bool is_same(struct extent_string a, struct extent_string b) {
        return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

static int series_set(struct catalog_series *series, const struct metadata *metadata) {
        struct catalog_name *const names[] = { &series->plugin, &series->content,
                                               &series->display_name, &series->description };
        const struct extent_string *const strings[] = { &metadata->plugin, &metadata->content,
                                                        &metadata->display_name,
                                                        &metadata->description };
        struct catalog_name copies[ARRAY_SIZE(names)] = { 0 };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(names) && r == 0; i++)
                r = name_set(&copies[i], strings[i]->size ? (const void *)strings[i]->bytes : "",
                             strings[i]->size);
        /* The old names may be what was copied from: they go last. */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                free(r < 0 ? copies[i].bytes : names[i]->bytes);
                if (r == 0)
                        *names[i] = copies[i];
        }
        if (r < 0)
                return r;
        series->data_class = metadata->data_class;
        series->written_as = metadata->written_as;
        series->has_metadata = metadata->is_given;
        return 0;
}

/* Keeps where the value is that the row is from: its first record. */
static void note_left_out(struct catalog_series *series, const struct extent_view *view,
                          const struct extent_series *row) {
        for (uint32_t i = 0; i < view->record_count; i++) {
                const struct extent_record *record = extent_view_record(view, i);

                if (extent_view_series_of(view, record) != row)
                        continue;
                series->is_left_out = true;
                series->left_out_offset = record->source_offset;
                series->left_out_index = record->value_index;
                return;
        }
}

/* A row of an extent. The extent is counted already. */
static int series_learn(struct catalog_series *series, const struct catalog_file *file,
                        const struct extent_view *view, const struct extent_series *row) {
        uint64_t offset = view->header->begin_offset;
        bool is_first = series->extents == 1 && !(row->flags & EXTENT_SERIES_AGAIN);
        bool earlier = series->has_metadata && is_earlier(series, file, offset);
        struct metadata metadata = earlier ? (struct metadata){ 0 } : series_metadata(series);

        if ((series->data_class && !earlier) || !metadata_update(&metadata, view, row) ||
            (series->data_class && !metadata.data_class))
                return 0;
        if (!is_first && !is_same(name_string(&series->plugin), metadata.plugin))
                series->is_several_plugins = true;
        series->from_file = file->id;
        series->from_offset = offset;
        series->is_left_out = false;
        if (row->flags & EXTENT_SERIES_LEFT_OUT)
                note_left_out(series, view, row);
        return series_set(series, &metadata);
}

int catalog_learn(const struct catalog_file *file, const struct extent_header *extent) {
        struct extent_view view;
        int r = extent_view_init(&view, extent, extent->size_bytes);

        for (uint32_t i = 0; r == 0 && i < view.series_count; i++) {
                const struct extent_series *row = &view.series[i];
                struct catalog_series *series = NULL;

                r = series_add(file->run, row->series_id, extent_view_tag(&view, row), &series);
                if (r == -EEXIST)
                        r = 0;
                else if (r == 0) {
                        series->extents += !(row->flags & EXTENT_SERIES_AGAIN);
                        r = series_learn(series, file, &view, row);
                }
        }
        return r;
}
