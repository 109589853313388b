/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes by series and file, either of which may be "all". Of the notes of one pair only those
 * matter that no later one makes needless: a later one from the same step or a smaller one takes
 * away all that an earlier one did, and more. So the steps of those that are kept only grow, and
 * the first one after a point was told decides about it.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/include/headrace.h"
#include "common/base.h"
#include "common/id_table.h"

#define FIRST_SPACE 4

struct note {
        uint64_t number; /* from 1 on */
        int64_t from_step;
};

struct pair {
        struct id_node node; /* first */
        const struct hr_series *series;
        const struct hr_file *file;
        struct note *notes; /* number and from_step grow */
        size_t count, space;
};

struct hr_withdrawn {
        struct id_table pairs;
        uint64_t count;
        bool has_all_series, has_all_files; /* there are pairs without series, without file */
};

struct hr_withdrawn *hr_withdrawn_new(void) {
        struct hr_withdrawn *withdrawn = calloc(1, sizeof(*withdrawn));

        if (withdrawn)
                id_table_init(&withdrawn->pairs);
        return withdrawn;
}

static void pair_free(struct id_node *node) {
        struct pair *pair = (struct pair *)node;

        free(pair->notes);
        free(pair);
}

struct hr_withdrawn *hr_withdrawn_free(struct hr_withdrawn *withdrawn) {
        if (withdrawn)
                id_table_deinit(&withdrawn->pairs, pair_free);
        free(withdrawn);
        return NULL;
}

/* Heap addresses: nobody else chooses them. */
static uint64_t pair_id(const struct hr_series *series, const struct hr_file *file) {
        uint64_t id = (uint64_t)(uintptr_t)series * 0x9E3779B97F4A7C15u +
                      (uint64_t)(uintptr_t)file * 0xC2B2AE3D27D4EB4Fu;

        return id ^ id >> 32;
}

static struct pair *find_pair(const struct hr_withdrawn *withdrawn, const struct hr_series *series,
                              const struct hr_file *file) {
        struct id_node *node = id_table_find(&withdrawn->pairs, pair_id(series, file));

        for (; node; node = id_node_same(node)) {
                struct pair *pair = (struct pair *)node;

                if (pair->series == series && pair->file == file)
                        return pair;
        }
        return NULL;
}

static struct pair *add_pair(struct hr_withdrawn *withdrawn, const struct hr_series *series,
                             const struct hr_file *file) {
        struct pair *pair = find_pair(withdrawn, series, file);

        if (pair)
                return pair;
        pair = calloc(1, sizeof(*pair));
        if (!pair)
                return NULL;
        pair->node.id = pair_id(series, file);
        pair->series = series;
        pair->file = file;
        if (id_table_add(&withdrawn->pairs, &pair->node) == 0)
                return pair;
        free(pair);
        return NULL;
}

static int reserve(struct pair *pair) {
        size_t space = pair->space ? 2 * pair->space : FIRST_SPACE;
        struct note *notes;

        if (pair->count < pair->space)
                return 0;
        notes = reallocarray(pair->notes, space, sizeof(*notes));
        if (!notes)
                return -ENOMEM;
        pair->notes = notes;
        pair->space = space;
        return 0;
}

int hr_withdrawn_add(struct hr_withdrawn *withdrawn, const struct hr_series *series,
                     const struct hr_file *file, int64_t from_step) {
        struct pair *pair = add_pair(withdrawn, series, file);

        if (!pair || reserve(pair) < 0)
                return -ENOMEM;
        while (pair->count && pair->notes[pair->count - 1].from_step >= from_step)
                pair->count--;
        pair->notes[pair->count++] = (struct note){ ++withdrawn->count, from_step };
        withdrawn->has_all_series |= !series;
        withdrawn->has_all_files |= !file;
        return 0;
}

uint64_t hr_withdrawn_count(const struct hr_withdrawn *withdrawn) {
        return withdrawn->count;
}

static bool pair_has(const struct pair *pair, int64_t step, uint64_t count) {
        size_t first = 0, end = pair ? pair->count : 0, all = end;

        while (first < end) {
                size_t middle = first + (end - first) / 2;

                if (pair->notes[middle].number > count)
                        end = middle;
                else
                        first = middle + 1;
        }
        return first < all && pair->notes[first].from_step <= step;
}

bool hr_withdrawn_has(const struct hr_withdrawn *withdrawn, const struct hr_series *series,
                      const struct hr_file *file, int64_t step, uint64_t count) {
        if (count == withdrawn->count)
                return false;
        return pair_has(find_pair(withdrawn, series, file), step, count) ||
               (withdrawn->has_all_series &&
                pair_has(find_pair(withdrawn, NULL, file), step, count)) ||
               (withdrawn->has_all_files &&
                (pair_has(find_pair(withdrawn, series, NULL), step, count) ||
                 pair_has(find_pair(withdrawn, NULL, NULL), step, count)));
}
