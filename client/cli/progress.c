/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/progress.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "client/cli/human.h"
#include "common/base.h"

#define BAR_WIDTH 30
#define COLUMNS_DEFAULT 80

/* Standard error's state, which is the process's. */
static struct {
        const char *name;
        double begin_s;
        bool shown;
} bar;

static double now_s(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_terminal(void) {
        const char *term = getenv("TERM");

        return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

bool progress_has_colours(void) {
        const char *no_color = getenv("NO_COLOR");

        return is_terminal() && !(no_color && no_color[0]);
}

static int columns(void) {
        struct winsize size;

        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                               : COLUMNS_DEFAULT;
}

/* Cuts the line at the terminal's width: one that wraps could not be taken away. */
static void show_line(const char *line, int count) {
        int most = columns() - 1;

        fprintf(stderr, "\r%.*s\033[K", count < most ? count : most, line);
        fflush(stderr);
        bar.shown = true;
}

static void show(int64_t settled, int64_t files, int64_t loaded, int64_t size) {
        double elapsed = now_s() - bar.begin_s, part = size > 0 ? (double)loaded / (double)size : 0;
        double rate = elapsed > 0 ? (double)loaded / elapsed : 0;
        char hashes[BAR_WIDTH + 1], bytes[HUMAN_SIZE], rate_text[HUMAN_SIZE], left[HUMAN_SIZE],
                line[512];
        int filled, count;

        if (size == 0 && files > 0)
                part = (double)settled / (double)files;
        part = part < 0 ? 0 : part > 1 ? 1 : part;
        filled = (int)(part * BAR_WIDTH);
        memset(hashes, '#', (size_t)filled);
        memset(hashes + filled, '-', (size_t)(BAR_WIDTH - filled));
        hashes[BAR_WIDTH] = '\0';
        count = snprintf(line, sizeof(line), "%s  [%s]  %2.0f %%  %lld/%lld files  %s  %s/s  %s",
                         bar.name, hashes, part * 100, (long long)settled, (long long)files,
                         human_bytes(bytes, (uint64_t)loaded),
                         human_bytes(rate_text, (uint64_t)rate),
                         human_clock(left, rate > 0 ? (double)(size - loaded) / rate : 0));
        show_line(line, count);
}

static void show_failing(const json_t *params) {
        const char *code = json_string_value(json_object_get(params, "code"));
        const char *message = json_string_value(json_object_get(params, "message"));
        CLEANUP(freep)
        char *text = human_name(message ? message : "", message ? strlen(message) : 0);
        char line[768];
        int count = snprintf(line, sizeof(line), "%s  %s %s; trying again", bar.name,
                             code ? code : "", text ? text : "");

        show_line(line, (int)min_u64((uint64_t)count, sizeof(line) - 1));
}

static void on_notification(void *userdata, const char *method, const char *params) {
        json_t *object = json_loads(params, 0, NULL);

        (void)userdata;
        if (strcmp(method, "progress") == 0)
                show(json_integer_value(json_object_get(object, "settled")),
                     json_integer_value(json_object_get(object, "files")),
                     json_integer_value(json_object_get(object, "loaded_bytes")),
                     json_integer_value(json_object_get(object, "size_bytes")));
        else if (strcmp(method, "source_failing") == 0)
                show_failing(object);
        json_decref(object);
}

void progress_begin(struct hr_connection *connection, const char *name) {
        const char *slash;

        if (!is_terminal())
                return;
        slash = strrchr(name, '/');
        bar.name = slash && slash[1] ? slash + 1 : name;
        bar.begin_s = now_s();
        hr_on_notification(connection, on_notification, NULL);
}

void progress_clear(void) {
        if (bar.shown)
                fputs("\r\033[K", stderr);
        bar.shown = false;
}

void progress_end(struct hr_connection *connection) {
        hr_on_notification(connection, NULL, NULL);
        progress_clear();
        fflush(stderr);
}
