/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slab that a cell lies in is found by its address, as slabs are aligned to their size. Free
 * cells of a slab are in a list that lies in themselves; those that were never used are behind a
 * mark. One empty slab of each size is kept, so that what comes and goes at a border maps nothing.
 */
#include "daemon/core/cells.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base.h"

#define SLAB_BYTES 65536u

#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_ALONE 1
#endif
#endif
#ifndef EACH_ALONE
#define EACH_ALONE 0
#endif

struct free_cell {
        struct free_cell *next;
};

struct slab {
        struct list node; /* in open[] while a cell is free */
        struct free_cell *free;
        uint32_t used;   /* cells */
        uint32_t unused; /* offset of the first cell that was never used */
};

#define SLAB_HEAD_BYTES ((uint32_t)align_up(sizeof(struct slab), CELLS_STEP_BYTES))

void cells_init(struct cells *cells) {
        for (size_t i = 0; i < ARRAY_SIZE(cells->open); i++)
                list_init(&cells->open[i]);
}

static void slab_unmap(struct slab *slab) {
        list_remove(&slab->node);
        munmap(slab, SLAB_BYTES);
}

void cells_deinit(struct cells *cells) {
        for (size_t i = 0; i < ARRAY_SIZE(cells->open); i++)
                list_for_each(node, &cells->open[i]) {
                        struct slab *slab = list_owner(node, struct slab, node);

                        MUST(slab->used == 0);
                        slab_unmap(slab);
                }
}

/* Twice as much is mapped, and what is not aligned goes back. */
static struct slab *slab_map(void) {
        char *memory = mmap(NULL, 2 * SLAB_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        size_t before;
        struct slab *slab;

        if (memory == MAP_FAILED)
                return NULL;
        before = (SLAB_BYTES - (uintptr_t)memory % SLAB_BYTES) % SLAB_BYTES;
        if (before > 0)
                munmap(memory, before);
        munmap(memory + before + SLAB_BYTES, SLAB_BYTES - before);
        slab = (struct slab *)(void *)(memory + before);
        list_init(&slab->node);
        slab->unused = SLAB_HEAD_BYTES;
        return slab;
}

static bool is_full(const struct slab *slab, size_t cell_bytes) {
        return !slab->free && slab->unused + cell_bytes > SLAB_BYTES;
}

static size_t cell_bytes(size_t size) {
        return align_up(size ? size : 1, CELLS_STEP_BYTES);
}

static struct list *open_slabs(struct cells *cells, size_t size) {
        return &cells->open[cell_bytes(size) / CELLS_STEP_BYTES - 1];
}

void *cells_take(struct cells *cells, size_t size) {
        struct list *open;
        struct slab *slab;
        void *cell;

        if (EACH_ALONE || size > CELLS_MOST_BYTES)
                return calloc(1, size ? size : 1);
        open = open_slabs(cells, size);
        slab = list_is_empty(open) ? slab_map() : list_owner(open->next, struct slab, node);
        if (!slab)
                return NULL;
        cell = slab->free;
        if (cell) {
                slab->free = slab->free->next;
                memset(cell, 0, size);
        } else {
                cell = (char *)slab + slab->unused;
                slab->unused += (uint32_t)cell_bytes(size);
        }
        slab->used++;
        list_remove(&slab->node);
        if (!is_full(slab, cell_bytes(size)))
                list_prepend(open, &slab->node);
        return cell;
}

void cells_give(struct cells *cells, void *take_cell, size_t size) {
        struct free_cell *cell = take_cell;
        struct list *open;
        struct slab *slab;

        if (!cell || EACH_ALONE || size > CELLS_MOST_BYTES) {
                free(cell);
                return;
        }
        open = open_slabs(cells, size);
        slab = (struct slab *)(void *)((char *)cell - (uintptr_t)cell % SLAB_BYTES);
        cell->next = slab->free;
        slab->free = cell;
        slab->used--;
        if (!list_is_linked(&slab->node))
                list_append(open, &slab->node);
        /* It is the only one with a free cell: kept. */
        if (slab->used == 0 && open->next->next != open)
                slab_unmap(slab);
}
