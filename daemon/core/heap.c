/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/heap.h"

#include "common/base.h"

/* Two roots, of which one becomes the other's first child. NULL is an empty heap. */
static struct heap_node *meld(const struct heap *heap, struct heap_node *a, struct heap_node *b) {
        if (!a || !b)
                return a ? a : b;
        if (heap->is_before(b, a)) {
                struct heap_node *first = b;

                b = a;
                a = first;
        }
        b->next = a->child;
        if (b->next)
                b->next->previous = b;
        b->previous = a;
        a->child = b;
        return a;
}

static struct heap_node *make_root(struct heap_node *node) {
        if (node) {
                node->previous = node;
                node->next = NULL;
        }
        return node;
}

/* In pairs, from the first to the last; then all of these, from the last to the first. */
static struct heap_node *meld_all(const struct heap *heap, struct heap_node *children) {
        struct heap_node *pairs = NULL, *root = NULL;

        while (children) {
                struct heap_node *a = children, *b = a->next, *pair;

                children = b ? b->next : NULL;
                a->next = NULL;
                if (b)
                        b->next = NULL;
                pair = meld(heap, a, b);
                pair->next = pairs;
                pairs = pair;
        }
        while (pairs) {
                struct heap_node *pair = pairs;

                pairs = pair->next;
                pair->next = NULL;
                root = meld(heap, root, pair);
        }
        return root;
}

void heap_add(struct heap *heap, struct heap_node *node) {
        MUST(!heap_is_linked(node));
        *node = (struct heap_node){ 0 };
        heap->root = make_root(meld(heap, heap->root, node));
}

void heap_remove(struct heap *heap, struct heap_node *node) {
        struct heap_node *rest;

        if (!heap_is_linked(node))
                return;
        rest = meld_all(heap, node->child);
        if (heap->root == node) {
                heap->root = make_root(rest);
        } else {
                if (node->previous->child == node)
                        node->previous->child = node->next;
                else
                        node->previous->next = node->next;
                if (node->next)
                        node->next->previous = node->previous;
                heap->root = make_root(meld(heap, heap->root, rest));
        }
        *node = (struct heap_node){ 0 };
}
