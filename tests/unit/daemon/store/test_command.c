/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

/* libuv keeps a pipe for signals from the first loop on: not a leak of the test that is first. */
__attribute__((constructor)) static void open_signal_pipe(void) {
        uv_loop_t loop;

        if (uv_loop_init(&loop) == 0)
                uv_loop_close(&loop);
}

static uv_loop_t loop;
static struct command_result outcome;
static char output[64];
static bool is_done;

static void on_done(void *userdata, const struct command_result *result) {
        (void)userdata;
        outcome = *result;
        snprintf(output, sizeof(output), "%s", result->output);
        is_done = true;
}

static void end(void) {
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static void run(const char *program, const char *option, const char *code, unsigned timeout_ms) {
        char *arguments[] = { (char *)program, (char *)option, (char *)code, NULL };
        struct command *command;

        is_done = false;
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        ck_assert_int_eq(command_start(&loop, arguments, timeout_ms, on_done, NULL, &command), 0);
        ck_assert(!is_done); /* never from inside */
        end();
        ck_assert(is_done);
}

static void python(const char *code) {
        run("python3", "-c", code, 60000);
}

START_TEST(what_it_prints_and_says) {
        run("sh", "-c", "echo secret; echo first >&2; echo last >&2; echo >&2; exit 3", 60000);
        ck_assert_str_eq(output, "secret\n");
        ck_assert_uint_eq(outcome.output_size, 7);
        ck_assert_str_eq(outcome.words, "last");
        ck_assert_int_eq(outcome.exit_code, 3);
        ck_assert(!outcome.timed_out && outcome.error == 0 && outcome.signal == 0);
        run("sh", "-c", "printf 'a\\r\\nb\\r\\n' >&2", 60000);
        ck_assert_str_eq(outcome.words, "b");
}
END_TEST

/* What is read at once ends where a line does: 4096 bytes. */
START_TEST(lines_are_told_apart_across_reads) {
        python("import os; os.write(2, b'a' * 4095 + b'\\ntwo')");
        ck_assert_str_eq(outcome.words, "two");
        python("import os; os.write(2, b'a' * 4093 + b'\\n\\ntwo\\n' + b'b' * 3)");
        ck_assert_str_eq(outcome.words, "bbb");
        python("import os; os.write(2, b'a' * 4092 + b'\\ntwo')"); /* a line in two reads */
        ck_assert_str_eq(outcome.words, "two");
}
END_TEST

START_TEST(ends_that_are_none_of_its_own) {
        run("/nonexistent/program", NULL, NULL, 60000);
        ck_assert_int_eq(outcome.error, -ENOENT);
        run("sh", "-c", "kill -TERM $$", 60000);
        ck_assert_int_eq(outcome.signal, SIGTERM);
        run("sleep", "1000", NULL, 1);
        ck_assert(outcome.timed_out);
        python("print('x' * (256 << 10))");
        ck_assert_int_eq(outcome.error, -EFBIG);
        ck_assert_uint_le(outcome.output_size, COMMAND_OUTPUT_MOST_BYTES);
}
END_TEST

START_TEST(cancel_at_every_moment) {
        char *arguments[] = { (char *)"echo", (char *)"secret", NULL };

        for (unsigned turns = 0; turns < 10; turns++) {
                struct command *command;

                is_done = false;
                ck_assert_int_eq(uv_loop_init(&loop), 0);
                ck_assert_int_eq(command_start(&loop, arguments, 60000, on_done, NULL, &command),
                                 0);
                for (unsigned i = 0; i < turns && !is_done; i++)
                        uv_run(&loop, UV_RUN_NOWAIT);
                if (!is_done)
                        command_cancel(command);
                end();
        }
}
END_TEST

RUNNER_MAIN("store/command", what_it_prints_and_says, lines_are_told_apart_across_reads,
            ends_that_are_none_of_its_own, cancel_at_every_moment)
