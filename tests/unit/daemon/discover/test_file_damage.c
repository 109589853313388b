/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/file_damage.h"

#include <stdlib.h>

#include "common/base.h"
#include "tests/unit/runner.h"

START_TEST(nothing_is_known_of_an_intact_file) {
        ck_assert_uint_eq(file_damage_count(NULL), 0);
        ck_assert_uint_eq(file_damage_by_reason(NULL, DAMAGE_DATA_CRC), 0);
        file_damage_pass(NULL, 7);
}
END_TEST

/* However many there are, the first ones are named and all are counted. */
START_TEST(first_places_are_named) {
        CLEANUP(freep) struct file_damage *damage = NULL;
        uint32_t by_reason[DAMAGE_COUNT] = { [DAMAGE_DATA_CRC] = 990, [DAMAGE_ZEROS] = 10 };
        struct damaged_place places[10];

        ck_assert_int_eq(file_damage_ensure(&damage), 0);
        for (uint64_t block = 0; block < 5; block++) {
                for (uint64_t i = 0; i < 10; i++)
                        places[i] = (struct damaged_place){ 100 * block + i, 1, DAMAGE_DATA_CRC,
                                                            0 };
                file_damage_add(damage, by_reason, places, 10);
        }
        ck_assert_int_eq(file_damage_ensure(&damage), 0); /* which forgets nothing */
        ck_assert_uint_eq(file_damage_count(damage), 5000);
        ck_assert_uint_eq(file_damage_by_reason(damage, DAMAGE_DATA_CRC), 4950);
        ck_assert_uint_eq(file_damage_by_reason(damage, DAMAGE_ZEROS), 50);
        ck_assert_uint_eq(file_damage_by_reason(damage, DAMAGE_NONE), 0);
        ck_assert_uint_eq(damage->named_count, FILE_DAMAGE_NAMED_MOST);
        ck_assert_uint_eq(damage->named[9].offset, 9);
        ck_assert_uint_eq(damage->named[15].offset, 105);
}
END_TEST

START_TEST(tail_counts_once_while_it_is_one) {
        CLEANUP(freep) struct file_damage *damage = NULL;
        struct damaged_place tail = { 50, 10, DAMAGE_LENGTH_CRC, 0 };

        ck_assert_int_eq(file_damage_ensure(&damage), 0);
        ck_assert(file_damage_set_tail(damage, &tail));
        tail.size_bytes = 20; /* the file has grown */
        ck_assert(!file_damage_set_tail(damage, &tail));
        ck_assert_uint_eq(damage->tail.size_bytes, 20);
        ck_assert_uint_eq(file_damage_count(damage), 1);
        ck_assert_uint_eq(file_damage_by_reason(damage, DAMAGE_LENGTH_CRC), 1);
        file_damage_pass(damage, 50);
        ck_assert_uint_eq(file_damage_count(damage), 1);
        file_damage_pass(damage, 51); /* a record was found behind it */
        ck_assert_uint_eq(file_damage_count(damage), 0);
        ck_assert(file_damage_set_tail(damage, &tail));
}
END_TEST

RUNNER_MAIN("discover/file_damage", nothing_is_known_of_an_intact_file, first_places_are_named,
            tail_counts_once_while_it_is_one)
