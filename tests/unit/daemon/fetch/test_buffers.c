/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/buffers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/unit/runner.h"

/* Pages of this process that exist. */
static long resident_pages(void) {
        FILE *file = fopen("/proc/self/statm", "re");
        long size, resident = 0;

        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fscanf(file, "%ld %ld", &size, &resident), 2);
        fclose(file);
        return resident;
}

START_TEST(buffers_are_used_again) {
        struct buffers buffers;
        uint8_t *first, *second;

        buffers_init(&buffers, 1 << 20);
        first = buffers_take(&buffers, 107536);
        memset(first, 1, 107536);
        buffers_give(&buffers, first, 107536);
        ck_assert_uint_eq(buffers.kept_bytes, 128 << 10);
        second = buffers_take(&buffers, 70000);
        ck_assert_ptr_eq(first, second);
        ck_assert_uint_eq(buffers.kept_bytes, 0);
        buffers_give(&buffers, second, 70000);
        buffers_deinit(&buffers);
        ck_assert_uint_eq(buffers.kept_bytes, 0);
}
END_TEST

START_TEST(what_is_kept_is_bounded) {
        struct buffers buffers;
        uint8_t *taken[40];

        buffers_init(&buffers, 1 << 20);
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
                taken[i] = buffers_take(&buffers, 60000);
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
                buffers_give(&buffers, taken[i], 60000);
                ck_assert_uint_le(buffers.kept_bytes, 1 << 20);
        }
        ck_assert_uint_eq(buffers.kept_bytes, 1 << 20);
        buffers_trim(&buffers, 300000);
        ck_assert_uint_le(buffers.kept_bytes, 300000);
        buffers_deinit(&buffers);
}
END_TEST

START_TEST(untouched_memory_costs_nothing) {
        struct buffers buffers;
        uint8_t *taken[64];
        long before = resident_pages();

        buffers_init(&buffers, 0);
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
                taken[i] = buffers_take(&buffers, 16 << 20);
                taken[i][0] = 1;
        }
        ck_assert_int_lt(resident_pages() - before, 64 * 512 + 8192);
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
                buffers_give(&buffers, taken[i], 16 << 20);
        buffers_deinit(&buffers);
}
END_TEST

START_TEST(absurd_sizes_are_refused) {
        struct buffers buffers;

        buffers_init(&buffers, 1 << 20);
        ck_assert_ptr_null(buffers_take(&buffers, UINT64_MAX));
        ck_assert_ptr_null(buffers_take(&buffers, UINT64_MAX / 2));
        buffers_deinit(&buffers);
}
END_TEST

RUNNER_MAIN("fetch/buffers", buffers_are_used_again, what_is_kept_is_bounded,
            untouched_memory_costs_nothing, absurd_sizes_are_refused)
