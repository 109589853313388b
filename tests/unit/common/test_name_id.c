/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected ids are of Python's xxhash 3.5.0: xxhash.xxh3_64_hexdigest(b"file:///data/logs\0train",
 * seed).
 */
#include "common/name_id.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/runner.h"

#define URL "file:///data/logs"
#define PATH "train/events.out.tfevents.1"

START_TEST(names_joined_by_nul) {
        char long_tag[5000];

        memset(long_tag, 'x', sizeof(long_tag));
        ck_assert_uint_eq(name_id_source(URL), 0xd0a5c1855c98e349u);
        ck_assert_uint_eq(name_id_run(URL, "train", 5), 0xfb90908960b14d47u);
        ck_assert_uint_eq(name_id_file(URL, PATH, strlen(PATH)), 0x1e619a2effbb26e3u);
        ck_assert_uint_eq(name_id_series(URL, "train", 5, "loss", 4), 0xe79be380c9cbe124u);
        ck_assert_uint_eq(name_id_series(URL, "train", 5, "", 0), 0x38dc96b674732468u);
        ck_assert_uint_eq(name_id_series(URL, "train", 5, long_tag, sizeof(long_tag)),
                          0x0c7e56e636ae200eu);
}
END_TEST

START_TEST(version_of_the_first_bytes) {
        uint8_t head[30];

        for (int i = 0; i < 30; i++)
                head[i] = (uint8_t)i;
        ck_assert_uint_eq(name_id_file_version(head, 24, 0), 0xeb173b2aa3b5397au);
        ck_assert_uint_eq(name_id_file_version(head, 30, 0), 0xeb173b2aa3b5397au);
        ck_assert_uint_eq(name_id_file_version(head, 24, 3), 0x0a1b5fcc6bb0f951u);
        ck_assert_uint_eq(name_id_file_version(head, 10, 0), 0x3258a93ef5c2d385u);
        ck_assert_uint_eq(name_id_file_version(head, 0, 0), 0x743df94ee4c78a2au);
}
END_TEST

RUNNER_MAIN("common/name_id", names_joined_by_nul, version_of_the_first_bytes)
