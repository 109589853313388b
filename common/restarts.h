/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which points a record withdraws, told record by record in the order of delivery: a training job
 * that crashed goes on from its last checkpoint and writes steps again that are there already.
 *
 * RESTARTS_ORDER, the rule of TensorBoard's data server: a value whose step is not larger than the
 * last one of its series withdraws the points of the series from its own step on. Other than
 * there, each file is a writer of its own: what it withdraws are its own points, and those of files
 * that had ended (by the clock of their records) when it began. Two jobs that write one run at the
 * same time leave each other alone.
 *
 * RESTARTS_START, the rule of TensorBoard's Python loader: once a file_version was seen in the run,
 * each SessionLog START but the first withdraws the points of all tags from its step on. Before
 * that, an Event with values whose step is smaller than that of the Event with values before it
 * withdraws, of its tags, the points from its step on.
 *
 * When a file begins and ends: the first and the greatest wall time of its records; those that are
 * no number, infinite, or 0 (which is how an absent one reads) do not count. Where the clock says
 * nothing, the order of delivery does.
 *
 * The caller's structures of runs, files and series each have a part of this (all zero at first,
 * but for the run of a file). Work for a record is constant; where a file begins a series that
 * others have, it is in the number of those of them that reach its first step, or, once files
 * took turns in the series, of all of them. Memory: one restarts_writer for each file of each series.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/extent_format.h"
#include "common/id_table.h"

enum restarts_rule {
        RESTARTS_NONE = 0, /* nothing is withdrawn */
        RESTARTS_START = 1,
        RESTARTS_ORDER = 2,
};

struct restarts_file;

struct restarts_run {
        struct restarts_file *file; /* of the last record */
        /* order: every file that was left had an end of at least this, as it was left */
        double least_end;
        bool was_left; /* least_end is set */
        /* start */
        bool has_version, has_start, has_step;
        int64_t last_step;     /* of the last Event with values */
        uint64_t event_offset; /* of the current Event, in `file` */
        uint64_t events;       /* with values */
        bool goes_back;        /* the current Event does */
};

struct restarts_file {
        struct restarts_run *run; /* set by the caller */
        bool has_begin, has_start;
        double begin, end; /* has_begin */
        struct restarts_writer *writers;
};

struct restarts_series {
        struct restarts_writer *top; /* order: files that have points, the last to begin first */
        struct restarts_writer *current; /* of the last record */
        bool takes_turns;                /* another than the top one went on */
        /* start */
        bool has_points;
        int64_t highest;
        uint64_t purged_event; /* of the run */
};

/* Points are withdrawn: those of that series and file whose step is from_step or more. */
struct restarts_withdrawal {
        uint32_t index;                 /* the caller's, of the record; they go before it counts */
        struct restarts_series *series; /* NULL: all of the run */
        struct restarts_file *file;     /* NULL: all of the run */
        int64_t from_step;
};

struct restarts {
        enum restarts_rule rule;
        struct id_table writers; /* by series and file */
        struct restarts_withdrawal *withdrawals;
        size_t count, space;
};

void restarts_init(struct restarts *restarts, enum restarts_rule rule);
void restarts_deinit(struct restarts *restarts);

/*
 * Tells the next record. series is NULL for a mark. What it withdraws is put behind
 * restarts->withdrawals[count]; the caller sets count to 0 when it has taken them. Points that
 * are already gone may be withdrawn again. -ENOMEM: this record was not told.
 */
int restarts_tell(struct restarts *restarts, struct restarts_series *series,
                  struct restarts_file *file, const struct extent_record *record, uint32_t index);

/* The file left storage, or begins anew: its points are gone, and it has neither begin nor end. */
void restarts_forget(struct restarts_file *file);
