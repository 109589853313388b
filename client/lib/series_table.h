/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series, files and runs that were seen, each once, with what is known of them by now. Ids are
 * hints, as everywhere: two names with the same id are two entries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/include/headrace.h"
#include "common/extent_view.h"
#include "common/id_table.h"
#include "common/metadata.h"
#include "common/restarts.h"

struct known_series {
        struct id_node node;     /* first */
        struct hr_series public; /* its texts are of this entry */
        uint64_t source_id;
        struct metadata metadata; /* borrows from public */
        bool is_wanted;           /* by the filters, with what is known now */
        bool was_asked;           /* the daemon was asked for its metadata */
        struct restarts_series restarts;
};

struct known_run {
        struct id_node node; /* first */
        uint64_t source_id;
        struct hr_text name;
        struct restarts_run restarts;
};

struct known_file {
        struct id_node node;   /* first */
        struct hr_file public; /* its texts are of this entry, but for the run, which is the run's */
        uint64_t source_id;
        struct restarts_file restarts;
};

struct series_table {
        struct id_table series, files, runs;
};

void series_table_init(struct series_table *table);
void series_table_deinit(struct series_table *table);

/* Finds or makes the series of an extent. *ret_added tells which. -ENOMEM. */
int series_table_add(struct series_table *table, uint64_t source_id, uint64_t id,
                     struct extent_string run, struct extent_string tag,
                     struct known_series **ret_series, bool *ret_added);

/*
 * Goes on with the metadata of an extent, and keeps a copy. True if it changed. -ENOMEM as *ret_r.
 */
bool series_table_learn(struct known_series *series, const struct extent_view *view,
                        const struct extent_series *entry, int *ret_r);

/* Sets the metadata that the daemon resolved. -ENOMEM. */
int series_table_set(struct known_series *series, uint8_t data_class, struct extent_string plugin,
                     struct extent_string content, struct extent_string display_name,
                     struct extent_string description);

/*
 * Finds or makes the file of an extent, and its run. run and path are what the caller sees.
 * -ENOMEM.
 */
int series_table_add_file(struct series_table *table, const struct extent_header *header,
                          const char *source, struct extent_string run, struct extent_string path,
                          struct known_file **ret_file);

/* NULL: never seen. */
struct known_file *series_table_find_file(const struct series_table *table, uint64_t id);

/* The entry that a part of it is of; NULL stays NULL. */
static inline struct known_series *known_series_of(struct restarts_series *restarts) {
        return restarts ? (struct known_series *)(void *)((char *)restarts -
                                                          offsetof(struct known_series, restarts))
                        : NULL;
}

static inline struct known_file *known_file_of(struct restarts_file *restarts) {
        return restarts ? (struct known_file *)(void *)((char *)restarts -
                                                        offsetof(struct known_file, restarts))
                        : NULL;
}
