/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for small things of which there may be millions, and which stay: cells of a few sizes, side
 * by side in pages of their own. They cost what they are long, and what comes and goes in between
 * them, on the heap, leaves no holes that nobody can give back. Pages without a cell in use go back
 * to the system. Under the address sanitizer each cell is an allocation of its own. Not thread-safe.
 */
#pragma once

#include <stddef.h>

#include "daemon/core/list.h"

#define CELLS_STEP_BYTES 16u  /* sizes are multiples of that */
#define CELLS_MOST_BYTES 512u /* what is longer comes from the heap */

struct cells {
        /* for each size: slabs with a free cell in them */
        struct list open[CELLS_MOST_BYTES / CELLS_STEP_BYTES];
};

void cells_init(struct cells *cells);

/* All of them must have been given back. */
void cells_deinit(struct cells *cells);

/* Zeroed, aligned to 16. NULL: no memory. */
void *cells_take(struct cells *cells, size_t size);

/* The size is that of cells_take(). NULL is taken. */
void cells_give(struct cells *cells, void *take_cell, size_t size);
