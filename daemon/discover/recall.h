/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source and what is remembered of it on disk: read once at the start, beside the first listing,
 * and written after listings that changed something. Whatever fails here is logged once, and
 * nothing is remembered then. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/discover/manifest.h"

struct recall {
        char *directory; /* NULL: nothing is remembered */
        uint8_t *image;  /* that was read; NULL: none */
        struct manifest manifest;
        bool is_new;   /* files came or went since it was written */
        bool is_other; /* or they only changed */
        bool has_complained;
        uint64_t since_ms; /* waited since it was written */
};

/* directory NULL: nothing is remembered. -ENOMEM. */
int recall_init(struct recall *recall, const char *directory);
void recall_deinit(struct recall *recall);

/*
 * Reads what is remembered, if there is anything: the store's window and the bounds (which may be
 * NULL) are set to it.
 */
void recall_read(struct recall *recall, const struct catalog_source *source,
                 struct sweep_bounds *bounds);

/* Gives the files that were read to on_row, and forgets the image. */
void recall_give(struct recall *recall, const struct catalog_source *source,
                 void (*on_row)(void *userdata, const struct store_row *row), void *userdata);

/* A file of the source is new, gone, or another one than before. */
void recall_note(struct recall *recall, bool is_new);

/*
 * After a complete listing, or at the end: writes the files if any came or went, and if they only
 * changed, a minute after the last time.
 */
void recall_write(struct recall *recall, const struct catalog_source *source, unsigned window,
                  const struct sweep_bounds *bounds, bool is_end);
