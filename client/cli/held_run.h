/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of one run, held back until it is known which of their points stand: at the end of the
 * run, as a restart may come last. Memory up to a limit, then a temporary file; beside that it
 * grows with the restarts, not with the lines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/sink.h"
#include "client/cli/spool.h"
#include "client/include/headrace.h"
#include "common/id_table.h"

/* A line, or a piece of one that is longer than the sink: then only the first has a series. */
struct held_chunk {
        const struct hr_series *series;
        const struct hr_file *file;
        int64_t step;
        uint64_t told_at; /* hr_withdrawn_count() then */
        uint64_t size;    /* bytes behind this */
};

struct held_run {
        struct sink *out;
        struct sink lines;       /* a line is written here, between begin and end */
        struct held_chunk chunk; /* of the line that is being written */
        struct spool spool;      /* chunks, each with its bytes behind it */
        struct hr_withdrawn *withdrawn;
        struct hr_text name;     /* bytes NULL: no run is held */
        struct id_table written; /* runs of which lines were written */
        bool is_again;           /* the one that is held is among them */
        uint64_t left_out;       /* lines of points that were withdrawn, of all runs so far */
};

/* Survivors go to out when their run is released. -ENOMEM. */
int held_run_init(struct held_run *held, struct sink *out, size_t memory_bytes);
void held_run_deinit(struct held_run *held);

/* True if it is the run of that file that is held. */
bool held_run_is(const struct held_run *held, const struct hr_file *file);

/*
 * From here on the file's run is held; none was. It may have been held before (a file that could
 * not be read at first comes late): what it withdraws of the lines from then stays. -ENOMEM.
 */
int held_run_begin(struct held_run *held, const struct hr_file *file);

/* The line of a point is written to held->lines after this. */
void held_run_begin_line(struct held_run *held, const struct hr_series *series,
                         const struct hr_file *file, int64_t step);

/* 0, or -errno: it could not be kept. */
int held_run_end_line(struct held_run *held);

/* As hr_withdrawn_add(). */
int held_run_withdraw(struct held_run *held, const struct hr_series *series,
                      const struct hr_file *file, int64_t from_step);

/*
 * Writes the lines of points that stand, in their order, and holds no run any more. -errno: what
 * was held could not be read back; write errors are those of out.
 */
int held_run_release(struct held_run *held);
