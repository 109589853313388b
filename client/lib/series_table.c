/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/series_table.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"

#define TABLE_FIRST_SPACE 64

void series_table_init(struct series_table *table) {
        *table = (struct series_table){ 0 };
}

static void text_free(struct hr_text *text) {
        free((char *)(uintptr_t)text->bytes);
}

static int text_copy(struct extent_string string, struct hr_text *ret_text) {
        char *bytes = malloc(string.size + 1);

        if (!bytes)
                return -ENOMEM;
        if (string.size)
                memcpy(bytes, string.bytes, string.size);
        bytes[string.size] = '\0';
        *ret_text = (struct hr_text){ bytes, string.size };
        return 0;
}

static bool text_equals(struct hr_text text, struct extent_string string) {
        return text.size == string.size &&
               (string.size == 0 || memcmp(text.bytes, string.bytes, string.size) == 0);
}

static struct extent_string string_of(struct hr_text text) {
        return (struct extent_string){ (const uint8_t *)text.bytes, text.size };
}

static struct known_series *series_free(struct known_series *series) {
        struct hr_series *public;

        if (!series)
                return NULL;
        public = &series->public;
        text_free(&public->run);
        text_free(&public->tag);
        text_free(&public->plugin);
        text_free(&public->content);
        text_free(&public->display_name);
        text_free(&public->description);
        free(series);
        return NULL;
}

static void series_freep(struct known_series **series) {
        series_free(*series);
}

static struct known_file *file_free(struct known_file *file) {
        if (!file)
                return NULL;
        text_free(&file->public.source);
        text_free(&file->public.run);
        text_free(&file->public.path);
        free(file);
        return NULL;
}

static void file_freep(struct known_file **file) {
        file_free(*file);
}

void series_table_deinit(struct series_table *table) {
        for (size_t i = 0; i < table->series_space; i++) {
                for (struct known_series *series = table->series[i], *next; series; series = next) {
                        next = series->next;
                        series_free(series);
                }
        }
        for (size_t i = 0; i < table->file_space; i++) {
                for (struct known_file *file = table->files[i], *next; file; file = next) {
                        next = file->next;
                        file_free(file);
                }
        }
        free(table->series);
        free(table->files);
        *table = (struct series_table){ 0 };
}

static int series_grow(struct series_table *table) {
        size_t space = table->series_space ? 2 * table->series_space : TABLE_FIRST_SPACE;
        struct known_series **chains;

        if (table->series_count < table->series_space)
                return 0;
        chains = calloc(space, sizeof(struct known_series *));
        if (!chains)
                return -ENOMEM;
        for (size_t i = 0; i < table->series_space; i++) {
                for (struct known_series *series = table->series[i], *next; series; series = next) {
                        next = series->next;
                        series->next = chains[series->public.id & (space - 1)];
                        chains[series->public.id & (space - 1)] = series;
                }
        }
        free(table->series);
        table->series = chains;
        table->series_space = space;
        return 0;
}

static int files_grow(struct series_table *table) {
        size_t space = table->file_space ? 2 * table->file_space : TABLE_FIRST_SPACE;
        struct known_file **chains;

        if (table->file_count < table->file_space)
                return 0;
        chains = calloc(space, sizeof(struct known_file *));
        if (!chains)
                return -ENOMEM;
        for (size_t i = 0; i < table->file_space; i++) {
                for (struct known_file *file = table->files[i], *next; file; file = next) {
                        next = file->next;
                        file->next = chains[file->public.id & (space - 1)];
                        chains[file->public.id & (space - 1)] = file;
                }
        }
        free(table->files);
        table->files = chains;
        table->file_space = space;
        return 0;
}

static int series_new(uint64_t source_id, uint64_t id, uint32_t number, struct extent_string run,
                      struct extent_string tag, struct known_series **ret_series) {
        CLEANUP(series_freep) struct known_series *series = calloc(1, sizeof(*series));
        const struct extent_string none = { NULL, 0 };
        struct hr_series *public;

        if (!series)
                return -ENOMEM;
        public = &series->public;
        public->id = id;
        public->number = number;
        series->source_id = source_id;
        if (text_copy(run, &public->run) < 0 || text_copy(tag, &public->tag) < 0 ||
            text_copy(none, &public->plugin) < 0 || text_copy(none, &public->content) < 0 ||
            text_copy(none, &public->display_name) < 0 || text_copy(none, &public->description) < 0)
                return -ENOMEM;
        *ret_series = steal_pointer(&series);
        return 0;
}

int series_table_add(struct series_table *table, uint64_t source_id, uint64_t id,
                     struct extent_string run, struct extent_string tag,
                     struct known_series **ret_series, bool *ret_added) {
        struct known_series *series, **chain;
        int r = series_grow(table);

        if (r < 0)
                return r;
        chain = &table->series[id & (table->series_space - 1)];
        for (series = *chain; series; series = series->next) {
                if (series->public.id == id && series->source_id == source_id &&
                    text_equals(series->public.tag, tag) && text_equals(series->public.run, run)) {
                        *ret_series = series;
                        *ret_added = false;
                        return 0;
                }
        }
        r = series_new(source_id, id, (uint32_t)table->series_count, run, tag, &series);
        if (r < 0)
                return r;
        series->next = *chain;
        *chain = series;
        table->series_count++;
        *ret_series = series;
        *ret_added = true;
        return 0;
}

int series_table_set(struct known_series *series, uint8_t data_class, struct extent_string plugin,
                     struct extent_string content, struct extent_string display_name,
                     struct extent_string description) {
        const struct extent_string strings[] = { plugin, content, display_name, description };
        struct hr_series *public = &series->public;
        struct hr_text *texts[] = { &public->plugin, &public->content, &public->display_name,
                                    &public->description };
        struct hr_text copies[ARRAY_SIZE(strings)] = { 0 };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(strings) && r == 0; i++)
                r = text_copy(strings[i], &copies[i]);
        /* The old texts may be what was copied from: they go last. */
        for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
                text_free(r == 0 ? texts[i] : &copies[i]);
                if (r == 0)
                        *texts[i] = copies[i];
        }
        if (r < 0)
                return r;
        public->data_class = data_class;
        public->revision++;
        series->metadata.data_class = data_class;
        series->metadata.plugin = string_of(public->plugin);
        series->metadata.content = string_of(public->content);
        series->metadata.display_name = string_of(public->display_name);
        series->metadata.description = string_of(public->description);
        return 0;
}

bool series_table_learn(struct known_series *series, const struct extent_view *view,
                        const struct extent_series *entry, int *ret_r) {
        struct metadata metadata = series->metadata;

        *ret_r = 0;
        if (!metadata_update(&metadata, view, entry))
                return false;
        series->metadata = metadata;
        *ret_r = series_table_set(series, metadata.data_class, metadata.plugin, metadata.content,
                                  metadata.display_name, metadata.description);
        return *ret_r == 0;
}

int series_table_add_file(struct series_table *table, uint64_t source_id, uint64_t id,
                          const char *source, struct extent_string run, struct extent_string path,
                          struct known_file **ret_file) {
        CLEANUP(file_freep) struct known_file *file = NULL;
        const struct extent_string source_string = { (const uint8_t *)source, strlen(source) };
        struct known_file **chain;
        int r = files_grow(table);

        if (r < 0)
                return r;
        chain = &table->files[id & (table->file_space - 1)];
        for (struct known_file *found = *chain; found; found = found->next) {
                if (found->public.id == id && found->source_id == source_id &&
                    text_equals(found->public.path, path)) {
                        *ret_file = found;
                        return 0;
                }
        }
        file = calloc(1, sizeof(*file));
        if (!file || text_copy(source_string, &file->public.source) < 0 ||
            text_copy(run, &file->public.run) < 0 || text_copy(path, &file->public.path) < 0)
                return -ENOMEM;
        file->public.id = id;
        file->source_id = source_id;
        file->next = *chain;
        *chain = file;
        table->file_count++;
        *ret_file = steal_pointer(&file);
        return 0;
}

struct known_file *series_table_find_file(const struct series_table *table, uint64_t id) {
        if (!table->file_space)
                return NULL;
        for (struct known_file *file = table->files[id & (table->file_space - 1)]; file;
             file = file->next) {
                if (file->public.id == id)
                        return file;
        }
        return NULL;
}
