/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of huge pages is the machine's: a test that may set it does so, and puts the value back.
 */
#include "daemon/publish/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define POOL "/proc/sys/vm/nr_hugepages"
#define SIZE (4u << 20)

static long pool_get(void) {
        FILE *file = fopen(POOL, "re");
        long pages = -1;

        if (file) {
                if (fscanf(file, "%ld", &pages) != 1)
                        pages = -1;
                fclose(file);
        }
        return pages;
}

/* False where the machine does not let us, or has no memory for it. */
static bool pool_set(long pages) {
        FILE *file = fopen(POOL, "we");
        bool done;

        if (!file)
                return false;
        done = fprintf(file, "%ld\n", pages) > 0;
        done = fclose(file) == 0 && done;
        return done && pool_get() == pages;
}

static void must_be_refused(int fd) {
        uint8_t *memory;

        ck_assert_ptr_eq(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        memory = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        ck_assert_int_lt(mprotect(memory, SIZE, PROT_READ | PROT_WRITE), 0);
        munmap(memory, SIZE);
        ck_assert_int_lt(pwrite(fd, "x", 1, 0), 0);
        ck_assert_int_lt(ftruncate(fd, 0), 0);
        ck_assert_int_lt(ftruncate(fd, 2 * SIZE), 0);
        ck_assert_int_lt(fallocate(fd, 0, SIZE, SIZE), 0);
        ck_assert_int_lt(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE), 0);
        ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

static void must_be_sealed(const struct ring_memory *memory) {
        char path[64];
        int again;

        must_be_refused(memory->fd);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", memory->fd);
        again = open(path, O_RDWR | O_CLOEXEC);
        if (again >= 0) {
                must_be_refused(again);
                close(again);
        }
        ck_assert_int_lt(open(path, O_RDWR | O_TRUNC | O_CLOEXEC), 0);
}

static void must_be_usable(const struct ring_memory *memory) {
        struct stat status;

        ck_assert_uint_eq(memory->size_bytes, SIZE);
        ck_assert_uint_eq((uintptr_t)memory->base % (2u << 20), 0);
        ck_assert_int_eq(fstat(memory->fd, &status), 0);
        ck_assert_int_eq(status.st_size, SIZE);
        ck_assert_int_ne(fcntl(memory->fd, F_GETFD) & FD_CLOEXEC, 0);
        ck_assert_int_eq(ring_memory_prepare(memory, 0, SIZE), 0);
        memory->base[0] = 1;
        memory->base[SIZE - 1] = 2;
        must_be_sealed(memory);
        ck_assert_uint_eq(memory->base[0], 1);
        ck_assert_uint_eq(memory->base[SIZE - 1], 2);
}

START_TEST(small_pages_when_asked_for) {
        struct ring_memory memory;

        ck_assert_int_eq(ring_memory_init(&memory, SIZE, RING_HUGE_OFF), 0);
        ck_assert_int_eq(memory.tier, RING_TIER_4K);
        ck_assert_str_ne(memory.tier_reason, "");
        must_be_usable(&memory);
        ring_memory_deinit(&memory);
        ck_assert_int_eq(memory.fd, -1);
        ring_memory_deinit(&memory); /* again: nothing is left to free */
}
END_TEST

/* Memory is taken only as it fills. */
START_TEST(nothing_is_present_before_it_is_prepared) {
        struct ring_memory memory;
        struct stat status;

        ck_assert_int_eq(ring_memory_init(&memory, SIZE, RING_HUGE_OFF), 0);
        ck_assert_int_eq(fstat(memory.fd, &status), 0);
        ck_assert_int_eq(status.st_blocks, 0);
        ck_assert_int_eq(ring_memory_prepare(&memory, 65536, 65536), 0);
        ck_assert_int_eq(ring_memory_prepare(&memory, 65536, 65536), 0);
        ck_assert_int_eq(fstat(memory.fd, &status), 0);
        ck_assert_int_eq(status.st_blocks, 65536 / 512);
        ring_memory_deinit(&memory);
}
END_TEST

START_TEST(prepared_memory_that_is_not_there_is_an_error) {
        struct ring_memory memory;

        ck_assert_int_eq(ring_memory_init(&memory, SIZE, RING_HUGE_OFF), 0);
        ck_assert_int_lt(ring_memory_prepare(&memory, SIZE, 65536), 0); /* sealed: it cannot grow */
        ring_memory_deinit(&memory);
}
END_TEST

START_TEST(huge_pages_of_the_pool) {
        long before = pool_get();
        struct ring_memory memory;
        bool could = before >= 0 && pool_set(before + 4);

        if (!could) {
                if (before >= 0)
                        pool_set(before);
                return; /* the machine does not allow it */
        }
        ck_assert_int_eq(ring_memory_init(&memory, SIZE, RING_HUGE_ON), 0);
        ck_assert_int_eq(memory.tier, RING_TIER_MEMFD_HUGE);
        ck_assert_str_eq(memory.tier_reason, "");
        must_be_usable(&memory);
        ring_memory_deinit(&memory);
        ck_assert_int_eq(ring_memory_init(&memory, SIZE, RING_HUGE_TRY), 0);
        ck_assert_int_eq(memory.tier, RING_TIER_MEMFD_HUGE);
        ring_memory_deinit(&memory);
        ck_assert(pool_set(before));
}
END_TEST

/* A petabyte: no pool has it, so this needs no rights. */
START_TEST(too_small_a_pool_is_named_with_its_numbers) {
        struct ring_memory memory;
        uint64_t size = 1ull << 50;
        unsigned long long wanted, available, total, command;

        ck_assert_int_lt(ring_memory_init(&memory, size, RING_HUGE_ON), 0);
        ck_assert_msg(sscanf(memory.tier_reason,
                             "%llu huge pages of 2 MiB wanted, %llu of %llu available; run: sysctl "
                             "vm.nr_hugepages=%llu",
                             &wanted, &available, &total, &command) == 4,
                      "%s", memory.tier_reason);
        ck_assert_uint_eq(wanted, size >> 21);
        ck_assert_uint_le(available, total);
        ck_assert_uint_eq(command, total + wanted - available);
        ring_memory_deinit(&memory);
}
END_TEST

START_TEST(small_pages_where_the_pool_is_too_small) {
        long before = pool_get();
        struct ring_memory memory;

        if (before != 0)
                return; /* someone uses the pool */
        ck_assert_int_eq(ring_memory_init(&memory, SIZE, RING_HUGE_TRY), 0);
        ck_assert_int_eq(memory.tier, RING_TIER_4K);
        ck_assert_str_eq(
                memory.tier_reason,
                "2 huge pages of 2 MiB wanted, 0 of 0 available; run: sysctl vm.nr_hugepages=2");
        must_be_usable(&memory);
        ring_memory_deinit(&memory);
        ck_assert_int_lt(ring_memory_init(&memory, SIZE, RING_HUGE_ON), 0);
        ck_assert_int_eq(memory.fd, -1);
        ring_memory_deinit(&memory);
}
END_TEST

RUNNER_MAIN("publish/ring_memory", small_pages_when_asked_for,
            nothing_is_present_before_it_is_prepared, prepared_memory_that_is_not_there_is_an_error,
            huge_pages_of_the_pool, too_small_a_pool_is_named_with_its_numbers,
            small_pages_where_the_pool_is_too_small)
