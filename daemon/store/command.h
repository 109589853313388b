/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program for what it prints: a login's helper that hands out credentials. It has no input;
 * what it says on its standard error is kept for people, what it prints is not shown to anybody.
 * Loop thread; nothing is called back from inside a call of the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define COMMAND_OUTPUT_MOST_BYTES (256u << 10)
#define COMMAND_WORDS_BYTES 240 /* of what it said, that are kept */

struct command;

struct command_result {
        bool timed_out;
        int error;          /* it could not be started: -errno */
        int64_t exit_code;  /* and 0 if it was ended by a signal */
        int signal;         /* 0: none */
        const char *output; /* NUL-terminated, wiped afterwards */
        size_t output_size;
        char words[COMMAND_WORDS_BYTES]; /* the last line that it said on standard error */
};

/* on_done is the last call. arguments are NULL-terminated; the program is found in PATH. -ENOMEM. */
int command_start(uv_loop_t *loop, char *const *arguments, unsigned timeout_ms,
                  void (*on_done)(void *userdata, const struct command_result *result),
                  void *userdata, struct command **ret_command);

/* Ends it, and the program with it, without a callback. */
void command_cancel(struct command *command);
