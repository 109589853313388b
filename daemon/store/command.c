/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command is over when the program has exited and both of its pipes have ended; a program that
 * left a child behind with a pipe of its own is not waited for. It is freed when its handles are
 * closed.
 */
#include "daemon/store/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/base.h"
#include "common/utf8.h"

#define COMMAND_LINGER_MS 1000 /* for pipes after the exit */

struct command {
        uv_process_t process;
        uv_pipe_t output, words;
        uv_timer_t timer;
        unsigned open_handles, open_pipes;
        bool exited, told;
        bool line_ended; /* of what it says: the next byte begins another one */
        struct command_result result;
        char *bytes; /* output */
        size_t size;
        bool too_long;
        char piece[4096];
        void (*on_done)(void *userdata, const struct command_result *result);
        void *userdata;
};

static void on_handle_closed(uv_handle_t *handle) {
        struct command *command = handle->data;

        if (--command->open_handles > 0)
                return;
        explicit_bzero(command->bytes, COMMAND_OUTPUT_MOST_BYTES + 1);
        explicit_bzero(command->piece, sizeof(command->piece));
        free(command->bytes);
        free(command);
}

static void close_all(struct command *command) {
        uv_handle_t *const handles[] = { (uv_handle_t *)&command->process,
                                         (uv_handle_t *)&command->output,
                                         (uv_handle_t *)&command->words,
                                         (uv_handle_t *)&command->timer };

        for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
                if (!uv_is_closing(handles[i]))
                        uv_close(handles[i], on_handle_closed);
        }
}

static void tell(struct command *command) {
        if (command->told)
                return;
        command->told = true;
        command->bytes[command->size] = '\0';
        command->result.output = command->bytes;
        command->result.output_size = command->size;
        if (command->too_long)
                command->result.error = -EFBIG;
        utf8_make_printable(command->result.words, strlen(command->result.words));
        command->on_done(command->userdata, &command->result);
        close_all(command);
}

static void on_timer(uv_timer_t *timer) {
        struct command *command = timer->data;

        if (!command->exited) {
                command->result.timed_out = true;
                uv_process_kill(&command->process, SIGKILL);
        }
        tell(command);
}

static void maybe_tell(struct command *command) {
        if (command->exited && command->open_pipes == 0)
                tell(command);
}

static void on_exited(uv_process_t *process, int64_t exit_code, int signal) {
        struct command *command = process->data;

        command->exited = true;
        command->result.exit_code = exit_code;
        command->result.signal = signal;
        if (command->told)
                return;
        uv_timer_start(&command->timer, on_timer, COMMAND_LINGER_MS, 0);
        maybe_tell(command);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer) {
        struct command *command = handle->data;

        (void)suggested;
        *ret_buffer = uv_buf_init(command->piece, sizeof(command->piece));
}

static void keep_output(struct command *command, const char *bytes, size_t size) {
        size_t room = COMMAND_OUTPUT_MOST_BYTES - command->size;

        command->too_long |= size > room;
        size = min_u64(size, room);
        memcpy(command->bytes + command->size, bytes, size);
        command->size += size;
}

/* The last line that has anything in it. */
static void keep_words(struct command *command, const char *bytes, size_t size) {
        char *words = command->result.words;

        for (size_t i = 0; i < size; i++) {
                size_t length = strlen(words);

                if (bytes[i] == '\n' || bytes[i] == '\r')
                        command->line_ended = true;
                if (bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\0')
                        continue;
                if (command->line_ended)
                        length = 0;
                command->line_ended = false;
                if (length < sizeof(command->result.words) - 1) {
                        words[length] = bytes[i];
                        words[length + 1] = '\0';
                }
        }
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer) {
        struct command *command = stream->data;

        if (size < 0) {
                uv_read_stop(stream);
                command->open_pipes--;
                maybe_tell(command);
        } else if ((uv_stream_t *)&command->output == stream) {
                keep_output(command, buffer->base, (size_t)size);
        } else {
                keep_words(command, buffer->base, (size_t)size);
        }
}

static void on_failed(uv_timer_t *timer) {
        tell(timer->data);
}

/* The handles are there; whatever happens, the command is told from the loop. */
static void spawn(struct command *command, char *const *arguments, unsigned timeout_ms) {
        uv_stdio_container_t pipes[3] = {
                { .flags = UV_IGNORE },
                { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                  .data.stream = (uv_stream_t *)&command->output },
                { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                  .data.stream = (uv_stream_t *)&command->words },
        };
        uv_process_options_t options = { .file = arguments[0],
                                         .args = (char **)arguments,
                                         .stdio = pipes,
                                         .stdio_count = 3,
                                         .exit_cb = on_exited };
        int r = uv_spawn(command->timer.loop, &command->process, &options);

        if (r < 0) {
                command->result.error = r;
                uv_timer_start(&command->timer, on_failed, 0, 0);
                return;
        }
        command->open_pipes = 2;
        uv_read_start((uv_stream_t *)&command->output, on_alloc, on_read);
        uv_read_start((uv_stream_t *)&command->words, on_alloc, on_read);
        uv_timer_start(&command->timer, on_timer, timeout_ms, 0);
}

int command_start(uv_loop_t *loop, char *const *arguments, unsigned timeout_ms,
                  void (*on_done)(void *userdata, const struct command_result *result),
                  void *userdata, struct command **ret_command) {
        struct command *command = calloc(1, sizeof(*command));

        if (!command)
                return -ENOMEM;
        command->bytes = calloc(1, COMMAND_OUTPUT_MOST_BYTES + 1);
        if (!command->bytes) {
                free(command);
                return -ENOMEM;
        }
        command->on_done = on_done;
        command->userdata = userdata;
        uv_pipe_init(loop, &command->output, 0);
        uv_pipe_init(loop, &command->words, 0);
        uv_timer_init(loop, &command->timer);
        command->process.data = command->output.data = command->words.data = command->timer.data =
                command;
        command->open_handles = 4;
        spawn(command, arguments, timeout_ms);
        *ret_command = command;
        return 0;
}

void command_cancel(struct command *command) {
        command->told = true;
        if (!command->exited && command->result.error == 0)
                uv_process_kill(&command->process, SIGKILL);
        close_all(command);
}
