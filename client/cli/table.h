/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table for people: columns as wide as their widest cell, names to the left, numbers to the
 * right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS_MOST 8

struct table {
        size_t column_count;
        const char *const *heads;
        const bool *right; /* of each column: numbers */
        char **cells;      /* row by row */
        size_t cell_count, cell_space;
};

/* heads and right are borrowed: column_count of them. */
void table_init(struct table *table, size_t column_count, const char *const *heads,
                const bool *right);
void table_deinit(struct table *table);

/* Adds a copy of the next cell. -ENOMEM. */
int table_add(struct table *table, const char *text);

/* Writes to standard output; hidden[i]: leaves column i out (NULL: none). */
void table_print(const struct table *table, const bool *hidden);
