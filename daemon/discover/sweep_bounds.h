/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names between which a flat store is listed in parts at once: the part before the first one, those
 * up to each next one and with it, and what is behind the last. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/discover/catalog.h"

struct sweep_bounds {
        char **names; /* in the order of their bytes */
        size_t count;
        bool are_files; /* they were made of files */
};

void sweep_bounds_deinit(struct sweep_bounds *bounds);

/* Adds a copy behind the others. -ENOMEM. */
int sweep_bounds_add(struct sweep_bounds *bounds, const char *name);

/*
 * Makes them anew, so that each part has at most one page of the source's files. page_rows: of the
 * names on a page how many are files. -ENOMEM: there are none then.
 */
int sweep_bounds_set_files(struct sweep_bounds *bounds, const struct catalog_source *source,
                           uint64_t page_rows);

/*
 * Makes them anew of directories (without a slash at their end, in order): at most parts - 1. -ENOMEM: there are none
 * then.
 */
int sweep_bounds_set_directories(struct sweep_bounds *bounds, char *const *directories,
                                 size_t count, size_t parts);
