/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/table.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"

void table_init(struct table *table, size_t column_count, const char *const *heads,
                const bool *right) {
        MUST(column_count <= TABLE_COLUMNS_MOST);
        *table = (struct table){ .column_count = column_count, .heads = heads, .right = right };
}

void table_deinit(struct table *table) {
        for (size_t i = 0; i < table->cell_count; i++)
                free(table->cells[i]);
        free(table->cells);
        *table = (struct table){ 0 };
}

int table_add(struct table *table, const char *text) {
        char *copy;

        if (table->cell_count == table->cell_space) {
                size_t space = table->cell_space ? 2 * table->cell_space : 64;
                char **cells = reallocarray(table->cells, space, sizeof(*cells));

                if (!cells)
                        return -ENOMEM;
                table->cells = cells;
                table->cell_space = space;
        }
        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        table->cells[table->cell_count++] = copy;
        return 0;
}

/* Columns that a text takes on a terminal, near enough: its characters. */
static size_t width_of(const char *text) {
        size_t width = 0;

        for (; *text; text++)
                width += ((uint8_t)*text & 0xc0) != 0x80;
        return width;
}

static void print_cell(const char *text, size_t width, bool right, bool last) {
        int padding = (int)(width - width_of(text));

        if (right)
                printf("%*s%s", padding, "", text);
        else
                printf("%s%*s", text, last ? 0 : padding, "");
        fputs(last ? "\n" : "  ", stdout);
}

static void print_row(const struct table *table, const char *const *cells, const size_t *widths,
                      const bool *hidden) {
        size_t last = table->column_count;

        for (size_t i = 0; i < table->column_count; i++) {
                if (!hidden || !hidden[i])
                        last = i;
        }
        for (size_t i = 0; i < table->column_count; i++) {
                if (!hidden || !hidden[i])
                        print_cell(cells[i], widths[i], table->right[i], i == last);
        }
}

void table_print(const struct table *table, const bool *hidden) {
        size_t widths[TABLE_COLUMNS_MOST];

        MUST(table->column_count > 0);
        for (size_t i = 0; i < table->column_count; i++)
                widths[i] = width_of(table->heads[i]);
        for (size_t i = 0; i < table->cell_count; i++) {
                size_t *width = &widths[i % table->column_count];

                *width = max_u64(*width, width_of(table->cells[i]));
        }
        print_row(table, table->heads, widths, hidden);
        for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count)
                print_row(table, (const char *const *)table->cells + i, widths, hidden);
}
