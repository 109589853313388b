/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A priority queue of nodes that live inside of what they queue: a pairing heap (Fredman, Sedgewick,
 * Sleator, Tarjan: "The pairing heap: a new form of self-adjusting heap", Algorithmica 1, 1986). It
 * takes no memory, so that nothing can fail. What a node's order depends on must not change while it
 * is queued. A node is in no heap when all of it is zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
        struct heap_node *child, *next; /* the first child; the next child of the same parent */
        /* whose child or next it is; of the root: itself; NULL: in no heap */
        struct heap_node *previous;
};

struct heap {
        struct heap_node *root; /* NULL: empty */
        /* True if a goes before b. */
        bool (*is_before)(const struct heap_node *a, const struct heap_node *b);
};

static inline bool heap_is_linked(const struct heap_node *node) {
        return node->previous;
}

/* The first of all; NULL: the heap is empty. */
static inline struct heap_node *heap_first(const struct heap *heap) {
        return heap->root;
}

/* It is the only one. */
static inline bool heap_is_alone(const struct heap *heap, const struct heap_node *node) {
        return heap->root == node && !node->child;
}

/* The node must be in no heap. */
void heap_add(struct heap *heap, struct heap_node *node);

/* Nothing happens if it is in no heap; if it is in one, it must be this. */
void heap_remove(struct heap *heap, struct heap_node *node);
