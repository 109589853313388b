/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Against a plain table: ids of a small range, so that they are added, found and removed again and
 * again.
 */
#include "daemon/core/id_map.h"

#include <errno.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define IDS 500u

static char objects[IDS];

static uint64_t chance(uint64_t *state) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        return *state >> 33;
}

static void check_all(const struct id_map *map, const bool *present) {
        size_t count = 0;

        for (uint64_t id = 0; id < IDS; id++) {
                ck_assert_ptr_eq(id_map_find(map, id), present[id] ? &objects[id] : NULL);
                count += present[id];
        }
        ck_assert_uint_eq(map->count, count);
}

START_TEST(agrees_with_a_table) {
        bool present[IDS] = { false };
        struct id_map map;
        uint64_t state = 1;

        id_map_init(&map);
        check_all(&map, present);
        ck_assert_ptr_null(id_map_remove(&map, 7));
        for (unsigned i = 0; i < 20000; i++) {
                uint64_t id = chance(&state) % IDS;

                /* Mostly full at times, and mostly empty at others. */
                if (chance(&state) % 4 < (i / 2000 % 2 ? 1u : 3u)) {
                        ck_assert_int_eq(id_map_add(&map, id, &objects[id]),
                                         present[id] ? -EEXIST : 0);
                        present[id] = true;
                } else {
                        ck_assert_ptr_eq(id_map_remove(&map, id),
                                         present[id] ? &objects[id] : NULL);
                        present[id] = false;
                }
                if (i % 100 == 0)
                        check_all(&map, present);
        }
        check_all(&map, present);
        id_map_deinit(&map);
        ck_assert_uint_eq(map.count, 0);
}
END_TEST

START_TEST(a_refused_value_changes_nothing) {
        struct id_map map;
        char first, second;

        id_map_init(&map);
        ck_assert_int_eq(id_map_add(&map, UINT64_MAX, &first), 0);
        ck_assert_int_eq(id_map_add(&map, UINT64_MAX, &second), -EEXIST);
        ck_assert_ptr_eq(id_map_find(&map, UINT64_MAX), &first);
        ck_assert_int_eq(id_map_add(&map, 0, &second), 0);
        ck_assert_ptr_eq(id_map_remove(&map, UINT64_MAX), &first);
        ck_assert_ptr_eq(id_map_find(&map, 0), &second);
        id_map_deinit(&map);
}
END_TEST

/* Someone who knows the function but not the seed cannot choose ids that all collide. */
START_TEST(maps_have_seeds_of_their_own) {
        struct id_map one, two;

        id_map_init(&one);
        id_map_init(&two);
        ck_assert_uint_ne(one.seed, two.seed);
        id_map_deinit(&one);
        id_map_deinit(&two);
}
END_TEST

RUNNER_MAIN("core/id_map", agrees_with_a_table, a_refused_value_changes_nothing,
            maps_have_seeds_of_their_own)
