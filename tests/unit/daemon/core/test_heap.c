/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/heap.h"

#include <stdint.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/core/list.h"
#include "tests/unit/runner.h"

#define COUNT 3000

struct item {
        struct heap_node node;
        uint32_t key, serial;
};

static bool is_before(const struct heap_node *a, const struct heap_node *b) {
        const struct item *x = list_owner(a, struct item, node),
                          *y = list_owner(b, struct item, node);

        return x->key != y->key ? x->key < y->key : x->serial < y->serial;
}

static struct item items[COUNT];

static int compare(const void *a, const void *b) {
        const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

        return is_before(&x->node, &y->node) ? -1 : 1;
}

/* Against qsort(3): items come and go in any order, and what is left comes out sorted. */
START_TEST(what_is_left_comes_out_in_order) {
        struct item *left[COUNT];
        struct heap heap = { .is_before = is_before };
        unsigned seed = 7, count = 0;

        for (unsigned i = 0; i < COUNT; i++) {
                items[i] = (struct item){ .key = (uint32_t)rand_r(&seed) % 100, .serial = i };
                heap_add(&heap, &items[i].node);
                if (i % 3 == 0)
                        heap_remove(&heap, &items[(unsigned)rand_r(&seed) % (i + 1)].node);
                if (i % 5 == 0 && heap_first(&heap))
                        heap_remove(&heap, heap_first(&heap));
        }
        for (unsigned i = 0; i < COUNT; i++)
                if (heap_is_linked(&items[i].node))
                        left[count++] = &items[i];
        ck_assert_uint_gt(count, COUNT / 4);
        qsort(left, count, sizeof(left[0]), compare);
        for (unsigned i = 0; i < count; i++) {
                ck_assert_ptr_eq(heap_first(&heap), &left[i]->node);
                ck_assert(heap_is_alone(&heap, &left[i]->node) == (i + 1 == count));
                heap_remove(&heap, &left[i]->node);
                ck_assert(!heap_is_linked(&left[i]->node));
        }
        ck_assert_ptr_null(heap_first(&heap));
}
END_TEST

START_TEST(one_may_come_back) {
        struct item item = { .key = 1 };
        struct heap heap = { .is_before = is_before };

        heap_remove(&heap, &item.node);
        for (unsigned i = 0; i < 3; i++) {
                heap_add(&heap, &item.node);
                ck_assert(heap_is_alone(&heap, &item.node));
                heap_remove(&heap, &item.node);
                ck_assert_ptr_null(heap_first(&heap));
        }
}
END_TEST

RUNNER_MAIN("core/heap", what_is_left_comes_out_in_order, one_may_come_back)
