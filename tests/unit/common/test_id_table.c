/* SPDX-License-Identifier: Apache-2.0 */
#include "common/id_table.h"

#include <stdlib.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define NODES 10000u

static unsigned freed;

static void count_free(struct id_node *node) {
        free(node);
        freed++;
}

/* Three nodes of each id, which is far apart and has the same low bits. */
START_TEST(finds_all_of_an_id) {
        struct id_table table;

        id_table_init(&table);
        ck_assert_ptr_null(id_table_find(&table, 0));
        for (unsigned i = 0; i < NODES; i++) {
                struct id_node *node = calloc(1, sizeof(*node));

                node->id = (uint64_t)(i / 3) << (i / 3 % 2 ? 0 : 40);
                MUST(id_table_add(&table, node) == 0);
        }
        ck_assert_uint_eq(table.count, NODES);
        for (unsigned i = 0; i < NODES / 3; i++) {
                uint64_t id = (uint64_t)i << (i % 2 ? 0 : 40);
                unsigned count = 0;

                for (struct id_node *node = id_table_find(&table, id); node;
                     node = id_node_same(node)) {
                        MUST(node->id == id);
                        count++;
                }
                if (count != 3)
                        ck_abort_msg("%u of id %u", count, i);
        }
        ck_assert_ptr_null(id_table_find(&table, NODES));
        id_table_deinit(&table, count_free);
        ck_assert_uint_eq(freed, NODES);
        ck_assert_uint_eq(table.count, 0);
}
END_TEST

START_TEST(nodes_may_stay) {
        struct id_node node = { .id = 7 };
        struct id_table table;

        id_table_init(&table);
        ck_assert_int_eq(id_table_add(&table, &node), 0);
        ck_assert_ptr_eq(id_table_find(&table, 7), &node);
        ck_assert_ptr_null(id_node_same(&node));
        id_table_deinit(&table, NULL);
}
END_TEST

RUNNER_MAIN("common/id_table", finds_all_of_an_id, nodes_may_stay)
