/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/series_table.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"

void series_table_init(struct series_table *table) {
        id_table_init(&table->series);
        id_table_init(&table->files);
        id_table_init(&table->runs);
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

static void series_node_free(struct id_node *node) {
        series_free((struct known_series *)node);
}

static struct known_file *file_free(struct known_file *file) {
        if (!file)
                return NULL;
        text_free(&file->public.source);
        text_free(&file->public.path);
        free(file);
        return NULL;
}

static void file_freep(struct known_file **file) {
        file_free(*file);
}

static void file_node_free(struct id_node *node) {
        file_free((struct known_file *)node);
}

static struct known_run *run_free(struct known_run *run) {
        if (run)
                text_free(&run->name);
        free(run);
        return NULL;
}

static void run_freep(struct known_run **run) {
        run_free(*run);
}

static void run_node_free(struct id_node *node) {
        run_free((struct known_run *)node);
}

void series_table_deinit(struct series_table *table) {
        id_table_deinit(&table->series, series_node_free);
        id_table_deinit(&table->files, file_node_free);
        id_table_deinit(&table->runs, run_node_free);
}

static int series_new(uint64_t source_id, uint64_t id, uint32_t number, struct extent_string run,
                      struct extent_string tag, struct known_series **ret_series) {
        CLEANUP(series_freep) struct known_series *series = calloc(1, sizeof(*series));
        const struct extent_string none = { NULL, 0 };
        struct hr_series *public;

        if (!series)
                return -ENOMEM;
        public = &series->public;
        series->node.id = public->id = id;
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
        CLEANUP(series_freep) struct known_series *series = NULL;
        int r;

        for (struct id_node *node = id_table_find(&table->series, id); node;
             node = id_node_same(node)) {
                struct known_series *found = (struct known_series *)node;

                if (found->source_id == source_id && text_equals(found->public.tag, tag) &&
                    text_equals(found->public.run, run)) {
                        *ret_series = found;
                        *ret_added = false;
                        return 0;
                }
        }
        r = series_new(source_id, id, (uint32_t)table->series.count, run, tag, &series);
        if (r == 0)
                r = id_table_add(&table->series, &series->node);
        if (r < 0)
                return r;
        *ret_series = steal_pointer(&series);
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

static int add_run(struct series_table *table, uint64_t source_id, uint64_t id,
                   struct extent_string name, struct known_run **ret_run) {
        CLEANUP(run_freep) struct known_run *run = NULL;
        int r;

        for (struct id_node *node = id_table_find(&table->runs, id); node;
             node = id_node_same(node)) {
                struct known_run *found = (struct known_run *)node;

                if (found->source_id == source_id && text_equals(found->name, name)) {
                        *ret_run = found;
                        return 0;
                }
        }
        run = calloc(1, sizeof(*run));
        if (!run || text_copy(name, &run->name) < 0)
                return -ENOMEM;
        run->node.id = id;
        run->source_id = source_id;
        r = id_table_add(&table->runs, &run->node);
        if (r == 0)
                *ret_run = steal_pointer(&run);
        return r;
}

static int file_new(const struct extent_header *header, struct known_run *run, const char *source,
                    struct extent_string path, struct known_file **ret_file) {
        CLEANUP(file_freep) struct known_file *file = calloc(1, sizeof(*file));
        const struct extent_string source_string = { (const uint8_t *)source, strlen(source) };

        if (!file || text_copy(source_string, &file->public.source) < 0 ||
            text_copy(path, &file->public.path) < 0)
                return -ENOMEM;
        file->node.id = file->public.id = header->file_id;
        file->source_id = header->source_id;
        file->public.run = run->name;
        file->restarts.run = &run->restarts;
        *ret_file = steal_pointer(&file);
        return 0;
}

int series_table_add_file(struct series_table *table, const struct extent_header *header,
                          const char *source, struct extent_string run, struct extent_string path,
                          struct known_file **ret_file) {
        CLEANUP(file_freep) struct known_file *file = NULL;
        struct known_run *known_run = NULL;
        int r;

        for (struct id_node *node = id_table_find(&table->files, header->file_id); node;
             node = id_node_same(node)) {
                struct known_file *found = (struct known_file *)node;

                if (found->source_id == header->source_id &&
                    text_equals(found->public.path, path)) {
                        *ret_file = found;
                        return 0;
                }
        }
        r = add_run(table, header->source_id, header->run_id, run, &known_run);
        if (r == 0)
                r = file_new(header, known_run, source, path, &file);
        if (r == 0)
                r = id_table_add(&table->files, &file->node);
        if (r == 0)
                *ret_file = steal_pointer(&file);
        return r;
}

struct known_file *series_table_find_file(const struct series_table *table, uint64_t id) {
        return (struct known_file *)id_table_find(&table->files, id);
}
