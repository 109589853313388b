/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at a source, in as few requests as there is need for, and what is remembered from one to
 * the next.
 *
 * Stores that are not flat are listed as they can. Of a flat store all names are listed, in parts at
 * once where there are more than three pages: between names that are remembered, or else between
 * the directories that a listing of one level finds. Where a fifth or more of the objects is
 * foreign (checkpoints), a look between two full ones lists only the directories of live runs and
 * the source itself, one level each; a directory that was not there before is listed whole. So no
 * name is left out for longer than until the next full sweep. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/discover/catalog.h"
#include "daemon/discover/sweep_bounds.h"

struct sweep;

enum sweep_kind {
        SWEEP_FULL, /* every name */
        SWEEP_LIVE, /* where something may have changed */
};

struct sweep_events {
        /* as those of struct store_list_callbacks; a row may come twice */
        void (*on_row)(void *userdata, const struct store_row *row);
        void (*on_unreadable)(void *userdata, const char *directory, size_t size,
                              const struct store_failure *failure);
        void (*on_done)(void *userdata, const struct store_failure *failure,
                        const struct store_list_counts *counts);
};

/* The source is borrowed. NULL: no memory. */
struct sweep *sweep_new(struct catalog_source *source, const struct sweep_events *events,
                        void *userdata);

/* Ends what is under way, without a callback. NULL is taken; returns NULL. */
struct sweep *sweep_free(struct sweep *sweep);

/*
 * Starts to list; none may be under way. SWEEP_LIVE is only for a sweep that sweep_has_live() is
 * true of. now_s: Unix time. on_done follows. -ENOMEM and what the store says.
 */
int sweep_start(struct sweep *sweep, enum sweep_kind kind, int64_t now_s);

/*
 * True while one listing of all there is is under way: rows that are still to come are behind those
 * that have come, in the order of their names' bytes. Once it is false it stays so until the next
 * sweep.
 */
bool sweep_is_in_order(const struct sweep *sweep);

/*
 * True if a look at the live runs alone costs less than half of a full one, which has been made
 * before.
 */
bool sweep_has_live(const struct sweep *sweep, int64_t now_s);

/* What long listings are split at; to be kept, and to be set before the first one. */
struct sweep_bounds *sweep_bounds(struct sweep *sweep);

/* Requests of the last full sweep, and of the look that the next poll would take. */
uint64_t sweep_full_requests(const struct sweep *sweep);
uint64_t sweep_poll_requests(const struct sweep *sweep, int64_t now_s);

/* Of the sweep that has just ended: if the run is not in its rows, it was not there. */
bool sweep_covers(const struct sweep *sweep, const struct catalog_run *run);
