/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiers in this file: huge pages from the pool by memfd (needs no mount and no privilege, only free
 * pages), else 4 KiB pages. Huge pages are reserved by mmap() without MAP_NORESERVE, which fails
 * where the pool is too small, instead of a SIGBUS later. Both tiers are made present range by
 * range with fallocate(), which answers with an error where memory is short.
 */
#include "daemon/publish/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base.h"

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

#define HUGE_PAGE_BYTES (2ull << 20)

/* Kernels before 6.3 do not know MFD_NOEXEC_SEAL and answer EINVAL. */
static int memfd_open(unsigned flags) {
        int fd = memfd_create("headrace",
                              MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | flags);

        if (fd < 0 && errno == EINVAL)
                fd = memfd_create("headrace", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
        return fd < 0 ? -errno : fd;
}

/*
 * Maps the descriptor at a 2 MiB boundary: reserves address space, then puts the mapping over an
 * aligned part of it.
 */
static int map_aligned(int fd, uint64_t size_bytes, uint8_t **ret_base) {
        uint64_t space = size_bytes + HUGE_PAGE_BYTES;
        uint8_t *area, *base;

        area = mmap(NULL, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (area == MAP_FAILED)
                return -errno;
        base = (uint8_t *)align_up((uintptr_t)area, HUGE_PAGE_BYTES);
        if (mmap(base, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
            MAP_FAILED) {
                int error = errno;

                munmap(area, space);
                return -error;
        }
        if (base > area)
                munmap(area, (size_t)(base - area));
        munmap(base + size_bytes, (size_t)(area + space - (base + size_bytes)));
        *ret_base = base;
        return 0;
}

static int ring_memory_make(struct ring_memory *memory, uint64_t size_bytes, unsigned flags) {
        CLEANUP(close_fdp) int fd = memfd_open(flags);
        int r;

        if (fd < 0)
                return fd;
        if (ftruncate(fd, (off_t)size_bytes) < 0)
                return -errno;
        r = map_aligned(fd, size_bytes, &memory->base);
        if (r < 0)
                return r;
        if (fcntl(fd, F_ADD_SEALS,
                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0) {
                r = -errno;
                munmap(memory->base, size_bytes);
                return r;
        }
        memory->fd = steal_fd(&fd);
        memory->size_bytes = size_bytes;
        return 0;
}

/*
 * The number that a line of /proc/meminfo has after its name; UINT64_MAX where it cannot be read.
 */
static uint64_t meminfo(const char *name) {
        unsigned long long value;
        uint64_t found = UINT64_MAX;
        char line[128];
        FILE *file = fopen("/proc/meminfo", "re");

        if (!file)
                return found;
        while (found == UINT64_MAX && fgets(line, sizeof(line), file))
                if (!strncmp(line, name, strlen(name)) &&
                    sscanf(line + strlen(name), " %llu", &value) == 1)
                        found = value;
        fclose(file);
        return found;
}

/* Why the pool did not give what was wanted, and the command that would help. */
static void explain_pool(struct ring_memory *memory, int error) {
        uint64_t pages = memory->size_bytes / HUGE_PAGE_BYTES, total = meminfo("HugePages_Total:");
        uint64_t free_pages = meminfo("HugePages_Free:"), reserved = meminfo("HugePages_Rsvd:");
        uint64_t available = free_pages > reserved ? free_pages - reserved : 0;

        if (total == UINT64_MAX || available >= pages)
                snprintf(memory->tier_reason, sizeof(memory->tier_reason), "huge pages: %s",
                         strerror(error));
        else
                snprintf(memory->tier_reason, sizeof(memory->tier_reason),
                         "%llu huge pages of 2 MiB wanted, %llu of %llu available; run: sysctl "
                         "vm.nr_hugepages=%llu",
                         (unsigned long long)pages, (unsigned long long)available,
                         (unsigned long long)total,
                         (unsigned long long)(total + pages - available));
}

int ring_memory_init(struct ring_memory *ret_memory, uint64_t size_bytes, enum ring_huge huge) {
        int r;

        *ret_memory = (struct ring_memory){ .fd = -1, .size_bytes = size_bytes };
        MUST(size_bytes && size_bytes % HUGE_PAGE_BYTES == 0);
        if (huge == RING_HUGE_OFF) {
                snprintf(ret_memory->tier_reason, sizeof(ret_memory->tier_reason),
                         "huge pages are switched off (ring.huge)");
        } else {
                r = ring_memory_make(ret_memory, size_bytes, MFD_HUGETLB | MFD_HUGE_2MB);
                if (r == 0) {
                        ret_memory->tier = RING_TIER_MEMFD_HUGE;
                        return 0;
                }
                explain_pool(ret_memory, -r);
                if (huge == RING_HUGE_ON)
                        return r;
        }
        ret_memory->tier = RING_TIER_4K;
        r = ring_memory_make(ret_memory, size_bytes, 0);
        if (r < 0)
                snprintf(ret_memory->tier_reason, sizeof(ret_memory->tier_reason),
                         "%llu MiB of shared memory: %s; try a smaller ring (-m)",
                         (unsigned long long)(size_bytes >> 20), strerror(-r));
        return r;
}

void ring_memory_deinit(struct ring_memory *memory) {
        if (memory->base)
                munmap(memory->base, memory->size_bytes);
        if (memory->fd >= 0)
                close(memory->fd);
        *memory = (struct ring_memory){ .fd = -1 };
}

int ring_memory_prepare(const struct ring_memory *memory, uint64_t offset, uint64_t size_bytes) {
        /*
         * fallocate() takes whole pages of the tier: a segment smaller than a huge page makes its
         * neighbours present, too.
         */
        while (fallocate(memory->fd, 0, (off_t)offset, (off_t)size_bytes) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}
