/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What arrives on standard error, whatever names have in them: one line for each call, and nothing
 * that looks like another.
 */
#include "daemon/core/log.h"

#include <fcntl.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

struct capture {
        int pipe_fds[2], saved_fd;
        char text[8192];
        size_t size;
};

static void capture_begin(struct capture *capture) {
        ck_assert_int_eq(pipe2(capture->pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
        capture->saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        ck_assert_int_ge(capture->saved_fd, 0);
        ck_assert_int_eq(dup2(capture->pipe_fds[1], STDERR_FILENO), STDERR_FILENO);
}

static void capture_end(struct capture *capture) {
        ssize_t size = read(capture->pipe_fds[0], capture->text, sizeof(capture->text) - 1);

        capture->size = size > 0 ? (size_t)size : 0;
        capture->text[capture->size] = '\0';
        ck_assert_int_eq(dup2(capture->saved_fd, STDERR_FILENO), STDERR_FILENO);
        close(capture->saved_fd);
        close(capture->pipe_fds[0]);
        close(capture->pipe_fds[1]);
}

START_TEST(says_level_and_what) {
        struct capture capture;

        capture_begin(&capture);
        log_set_level(LOG_LEVEL_DEBUG);
        log_error("it broke", "key=%d name=%s", 3, "x");
        log_warning("it may break", "%s", "");
        log_info("it goes", "n=%u", 1u);
        log_debug("it went", "a=b");
        capture_end(&capture);
        ck_assert_str_eq(
                capture.text,
                "headraced: error: it broke key=3 name=x\nheadraced: warning: it may break\n"
                "headraced: info: it goes n=1\nheadraced: debug: it went a=b\n");
}
END_TEST

START_TEST(levels_are_kept) {
        struct capture capture;

        capture_begin(&capture);
        log_info("not by default", "%s", "");
        log_warning("one", "%s", "");
        log_set_level(LOG_LEVEL_ERROR);
        log_warning("not now", "%s", "");
        log_error("two", "%s", "");
        capture_end(&capture);
        ck_assert_str_eq(capture.text, "headraced: warning: one\nheadraced: error: two\n");
}
END_TEST

/* A run may be named like this. */
START_TEST(names_cannot_forge_lines) {
        struct capture capture;

        capture_begin(&capture);
        log_error("cannot read", "path=%s", "a\nheadraced: error: all is lost\r\t\x1b[2J\x7f");
        log_error("first\nsecond", "%s", "");
        capture_end(&capture);
        ck_assert_str_eq(
                capture.text,
                "headraced: error: cannot read path=a?headraced: error: all is lost???[2J?\n"
                "headraced: error: first?second\n");
}
END_TEST

/*
 * The control characters of ISO 8859 (C1) in UTF-8, U+0080 to U+009F: terminals take U+009B for the
 * beginning of a sequence.
 */
START_TEST(names_cannot_command_terminals) {
        struct capture capture;

        capture_begin(&capture);
        log_error("cannot read", "path=%s",
                  "a\xc2\x9b"
                  "2Jb\x9b"
                  "2J"
                  "\xc3\xa4");
        capture_end(&capture);
        ck_assert_ptr_null(memmem(capture.text, capture.size, "\xc2\x9b", 2));
        ck_assert_ptr_null(memmem(capture.text, capture.size, "b\x9b", 2));
        /* a letter stays */
        ck_assert_ptr_nonnull(memmem(capture.text, capture.size, "\xc3\xa4", 2));
}
END_TEST

START_TEST(long_lines_are_cut) {
        struct capture capture;
        char name[5000];

        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        capture_begin(&capture);
        log_error("short", "name=%s", name);
        log_error(name, "key=%d", 1);
        capture_end(&capture);
        ck_assert_uint_le(capture.size, 2 * 2048);
        ck_assert_uint_ge(capture.size, 2 * 2000);
        ck_assert_int_eq(capture.text[capture.size - 1], '\n');
        ck_assert_ptr_eq(memchr(memchr(capture.text, '\n', capture.size) + 1, '\n', capture.size),
                         &capture.text[capture.size - 1]);
}
END_TEST

RUNNER_MAIN("core/log", says_level_and_what, levels_are_kept, names_cannot_forge_lines,
            names_cannot_command_terminals, long_lines_are_cut)
