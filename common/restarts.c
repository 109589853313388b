/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a file's points of a series it is enough to know the greatest step: what stands behind a
 * withdrawal is below it, so each series and file is a stack whose top alone is looked at. For the
 * files below, each writer knows a bound of what its own restarts may reach, and is only searched
 * for where a step gets there.
 */
#include "common/restarts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base.h"

#define FIRST_SPACE 16

/* A file's points of one series, as far as they were not withdrawn. Steps are inclusive. */
struct restarts_writer {
        struct id_node node; /* first */
        struct restarts_series *series;
        struct restarts_file *file;
        struct restarts_writer *next_of_file;
        struct restarts_writer *below; /* of the series: the one that began before */
        bool is_stacked;               /* in the series' stack */
        bool is_empty;                 /* no points: the steps are nothing */
        int64_t first, last;           /* least and (at most) greatest step */
        int64_t highest; /* no step of this or of those below is greater, unless they take turns */
        int64_t bound;   /* likewise of other files that this one may withdraw */
};

void restarts_init(struct restarts *restarts, enum restarts_rule rule) {
        *restarts = (struct restarts){ .rule = rule };
        id_table_init(&restarts->writers);
}

static void writer_free(struct id_node *node) {
        free((struct restarts_writer *)node);
}

void restarts_deinit(struct restarts *restarts) {
        id_table_deinit(&restarts->writers, writer_free);
        free(restarts->withdrawals);
        restarts_init(restarts, RESTARTS_NONE);
}

/* -ENOMEM. Room for one more is always there afterwards. */
static int reserve(struct restarts *restarts) {
        size_t space = restarts->space ? 2 * restarts->space : FIRST_SPACE;
        struct restarts_withdrawal *withdrawals;

        if (restarts->count < restarts->space)
                return 0;
        withdrawals = reallocarray(restarts->withdrawals, space, sizeof(*withdrawals));
        if (!withdrawals)
                return -ENOMEM;
        restarts->withdrawals = withdrawals;
        restarts->space = space;
        return 0;
}

static int withdraw(struct restarts *restarts, uint32_t index, struct restarts_series *series,
                    struct restarts_file *file, int64_t from_step) {
        int r = reserve(restarts);

        if (r < 0)
                return r;
        restarts->withdrawals[restarts->count++] = (struct restarts_withdrawal){ index, series,
                                                                                 file, from_step };
        return 0;
}

/* ---- The clock of a file --------------------------------------------------------------------- */

static void tell_time(struct restarts_file *file, double wall_time) {
        if (file->has_begin && !(wall_time > file->end))
                return;
        if (!isfinite(wall_time) || wall_time == 0)
                return;
        if (!file->has_begin)
                file->begin = wall_time;
        file->has_begin = true;
        file->end = wall_time;
}

static double begin_of(const struct restarts_file *file) {
        return file->has_begin ? file->begin : INFINITY;
}

static double end_of(const struct restarts_file *file) {
        return file->has_begin ? file->end : -INFINITY;
}

/* Whoever is left may have ended. */
static void turn_to(struct restarts_run *run, struct restarts_file *file) {
        if (run->file) {
                double end = end_of(run->file);

                if (!run->was_left || end < run->least_end)
                        run->least_end = end;
                run->was_left = true;
        }
        run->file = file;
        /* Offsets are of one file. */
        run->event_offset = UINT64_MAX;
}

/* ---- By order -------------------------------------------------------------------------------- */

/* Heap addresses: nobody else chooses them. */
static uint64_t writer_id(const struct restarts_series *series, const struct restarts_file *file) {
        uint64_t id = (uint64_t)(uintptr_t)series * 0x9E3779B97F4A7C15u +
                      (uint64_t)(uintptr_t)file * 0xC2B2AE3D27D4EB4Fu;

        return id ^ id >> 32;
}

static void stack(struct restarts_writer *writer) {
        struct restarts_series *series = writer->series;

        writer->below = series->top;
        writer->highest = writer->bound = series->top ? series->top->highest : INT64_MIN;
        writer->is_stacked = true;
        series->top = writer;
}

static struct restarts_writer *writer_new(struct restarts *restarts, uint64_t id,
                                          struct restarts_series *series,
                                          struct restarts_file *file) {
        struct restarts_writer *writer = calloc(1, sizeof(*writer));

        if (!writer)
                return NULL;
        writer->node.id = id;
        if (id_table_add(&restarts->writers, &writer->node) < 0) {
                free(writer);
                return NULL;
        }
        writer->series = series;
        writer->file = file;
        writer->is_empty = true;
        writer->next_of_file = file->writers;
        file->writers = writer;
        return writer;
}

static struct restarts_writer *find_writer(const struct restarts *restarts, uint64_t id,
                                           const struct restarts_series *series,
                                           const struct restarts_file *file) {
        for (struct id_node *node = id_table_find(&restarts->writers, id); node;
             node = id_node_same(node)) {
                struct restarts_writer *writer = (struct restarts_writer *)node;

                if (writer->series == series && writer->file == file)
                        return writer;
        }
        return NULL;
}

/* The writer of a record, in the stack. NULL: out of memory. */
static struct restarts_writer *writer_of(struct restarts *restarts, struct restarts_series *series,
                                         struct restarts_file *file) {
        struct restarts_writer *writer = series->current;
        uint64_t id;

        if (writer && writer->file == file && writer->is_stacked)
                return writer;
        id = writer_id(series, file);
        writer = find_writer(restarts, id, series, file);
        if (!writer && !(writer = writer_new(restarts, id, series, file)))
                return NULL;
        if (!writer->is_stacked)
                stack(writer);
        else if (writer != series->top)
                series->takes_turns = true;
        if (series->takes_turns)
                writer->bound = INT64_MAX; /* the others went on, too */
        series->current = writer;
        return writer;
}

/* Takes its points from that step on away. */
static void cut(struct restarts_writer *writer, int64_t from_step) {
        writer->is_empty = from_step <= writer->first;
        if (!writer->is_empty)
                writer->last = from_step - 1;
}

static int withdraw_other(struct restarts *restarts, struct restarts_writer *other, int64_t step,
                          uint32_t index) {
        int r;

        if (other->last < step)
                return 0;
        r = withdraw(restarts, index, other->series, other->file, step);
        if (r == 0)
                cut(other, step);
        return r;
}

/* Takes the writer out of its stack, and returns where the one below it hangs now. */
static struct restarts_writer **unstack(struct restarts_writer **link) {
        struct restarts_writer *writer = *link;

        writer->is_stacked = false;
        *link = writer->below;
        return link;
}

static int64_t max_i64(int64_t a, int64_t b) {
        return a > b ? a : b;
}

/*
 * The points of other files that had ended when the writer's began. Leaves the greatest step of
 * those that stand as the writer's bound, and out of the stack what is empty.
 */
static int withdraw_others(struct restarts *restarts, struct restarts_writer *writer, int64_t step,
                           uint32_t index) {
        const struct restarts_run *run = writer->file->run;
        double begin = begin_of(writer->file);
        struct restarts_series *series = writer->series;
        struct restarts_writer *other, **link = series->takes_turns ? &series->top : &writer->below;
        int64_t bound = INT64_MIN;
        int r;

        if (run->was_left && run->least_end > begin) {
                writer->bound = INT64_MIN; /* nobody has ended */
                return 0;
        }
        while ((other = *link)) {
                if (!series->takes_turns && other->highest < step) {
                        bound = max_i64(bound, other->highest);
                        break;
                }
                if (other == writer) {
                        link = &other->below;
                        continue;
                }
                if (!other->is_empty && end_of(other->file) <= begin) {
                        if ((r = withdraw_other(restarts, other, step, index)) < 0)
                                return r;
                        bound = max_i64(bound, other->is_empty ? bound : other->last);
                }
                link = other->is_empty ? unstack(link) : &other->below;
        }
        writer->bound = bound;
        return 0;
}

static int tell_order(struct restarts *restarts, struct restarts_series *series,
                      struct restarts_file *file, int64_t step, uint32_t index) {
        struct restarts_writer *writer = writer_of(restarts, series, file);
        int r = writer ? 0 : -ENOMEM;

        if (r == 0 && !writer->is_empty && step <= writer->last) {
                r = withdraw(restarts, index, series, file, step);
                if (r == 0)
                        cut(writer, step);
        }
        if (r == 0 && step <= writer->bound)
                r = withdraw_others(restarts, writer, step, index);
        if (r < 0)
                return r;
        if (writer->is_empty)
                writer->first = step;
        writer->is_empty = false;
        writer->last = step;
        if (step > writer->highest)
                writer->highest = step;
        return 0;
}

/* ---- By session starts ----------------------------------------------------------------------- */

static int tell_mark(struct restarts *restarts, struct restarts_file *file,
                     const struct extent_record *mark, uint32_t index) {
        struct restarts_run *run = file->run;
        bool is_restart;

        if (mark->dtype == EXTENT_MARK_FILE_VERSION)
                run->has_version = true;
        if (mark->dtype != EXTENT_MARK_SESSION_START || !run->has_version)
                return 0;
        is_restart = run->has_start;
        run->has_start = file->has_start = true;
        return is_restart ? withdraw(restarts, index, NULL, NULL, mark->step) : 0;
}

/* A value may be one of many of its Event, which goes back as a whole. */
static void tell_event(struct restarts_run *run, const struct extent_record *record) {
        if (run->event_offset == record->source_offset)
                return;
        run->goes_back = !run->has_version && run->has_step && record->step < run->last_step;
        run->event_offset = record->source_offset;
        run->events++;
        run->has_step = true;
        run->last_step = record->step;
}

static int tell_start(struct restarts *restarts, struct restarts_series *series,
                      struct restarts_file *file, const struct extent_record *record,
                      uint32_t index) {
        struct restarts_run *run = file->run;
        int64_t step = record->step;
        int r;

        tell_event(run, record);
        if (run->goes_back && series->has_points && series->highest >= step &&
            series->purged_event != run->events) {
                if ((r = withdraw(restarts, index, series, NULL, step)) < 0)
                        return r;
                series->highest = step;
        }
        if (run->goes_back)
                series->purged_event = run->events;
        if (!series->has_points || step > series->highest)
                series->highest = step;
        series->has_points = true;
        return 0;
}

int restarts_tell(struct restarts *restarts, struct restarts_series *series,
                  struct restarts_file *file, const struct extent_record *record, uint32_t index) {
        if (restarts->rule == RESTARTS_NONE)
                return 0;
        if (file->run->file != file)
                turn_to(file->run, file);
        tell_time(file, record->wall_time);
        if (restarts->rule == RESTARTS_ORDER)
                return series ? tell_order(restarts, series, file, record->step, index) : 0;
        return series ? tell_start(restarts, series, file, record, index)
                      : tell_mark(restarts, file, record, index);
}

void restarts_forget(struct restarts_file *file) {
        struct restarts_run *run = file->run;

        for (struct restarts_writer *writer = file->writers; writer; writer = writer->next_of_file)
                writer->is_empty = true;
        if (file->has_start)
                run->has_start = false; /* the new version has its first one again */
        run->has_step = false;
        run->events++; /* an Event at the same offset is another one */
        run->event_offset = UINT64_MAX;
        file->has_begin = file->has_start = false;
}
