/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A doubly linked ring of nodes that live inside of what they link. A node that is in no list
 * points at itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
        struct list *next, *previous;
};

static inline void list_init(struct list *list) {
        list->next = list->previous = list;
}

static inline bool list_is_empty(const struct list *list) {
        return list->next == list;
}

/* True if the node is in a list. */
static inline bool list_is_linked(const struct list *node) {
        return node->next != node;
}

static inline void list_add_before(struct list *place, struct list *node) {
        node->previous = place->previous;
        node->next = place;
        place->previous->next = node;
        place->previous = node;
}

static inline void list_append(struct list *list, struct list *node) {
        list_add_before(list, node);
}

static inline void list_prepend(struct list *list, struct list *node) {
        list_add_before(list->next, node);
}

static inline void list_remove(struct list *node) {
        node->next->previous = node->previous;
        node->previous->next = node->next;
        list_init(node);
}

#define list_owner(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* The body may remove the node it is at, nothing else. */
#define list_for_each(node, head) \
        for (struct list *node = (head)->next, *node##_next_ = node->next; node != (head); \
             node = node##_next_, node##_next_ = node->next)
