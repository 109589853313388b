/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is taken and given back in whatever order, cells in use keep what was written to them. */
#include "daemon/core/cells.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define CELLS 5000u
#define MIB (1u << 20)

struct held {
        uint8_t *cell;
        size_t size;
        uint8_t mark;
};

static struct held held[CELLS];

static uint64_t chance(uint64_t *state) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        return *state >> 33;
}

static bool is_all(const uint8_t *bytes, size_t size, uint8_t value) {
        for (size_t i = 0; i < size; i++)
                if (bytes[i] != value)
                        return false;
        return true;
}

static void take(struct cells *cells, struct held *one, size_t size, uint8_t mark) {
        *one = (struct held){ .cell = cells_take(cells, size), .size = size, .mark = mark };
        ck_assert_ptr_nonnull(one->cell);
        ck_assert_uint_eq((uintptr_t)one->cell % 16, 0);
        ck_assert_msg(is_all(one->cell, size, 0), "a cell of %zu bytes is not zeroed", size);
        memset(one->cell, mark, size);
}

static void give(struct cells *cells, struct held *one) {
        ck_assert_msg(!one->cell || is_all(one->cell, one->size, one->mark),
                      "a cell of %zu bytes was written over", one->size);
        cells_give(cells, one->cell, one->size);
        *one = (struct held){ 0 };
}

START_TEST(cells_keep_what_is_in_them) {
        struct cells cells;
        uint64_t state = 1;

        cells_init(&cells);
        for (unsigned i = 0; i < 200000; i++) {
                struct held *one = &held[chance(&state) % CELLS];

                /* sizes at and around each border, the last one of them on the heap */
                if (one->cell)
                        give(&cells, one);
                else if (chance(&state) % 4 < (i / 20000 % 2 ? 1u : 3u))
                        take(&cells, one, chance(&state) % (CELLS_MOST_BYTES + 20),
                             (uint8_t)(1 + chance(&state) % 255));
        }
        for (unsigned i = 0; i < CELLS; i++)
                give(&cells, &held[i]);
        cells_deinit(&cells);
}
END_TEST

/* Of this process; 0: the kernel does not say. */
static uint64_t resident_bytes(void) {
        unsigned long long pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");

        if (file && fscanf(file, "%*u %llu", &pages) != 1)
                pages = 0;
        if (file)
                fclose(file);
        return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Two that lie beside each other on the heap hold no page of it, and what is given back is gone. */
START_TEST(pages_without_a_cell_go_back) {
        enum { COUNT = 100000 };
        static void *taken[COUNT];
        uint64_t before = resident_bytes(), most;
        struct cells cells;

        cells_init(&cells);
        for (unsigned i = 0; i < COUNT; i++)
                ck_assert_ptr_nonnull(taken[i] = memset(cells_take(&cells, 224), 1, 224));
        most = resident_bytes();
        for (unsigned i = 0; i < COUNT; i++)
                cells_give(&cells, taken[i], 224);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        ck_assert_uint_ge(most, before + 224ull * COUNT);
        ck_assert_uint_le(most, before + 228ull * COUNT + 2 * MIB); /* their pointers are static */
        ck_assert_uint_le(resident_bytes(), before + 2 * MIB);
#endif
        (void)before;
        (void)most;
        cells_deinit(&cells);
}
END_TEST

RUNNER_MAIN("core/cells", cells_keep_what_is_in_them, pages_without_a_cell_go_back)
