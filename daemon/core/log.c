/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One write(2) for a line, so that lines stay whole. Control characters that come in with names are
 * shown as '?', and so is what is no UTF-8: a name in storage must not be able to forge a line. The
 * level is the one piece of state that the program has outside of its struct daemon: it is set once
 * and then only read.
 */
#include "daemon/core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"

#define LINE_MAX_BYTES 2048

static enum log_level log_level_now = LOG_LEVEL_WARNING;

void log_set_level(enum log_level level) {
        log_level_now = level;
}

static void log_line(enum log_level level, const char *what, const char *format,
                     va_list arguments) {
        static const char *const names[] = { "error", "warning", "info", "debug" };
        char line[LINE_MAX_BYTES];
        size_t used;
        int r;

        if (level > log_level_now)
                return;
        r = snprintf(line, sizeof(line) - 1, "headraced: %s: %s ", names[level], what);
        used = r < 0 ? 0 : (size_t)r < sizeof(line) - 1 ? (size_t)r : sizeof(line) - 2;
        r = vsnprintf(line + used, sizeof(line) - 1 - used, format, arguments);
        if (r > 0)
                used += (size_t)r < sizeof(line) - 1 - used ? (size_t)r : sizeof(line) - 2 - used;
        utf8_make_printable(line, used);
        while (used > 0 && line[used - 1] == ' ')
                used--;
        line[used++] = '\n';
        if (write(STDERR_FILENO, line, used) < 0)
                return; /* nobody is left to tell */
}

#define LOG_AT(level) \
        do { \
                va_list arguments; \
                va_start(arguments, format); \
                log_line((level), what, format, arguments); \
                va_end(arguments); \
        } while (0)

void log_error(const char *what, const char *format, ...) {
        LOG_AT(LOG_LEVEL_ERROR);
}

void log_warning(const char *what, const char *format, ...) {
        LOG_AT(LOG_LEVEL_WARNING);
}

void log_info(const char *what, const char *format, ...) {
        LOG_AT(LOG_LEVEL_INFO);
}

void log_debug(const char *what, const char *format, ...) {
        LOG_AT(LOG_LEVEL_DEBUG);
}
