/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules as docs/TENSORBOARD.md, "Steps and restarts", has them, against a model that keeps every
 * point and does what the rule says to each. Real files: integration/test_restarts.py.
 */
#include "common/restarts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

#define SERIES 3
#define FILES 6
#define POINTS 4096

struct point {
        unsigned series, file;
        int64_t step;
        bool stands, model_stands;
};

struct world {
        struct restarts restarts;
        struct restarts_run run;
        struct restarts_file files[FILES];
        struct restarts_series series[SERIES];
        struct point points[POINTS];
        uint32_t count;

        /* Of the model. */
        double begin[FILES], end[FILES];
        bool has_version, has_start, has_step;
        int64_t last_step;
        unsigned event_file;
        uint64_t event_offset;
        bool goes_back;
        uint32_t event_first; /* number of points before the Event */
};

static void begin(struct world *world, enum restarts_rule rule) {
        memset(world, 0, sizeof(*world));
        restarts_init(&world->restarts, rule);
        for (unsigned i = 0; i < FILES; i++) {
                world->files[i].run = &world->run;
                world->begin[i] = INFINITY;
                world->end[i] = -INFINITY;
        }
        world->event_offset = UINT64_MAX;
}

static void end(struct world *world) {
        restarts_deinit(&world->restarts);
}

/* What the tracker said, done to the points. */
static void apply(struct world *world) {
        for (size_t i = 0; i < world->restarts.count; i++) {
                const struct restarts_withdrawal *found = &world->restarts.withdrawals[i];

                if (found->index != world->count)
                        ck_abort_msg("index %u of record %u", found->index, world->count);
                for (uint32_t k = 0; k < world->count; k++) {
                        struct point *point = &world->points[k];

                        if ((!found->series || found->series == &world->series[point->series]) &&
                            (!found->file || found->file == &world->files[point->file]) &&
                            point->step >= found->from_step)
                                point->stands = false;
                }
        }
        world->restarts.count = 0;
}

static void check_same(const struct world *world) {
        for (uint32_t i = 0; i < world->count; i++) {
                const struct point *point = &world->points[i];

                if (point->stands != point->model_stands)
                        ck_abort_msg("point %u of %u: series %u, file %u, step %lld", i,
                                     world->count, point->series, point->file,
                                     (long long)point->step);
        }
}

static void add_point(struct world *world, unsigned series, unsigned file, int64_t step) {
        MUST(world->count < POINTS);
        world->points[world->count++] = (struct point){ series, file, step, true, true };
}

static void model_time(struct world *world, unsigned file, double wall_time) {
        if (!isfinite(wall_time) || wall_time == 0)
                return;
        if (world->begin[file] == INFINITY)
                world->begin[file] = wall_time;
        world->end[file] = fmax(world->end[file], wall_time);
}

static void model_order(struct world *world, unsigned series, unsigned file, int64_t step) {
        for (uint32_t i = 0; i < world->count; i++) {
                struct point *point = &world->points[i];

                if (point->series == series && point->step >= step &&
                    (point->file == file || world->end[point->file] <= world->begin[file]))
                        point->model_stands = false;
        }
}

static void model_start(struct world *world, unsigned series, unsigned file, int64_t step,
                        uint64_t offset) {
        if (file != world->event_file || offset != world->event_offset) {
                world->goes_back = !world->has_version && world->has_step &&
                                   step < world->last_step;
                world->event_first = world->count;
                world->event_file = file;
                world->event_offset = offset;
                world->has_step = true;
                world->last_step = step;
        }
        for (uint32_t i = 0; i < world->event_first && world->goes_back; i++) {
                struct point *point = &world->points[i];

                if (point->series == series && point->step >= step)
                        point->model_stands = false;
        }
}

static void tell(struct world *world, unsigned series, unsigned file, int64_t step,
                 double wall_time, uint64_t offset) {
        struct extent_record record = { .step = step,
                                        .wall_time = wall_time,
                                        .kind = EXTENT_KIND_SCALAR,
                                        .source_offset = offset };

        if (restarts_tell(&world->restarts, &world->series[series], &world->files[file], &record,
                          world->count) < 0)
                ck_abort_msg("no memory");
        apply(world);
        model_time(world, file, wall_time);
        if (world->restarts.rule == RESTARTS_ORDER)
                model_order(world, series, file, step);
        else if (world->restarts.rule == RESTARTS_START)
                model_start(world, series, file, step, offset);
        add_point(world, series, file, step);
}

static void tell_mark(struct world *world, unsigned file, enum extent_mark mark, int64_t step,
                      double wall_time) {
        struct extent_record record = {
                .step = step, .wall_time = wall_time, .kind = EXTENT_KIND_MARK, .dtype = mark
        };

        if (restarts_tell(&world->restarts, NULL, &world->files[file], &record, world->count) < 0)
                ck_abort_msg("no memory");
        apply(world);
        model_time(world, file, wall_time);
        if (world->restarts.rule != RESTARTS_START)
                return;
        world->has_version |= mark == EXTENT_MARK_FILE_VERSION;
        if (mark != EXTENT_MARK_SESSION_START || !world->has_version)
                return;
        for (uint32_t i = 0; i < world->count && world->has_start; i++)
                world->points[i].model_stands &= world->points[i].step < step;
        world->has_start = true;
}

/* The steps of a series that stand, as "0 1 2". */
static void check_stands(const struct world *world, unsigned series, const char *expected) {
        char text[256] = "";

        for (uint32_t i = 0; i < world->count; i++) {
                size_t size = strlen(text);

                if (world->points[i].series == series && world->points[i].stands)
                        snprintf(text + size, sizeof(text) - size, "%s%lld", size ? " " : "",
                                 (long long)world->points[i].step);
        }
        ck_assert_str_eq(text, expected);
}

static struct world world;

/* ---- By order -------------------------------------------------------------------------------- */

START_TEST(order_withdraws_from_the_step_on) {
        static const int64_t steps[] = { 0, 1, 2, 3, 1, 2 };

        begin(&world, RESTARTS_ORDER);
        for (unsigned i = 0; i < ARRAY_SIZE(steps); i++)
                tell(&world, 0, 0, steps[i], 100 + i, i);
        tell(&world, 1, 0, 0, 110, 10); /* another series has its own steps */
        check_stands(&world, 0, "0 1 2");
        check_stands(&world, 1, "0");
        end(&world);
}
END_TEST

START_TEST(order_keeps_the_latest_of_one_step) {
        begin(&world, RESTARTS_ORDER);
        for (unsigned i = 0; i < 5; i++)
                tell(&world, 0, 0, INT64_MIN, 100 + i, i);
        tell(&world, 0, 0, INT64_MAX, 105, 5);
        tell(&world, 0, 0, INT64_MAX, 106, 6);
        ck_assert(!world.points[3].stands && world.points[4].stands);
        ck_assert(!world.points[5].stands && world.points[6].stands);
        end(&world);
}
END_TEST

START_TEST(order_a_later_file_is_a_restart) {
        begin(&world, RESTARTS_ORDER);
        for (int i = 0; i < 5; i++)
                tell(&world, 0, 0, i, 100 + i, (uint64_t)i);
        tell_mark(&world, 1, EXTENT_MARK_FILE_VERSION, 0, 104); /* as the other one ends */
        tell(&world, 0, 1, 2, 105, 1);
        tell(&world, 0, 1, 3, 106, 2);
        check_stands(&world, 0, "0 1 2 3");
        tell_mark(&world, 2, EXTENT_MARK_FILE_VERSION, 0, 200);
        tell(&world, 0, 2, 1, 201, 1); /* reaches into both */
        check_stands(&world, 0, "0 1");
        end(&world);
}
END_TEST

START_TEST(order_files_of_one_time_leave_each_other_alone) {
        begin(&world, RESTARTS_ORDER);
        for (int i = 0; i < 8; i += 2)
                tell(&world, 0, 0, i, 100 + i, (uint64_t)i);
        tell_mark(&world, 1, EXTENT_MARK_FILE_VERSION, 0, 100);
        for (int i = 1; i < 8; i += 2)
                tell(&world, 0, 1, i, 100 + i, (uint64_t)i);
        check_stands(&world, 0, "0 2 4 6 1 3 5 7");
        tell(&world, 0, 1, 3, 120, 20); /* its own points only */
        check_stands(&world, 0, "0 2 4 6 1 3");
        tell(&world, 0, 0, 4, 121, 21);
        check_stands(&world, 0, "0 2 1 3 4");
        end(&world);
}
END_TEST

/* A job's start is what counts, even where the series begins late in its file. */
START_TEST(order_a_file_begins_with_its_first_record) {
        begin(&world, RESTARTS_ORDER);
        for (int i = 0; i < 5; i++)
                tell(&world, 0, 0, i, 100 + i, (uint64_t)i);
        tell_mark(&world, 1, EXTENT_MARK_FILE_VERSION, 0, 102);
        tell(&world, 0, 1, 0, 500, 1);
        check_stands(&world, 0, "0 1 2 3 4 0");
        end(&world);
}
END_TEST

/* The crate tensorboard-rs writes a graph without a time first; a NaN says as little. */
START_TEST(order_a_time_that_is_none_does_not_count) {
        begin(&world, RESTARTS_ORDER);
        for (int i = 0; i < 5; i++)
                tell(&world, 0, 0, i, 100 + i, (uint64_t)i);
        tell(&world, 0, 0, 5, INFINITY, 5);
        tell(&world, 1, 1, 0, 0, 0);
        tell(&world, 1, 1, 1, (double)NAN, 1);
        tell(&world, 0, 1, 2, 200, 2);
        check_stands(&world, 0, "0 1 2");
        end(&world);

        /* Without any clock the order of delivery decides. */
        begin(&world, RESTARTS_ORDER);
        for (unsigned i = 0; i < 5; i++)
                tell(&world, 0, 0, i, 0, i);
        tell(&world, 0, 1, 2, 0, 2);
        check_stands(&world, 0, "0 1 2");
        end(&world);
}
END_TEST

START_TEST(order_a_file_that_goes_on_withdraws_nothing_of_a_later_one) {
        begin(&world, RESTARTS_ORDER);
        tell(&world, 0, 0, 0, 100, 0);
        tell(&world, 0, 1, 5, 200, 0);
        tell(&world, 0, 0, 1, 300, 1);
        check_stands(&world, 0, "0 5 1");
        end(&world);
}
END_TEST

START_TEST(a_forgotten_file_begins_anew) {
        begin(&world, RESTARTS_ORDER);
        for (unsigned i = 0; i < 5; i++)
                tell(&world, 0, 0, i, 100 + i, i);
        restarts_forget(&world.files[0]);
        for (unsigned i = 0; i < 3; i++)
                tell(&world, 1, 1, i, 50 + i, i);
        tell(&world, 0, 0, 0, 40, 0); /* of nothing that stands is this a restart */
        ck_assert(world.points[4].stands);
        tell(&world, 1, 0, 1, 41, 1); /* it has begun before the other one ended */
        check_stands(&world, 1, "0 1 2 1");
        end(&world);
}
END_TEST

/* ---- By session starts ----------------------------------------------------------------------- */

START_TEST(start_the_first_one_does_not_count) {
        begin(&world, RESTARTS_START);
        tell_mark(&world, 0, EXTENT_MARK_FILE_VERSION, 0, 100);
        tell_mark(&world, 0, EXTENT_MARK_SESSION_START, 0, 100);
        for (unsigned i = 0; i < 5; i++) {
                tell(&world, 0, 0, i, 100 + i, 2 * i + 1);
                tell(&world, 1, 0, i, 100 + i, 2 * i + 2);
        }
        tell(&world, 0, 0, 2, 106, 20); /* goes back, but there is a file_version */
        check_stands(&world, 0, "0 1 2 3 4 2");
        tell_mark(&world, 1, EXTENT_MARK_SESSION_STOP, 0, 107);
        tell_mark(&world, 1, EXTENT_MARK_SESSION_START, 2, 107);
        check_stands(&world, 0, "0 1");
        check_stands(&world, 1, "0 1"); /* all tags */
        check_same(&world);
        end(&world);
}
END_TEST

START_TEST(start_without_a_version_steps_decide) {
        begin(&world, RESTARTS_START);
        tell_mark(&world, 0, EXTENT_MARK_SESSION_START, 0, 100);
        for (unsigned i = 0; i < 5; i++) {
                tell(&world, 0, 0, i, 100 + i, i);
                tell(&world, 1, 0, i, 100 + i, i); /* two values of one Event */
        }
        tell_mark(&world, 0, EXTENT_MARK_SESSION_START, 0, 105);
        check_stands(&world, 0, "0 1 2 3 4");
        tell(&world, 0, 1, 4, 106, 0); /* the same step is not a smaller one */
        check_stands(&world, 0, "0 1 2 3 4 4");
        tell(&world, 0, 1, 2, 107, 1);
        tell(&world, 0, 1, 2, 107, 1); /* again in the same Event */
        check_stands(&world, 0, "0 1 2 2");
        check_stands(&world, 1, "0 1 2 3 4"); /* was not in that Event */
        check_same(&world);
        end(&world);
}
END_TEST

START_TEST(start_a_forgotten_file_has_its_first_start_again) {
        begin(&world, RESTARTS_START);
        tell(&world, 0, 0, 9, 100, 1);
        tell(&world, 0, 1, 9, 100, 1);
        restarts_forget(&world.files[1]);
        tell(&world, 0, 1, 3, 101, 1); /* goes back behind what is no longer there */
        check_stands(&world, 0, "9 9 3");
        tell_mark(&world, 1, EXTENT_MARK_FILE_VERSION, 0, 100);
        tell_mark(&world, 1, EXTENT_MARK_SESSION_START, 0, 100);
        restarts_forget(&world.files[1]);
        tell_mark(&world, 1, EXTENT_MARK_SESSION_START, 0, 100);
        check_stands(&world, 0, "9 9 3");
        tell_mark(&world, 1, EXTENT_MARK_SESSION_START, 4, 100);
        check_stands(&world, 0, "3");
        end(&world);
}
END_TEST

/* ---- Against the model ----------------------------------------------------------------------- */

static uint64_t random_state;

static unsigned chance(unsigned below) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)(random_state >> 33) % below;
}

/* One file after the other as at first load, then all in turns as clients follow them. */
static void tell_at_random(unsigned seed, enum restarts_rule rule) {
        double clock[FILES];
        int64_t step = 0;

        random_state = seed;
        begin(&world, rule);
        for (unsigned i = 0; i < FILES; i++)
                clock[i] = 1 + chance(40);
        for (unsigned i = 0; i < 300; i++) {
                unsigned file = i < 200 ? i / 2 * FILES / 100 : chance(FILES);
                double wall_time = chance(30) ? clock[file] : 0;

                clock[file] += chance(3);
                if (i % 2 == 0) /* two values of one Event have one step */
                        step = chance(12) + i / 30;
                if (chance(25) == 0)
                        tell_mark(&world, file, 1 + chance(4), chance(12), wall_time);
                else
                        tell(&world, chance(SERIES), file, step, wall_time, i / 2);
                check_same(&world);
        }
        end(&world);
}

START_TEST(any_order_is_as_the_model_says) {
        for (unsigned seed = 1; seed < 400; seed++)
                tell_at_random(seed, RESTARTS_ORDER);
}
END_TEST

START_TEST(any_start_is_as_the_model_says) {
        for (unsigned seed = 1; seed < 400; seed++)
                tell_at_random(seed, RESTARTS_START);
}
END_TEST

START_TEST(none_withdraws_nothing) {
        begin(&world, RESTARTS_NONE);
        for (unsigned i = 0; i < 10; i++)
                tell(&world, 0, 0, 10 - i, 100 + i, i);
        check_same(&world);
        end(&world);
}
END_TEST

/* ---- Much ------------------------------------------------------------------------------------ */

#define MANY 1000000u

static void tell_many(struct restarts *restarts, struct restarts_series *series,
                      struct restarts_file *file, int64_t step, double wall_time) {
        struct extent_record record = { .step = step, .wall_time = wall_time };

        if (restarts_tell(restarts, series, file, &record, 0) < 0)
                ck_abort_msg("no memory");
}

/* Anything that looks at all of them for each of them does not end. */
START_TEST(a_million_tags_that_restart) {
        struct restarts_series *series = calloc(MANY, sizeof(*series));
        struct restarts_run run = { 0 };
        struct restarts_file files[2] = { { .run = &run }, { .run = &run } };
        struct restarts restarts;

        restarts_init(&restarts, RESTARTS_ORDER);
        for (unsigned file = 0; file < 2; file++) {
                for (unsigned i = 0; i < 2 * MANY; i++)
                        tell_many(&restarts, &series[i % MANY], &files[file], i / MANY,
                                  100 + 10 * file);
        }
        ck_assert_uint_eq(restarts.count, MANY);
        restarts_deinit(&restarts);
        free(series);
}
END_TEST

#define MANY_FILES 1000000u

static void tell_files(double length, int64_t stride, size_t expected) {
        struct restarts_series series = { 0 };
        struct restarts_run run = { 0 };
        struct restarts_file *files = calloc(MANY_FILES, sizeof(*files));
        struct restarts restarts;

        restarts_init(&restarts, RESTARTS_ORDER);
        for (unsigned i = 0; i < MANY_FILES; i++) {
                files[i].run = &run;
                tell_many(&restarts, &series, &files[i], stride * i, 100 + i);
                tell_many(&restarts, &series, &files[i], stride * i + 15, 100 + i + length);
        }
        ck_assert_uint_eq(restarts.count, expected);
        restarts_deinit(&restarts);
        free(files);
}

/* Each goes on a little before the end of the one before. */
START_TEST(a_job_that_restarts_without_end) {
        tell_files(1, 10, MANY_FILES - 1);
}
END_TEST

START_TEST(many_writers_at_one_time) {
        tell_files(1e9, 0, 0); /* all from the first step on */
}
END_TEST

/* ---- Without memory -------------------------------------------------------------------------- */

/* Series that many files begin again. 0 or -ENOMEM. */
static int tell_without_memory(void) {
        static struct restarts_series series[100];
        struct restarts_run run = { 0 };
        struct restarts_file files[3] = { { .run = &run }, { .run = &run }, { .run = &run } };
        struct restarts restarts;
        int r = 0;

        memset(series, 0, sizeof(series));
        restarts_init(&restarts, RESTARTS_ORDER);
        for (unsigned i = 0; i < 300 && r == 0; i++) {
                struct extent_record record = { .wall_time = 1 + i };

                r = restarts_tell(&restarts, &series[i % 100], &files[i / 100], &record, i);
        }
        restarts_deinit(&restarts);
        return r;
}

START_TEST(no_memory_is_told) {
        for (uint64_t n = 1;; n++) {
                int r;

                fail_begin(n, FAIL_THIS_THREAD);
                r = tell_without_memory();
                if (!fail_end()) {
                        ck_assert_int_eq(r, 0);
                        ck_assert_uint_gt(n, 300);
                        break;
                }
                if (r != -ENOMEM)
                        ck_abort_msg("call %u: %d", (unsigned)n, r);
        }
}
END_TEST

RUNNER_MAIN("common/restarts", order_withdraws_from_the_step_on, order_keeps_the_latest_of_one_step,
            order_a_later_file_is_a_restart, order_files_of_one_time_leave_each_other_alone,
            order_a_file_begins_with_its_first_record, order_a_time_that_is_none_does_not_count,
            order_a_file_that_goes_on_withdraws_nothing_of_a_later_one,
            a_forgotten_file_begins_anew, start_the_first_one_does_not_count,
            start_without_a_version_steps_decide, start_a_forgotten_file_has_its_first_start_again,
            any_order_is_as_the_model_says, any_start_is_as_the_model_says, none_withdraws_nothing,
            a_million_tags_that_restart, a_job_that_restarts_without_end, many_writers_at_one_time,
            no_memory_is_told)
