/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structures by a 64-bit id that only hints at them: two may have the same one, and the caller
 * compares what it really means. The structures stay the caller's, and begin with a node.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct id_node {
        uint64_t id;
        struct id_node *next; /* in its chain: another id, or the same */
};

struct id_table {
        struct id_node **chains; /* a power of two of them */
        size_t space, count;
};

void id_table_init(struct id_table *table);

/* free_node is called for each node; NULL: they stay. */
void id_table_deinit(struct id_table *table, void (*free_node)(struct id_node *node));

/* node->id is set. -ENOMEM. */
int id_table_add(struct id_table *table, struct id_node *node);

/* The nodes of that id, the last one added first: this one, then id_node_same(). NULL: no more. */
struct id_node *id_table_find(const struct id_table *table, uint64_t id);
struct id_node *id_node_same(const struct id_node *node);
