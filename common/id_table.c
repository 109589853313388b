/* SPDX-License-Identifier: Apache-2.0 */
/* Chains, as many as there are nodes: the ids are hashes already. */
#include "common/id_table.h"

#include <errno.h>
#include <stdlib.h>

#define ID_TABLE_FIRST_SPACE 64

void id_table_init(struct id_table *table) {
        *table = (struct id_table){ 0 };
}

void id_table_deinit(struct id_table *table, void (*free_node)(struct id_node *node)) {
        for (size_t i = 0; i < table->space && free_node; i++) {
                for (struct id_node *node = table->chains[i], *next; node; node = next) {
                        next = node->next;
                        free_node(node);
                }
        }
        free(table->chains);
        id_table_init(table);
}

static struct id_node **chain_of(const struct id_table *table, uint64_t id) {
        return &table->chains[id & (table->space - 1)];
}

static void put(struct id_table *table, struct id_node *node) {
        struct id_node **chain = chain_of(table, node->id);

        node->next = *chain;
        *chain = node;
}

static int grow(struct id_table *table) {
        struct id_table grown = { .space = table->space ? 2 * table->space : ID_TABLE_FIRST_SPACE,
                                  .count = table->count };

        if (table->count < table->space)
                return 0;
        grown.chains = calloc(grown.space, sizeof(*grown.chains));
        if (!grown.chains)
                return -ENOMEM;
        for (size_t i = 0; i < table->space; i++) {
                for (struct id_node *node = table->chains[i], *next; node; node = next) {
                        next = node->next;
                        put(&grown, node);
                }
        }
        free(table->chains);
        *table = grown;
        return 0;
}

int id_table_add(struct id_table *table, struct id_node *node) {
        int r = grow(table);

        if (r < 0)
                return r;
        put(table, node);
        table->count++;
        return 0;
}

static struct id_node *first_of(struct id_node *node, uint64_t id) {
        while (node && node->id != id)
                node = node->next;
        return node;
}

struct id_node *id_table_find(const struct id_table *table, uint64_t id) {
        return table->space ? first_of(*chain_of(table, id), id) : NULL;
}

struct id_node *id_node_same(const struct id_node *node) {
        return first_of(node->next, node->id);
}
