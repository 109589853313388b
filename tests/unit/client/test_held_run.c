/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that wait, in memory and in a file, with sizes around the borders between them. */
#include "client/cli/held_run.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "common/base.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static struct hr_series series;
static struct hr_file file = { .run = { "run", 3 } }, other = { .run = { "other", 5 } };

struct world {
        struct sink out;
        struct held_run held;
        char got[4u << 20];
        size_t got_size;
};

static struct world world;

static int take(void *userdata, const char *bytes, size_t size) {
        struct world *into = userdata;

        MUST(into->got_size + size <= sizeof(into->got));
        memcpy(into->got + into->got_size, bytes, size);
        into->got_size += size;
        return 0;
}

static void begin(size_t memory_bytes) {
        world.got_size = 0;
        ck_assert_int_eq(sink_init_function(&world.out, take, &world), 0);
        ck_assert_int_eq(held_run_init(&world.held, &world.out, memory_bytes), 0);
}

static void end(void) {
        held_run_deinit(&world.held);
        sink_deinit(&world.out);
}

static int line(int64_t step, const char *text, size_t size) {
        held_run_begin_line(&world.held, &series, &file, step);
        sink_add(&world.held.lines, text, size);
        return held_run_end_line(&world.held);
}

START_TEST(what_stands_is_written_in_order) {
        begin(1u << 20);
        ck_assert_int_eq(held_run_release(&world.held), 0); /* of no run */
        ck_assert_int_eq(held_run_begin(&world.held, &file), 0);
        ck_assert(held_run_is(&world.held, &file) && !held_run_is(&world.held, &other));
        line(0, "a\n", 2);
        line(1, "b\n", 2);
        held_run_begin_line(&world.held, &series, &file, 1); /* nothing is written of it */
        ck_assert_int_eq(held_run_end_line(&world.held), 0);
        line(2, "c\n", 2);
        held_run_withdraw(&world.held, &series, &file, 1);
        line(1, "d\n", 2);
        ck_assert_int_eq(held_run_release(&world.held), 0);
        ck_assert(!held_run_is(&world.held, &file) && !world.held.is_again);
        ck_assert_int_eq(held_run_begin(&world.held, &other),
                         0); /* knows nothing of the last one */
        line(7, "e\n", 2);
        ck_assert(!world.held.is_again);
        ck_assert_int_eq(held_run_release(&world.held), 0);
        ck_assert_int_eq(held_run_begin(&world.held, &file), 0);
        ck_assert(world.held.is_again);
        ck_assert_int_eq(held_run_release(&world.held), 0);
        ck_assert_int_eq(sink_flush(&world.out), 0);
        ck_assert_uint_eq(world.got_size, 6);
        ck_assert_int_eq(memcmp(world.got, "a\nd\ne\n", 6), 0);
        ck_assert_uint_eq(world.held.left_out, 2);
        end();
}
END_TEST

/* Lines of i bytes, each third one withdrawn. */
static void check_lines(size_t memory_bytes, unsigned count) {
        static char text[1u << 20];
        size_t expected = 0;

        begin(memory_bytes);
        for (unsigned round = 0; round < 2; round++) {
                ck_assert_int_eq(held_run_begin(&world.held, &file), 0);
                for (unsigned i = 0; i < count; i++) {
                        memset(text, 'a' + (int)(i % 26), i);
                        if (line(i % 3 == 0, text, i) < 0)
                                ck_abort_msg("line %u", i);
                }
                held_run_withdraw(&world.held, &series, &file, 1);
                ck_assert_int_eq(held_run_release(&world.held), 0);
        }
        ck_assert_int_eq(sink_flush(&world.out), 0);
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 0; i < count; i++) {
                        memset(text, 'a' + (int)(i % 26), i);
                        if (i % 3 == 0)
                                continue;
                        if (memcmp(world.got + expected, text, i) != 0)
                                ck_abort_msg("line %u of round %u", i, round);
                        expected += i;
                }
        }
        ck_assert_uint_eq(world.got_size, expected);
        end();
}

START_TEST(memory_and_file) {
        static const size_t limits[] = { 0, 1, 47, 1000, 100000, 1u << 30 };

        for (unsigned i = 0; i < ARRAY_SIZE(limits); i++)
                check_lines(limits[i], 1000);
}
END_TEST

/* A line that is longer than the sink is kept, and left out, as a whole. */
START_TEST(a_long_line_is_one) {
        static char text[1000];

        for (unsigned stands = 0; stands < 2; stands++) {
                begin(300000);
                held_run_begin(&world.held, &file);
                held_run_begin_line(&world.held, &series, &file, 0);
                memset(text, 'x', sizeof(text));
                for (unsigned i = 0; i < 1000; i++)
                        sink_add(&world.held.lines, text, sizeof(text));
                ck_assert_int_eq(held_run_end_line(&world.held), 0);
                held_run_withdraw(&world.held, &series, &file, stands);
                line(0, "y", 1);
                ck_assert_int_eq(held_run_release(&world.held), 0);
                sink_flush(&world.out);
                ck_assert_uint_eq(world.got_size, 1 + stands * 1000000);
                ck_assert_uint_eq(world.held.left_out, 1 - stands);
                end();
        }
}
END_TEST

START_TEST(no_place_for_the_file) {
        ck_assert_int_eq(setenv("TMPDIR", "/nonexistent/at/all", 1), 0);
        begin(10);
        held_run_begin(&world.held, &file);
        ck_assert_int_eq(line(0, "abc\n", 4), -ENOENT);
        end();
}
END_TEST

START_TEST(a_full_disk) {
        const struct rlimit limit = { 1u << 20, 1u << 20 };
        static char text[100000];
        int r = 0;

        /* The file may not grow: the closest to a full disk that every machine has. */
        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        begin(10);
        held_run_begin(&world.held, &file);
        for (unsigned i = 0; i < 100 && r == 0; i++)
                r = line(0, text, sizeof(text));
        ck_assert_int_eq(r, -EFBIG);
        end();

        /* The last bytes are missed where reading begins. */
        begin(10);
        held_run_begin(&world.held, &file);
        r = 0;
        for (unsigned i = 0; i < 1010 && r == 0; i++)
                r = line(0, text, 1000);
        ck_assert_int_eq(r, 0);
        ck_assert_int_eq(held_run_release(&world.held), -EFBIG);
        end();
}
END_TEST

/* A crash leaves nothing behind. */
START_TEST(the_file_has_no_name) {
        char directory[] = "/tmp/test-held-XXXXXX";
        struct dirent *entry;
        DIR *listing;

        ck_assert_ptr_nonnull(mkdtemp(directory));
        setenv("TMPDIR", directory, 1);
        begin(10);
        held_run_begin(&world.held, &file);
        ck_assert_int_eq(line(0, "abc\n", 4), 0);
        listing = opendir(directory);
        while ((entry = readdir(listing)))
                ck_assert_int_eq(entry->d_name[0], '.');
        closedir(listing);
        end();
        ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* Two runs with a restart each, in a file. Nothing that fails may leave out what stands in silence. */
static int hold_two_runs(void) {
        static char text[1000];
        int r = sink_init_function(&world.out, take, &world);

        world.got_size = 0;
        if (r == 0)
                r = held_run_init(&world.held, &world.out, 500);
        for (unsigned run = 0; run < 2 && r == 0; run++) {
                r = held_run_begin(&world.held, run ? &other : &file);
                for (unsigned i = 0; i < 4 && r == 0; i++)
                        r = line(i, text, sizeof(text));
                if (r == 0)
                        r = held_run_withdraw(&world.held, &series, &file, 2);
                if (r == 0)
                        r = held_run_release(&world.held);
        }
        if (r == 0)
                r = sink_flush(&world.out);
        return r;
}

START_TEST(no_failure_goes_unnoticed) {
        for (uint64_t n = 1;; n++) {
                bool failed;
                int r;

                memset(&world.held, 0, sizeof(world.held));
                world.held.spool.file.fd = -1;
                fail_begin(n, FAIL_THIS_THREAD);
                r = hold_two_runs();
                failed = fail_end();
                end();
                if (r == 0 && world.got_size != 4000)
                        ck_abort_msg("%s failed, and %zu bytes came", fail_name(), world.got_size);
                if (!failed) {
                        ck_assert_int_eq(r, 0);
                        ck_assert_uint_gt(n, 10);
                        break;
                }
        }
}
END_TEST

RUNNER_MAIN("client/held_run", what_stands_is_written_in_order, memory_and_file, a_long_line_is_one,
            no_place_for_the_file, a_full_disk, the_file_has_no_name, no_failure_goes_unnoticed)
