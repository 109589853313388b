/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/buffers.h"

#include <sys/mman.h>

#include "common/base.h"

#define BUFFERS_NO_HUGE_BELOW (2u << 20)

/* BUFFERS_CLASSES for those that are never kept. */
static unsigned class_of(uint64_t size_bytes) {
        unsigned class = 0;

        while (class < BUFFERS_CLASSES && ((uint64_t)BUFFERS_SMALLEST_BYTES << class) < size_bytes)
                class ++;
        return class;
}

static uint64_t mapped_bytes(unsigned class, uint64_t size_bytes) {
        return class < BUFFERS_CLASSES ? (uint64_t)BUFFERS_SMALLEST_BYTES << class
                                       : align_up(size_bytes, 4096);
}

void buffers_init(struct buffers *buffers, uint64_t kept_most_bytes) {
        *buffers = (struct buffers){ .kept_most_bytes = kept_most_bytes };
}

void buffers_deinit(struct buffers *buffers) {
        buffers_trim(buffers, 0);
}

uint8_t *buffers_take(struct buffers *buffers, uint64_t size_bytes) {
        unsigned class = class_of(size_bytes);
        uint64_t bytes = mapped_bytes(class, size_bytes);
        void *memory;

        if (bytes < size_bytes || bytes > SIZE_MAX / 2)
                return NULL;
        if (class < BUFFERS_CLASSES && buffers->free[class]) {
                struct buffer_free *first = buffers->free[class];

                buffers->free[class] = first->next;
                buffers->kept_bytes -= bytes;
                return (uint8_t *)first;
        }
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return NULL;
        /* One huge page would make the slack of all buffers in it real. */
        if (bytes < BUFFERS_NO_HUGE_BELOW)
                madvise(memory, bytes, MADV_NOHUGEPAGE);
        return memory;
}

void buffers_give(struct buffers *buffers, uint8_t *buffer, uint64_t size_bytes) {
        unsigned class = class_of(size_bytes);
        uint64_t bytes = mapped_bytes(class, size_bytes);
        struct buffer_free *node = (struct buffer_free *)(void *)buffer;

        if (class == BUFFERS_CLASSES || buffers->kept_bytes + bytes > buffers->kept_most_bytes) {
                munmap(buffer, bytes);
                return;
        }
        node->next = buffers->free[class];
        buffers->free[class] = node;
        buffers->kept_bytes += bytes;
}

void buffers_trim(struct buffers *buffers, uint64_t kept_bytes) {
        for (unsigned class = BUFFERS_CLASSES; class -- > 0 && buffers->kept_bytes > kept_bytes;) {
                while (buffers->free[class] && buffers->kept_bytes > kept_bytes) {
                        struct buffer_free *first = buffers->free[class];
                        uint64_t bytes = mapped_bytes(class, 0);

                        buffers->free[class] = first->next;
                        buffers->kept_bytes -= bytes;
                        munmap(first, bytes);
                }
        }
}
