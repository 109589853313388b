/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the files, named on standard error when the work is done. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/human.h"
#include "common/base.h"

struct damage_list {
        const struct hr_connection *connection;
        const char *const *runs;
        uint64_t found;
};

static bool is_of_runs(const struct damage_list *list, const char *run) {
        if (!list->runs)
                return true;
        for (const char *const *glob = list->runs; *glob; glob++) {
                if (fnmatch(*glob, run, 0) == 0)
                        return true;
        }
        return false;
}

/* Of a file that is another kind of file it is not of interest where that begins. */
void command_place_text(const json_t *place, char *ret_text, size_t size) {
        const char *reason = json_string_value(json_object_get(place, "reason"));
        long long offset = json_integer_value(json_object_get(place, "offset"));
        long long bytes = json_integer_value(json_object_get(place, "bytes"));
        long long ring = json_integer_value(json_object_get(place, "ring_bytes"));
        const char *s = bytes == 1 ? "" : "s";

        if (reason && strncmp(reason, "not an event file", 17) == 0)
                snprintf(ret_text, size, "%s, %lld byte%s skipped", reason, bytes, s);
        else if (ring > 0)
                snprintf(ret_text, size,
                         "%s at offset %lld, %lld byte%s skipped: its names need a ring of %lldM",
                         reason ? reason : "damaged", offset, bytes, s, ring >> 20);
        else
                snprintf(ret_text, size, "%s at offset %lld, %lld byte%s skipped",
                         reason ? reason : "damaged", offset, bytes, s);
}

static void name_places(const char *path, const json_t *row, json_int_t damaged) {
        json_t *places = json_object_get(row, "damage"), *place;
        char text[160];
        size_t index;

        json_array_foreach(places, index, place) {
                command_place_text(place, text, sizeof(text));
                complain_file(path, text);
        }
        if (damaged > (json_int_t)json_array_size(places)) {
                snprintf(text, sizeof(text),
                         "%lld damaged places in all; headrace verify names them",
                         (long long)damaged);
                complain_file(path, text);
        }
}

static void name_error(const char *path, const json_t *error, const char *fallback) {
        const char *code = json_string_value(json_object_get(error, "code"));
        const char *message = json_string_value(json_object_get(error, "message"));
        char text[640];

        if (code && message && strncmp(message, code, strlen(code)) != 0)
                snprintf(text, sizeof(text), "cannot be read: %s %s", code, message);
        else
                snprintf(text, sizeof(text), "cannot be read: %s",
                         message ? message
                         : code  ? code
                                 : fallback);
        complain_file(path, text);
}

bool command_is_unreadable(const char *state) {
        return strncmp(state, "unreadable", 10) == 0 || strcmp(state, "archived") == 0;
}

static void on_file(void *userdata, const json_t *row) {
        struct damage_list *list = userdata;
        const char *path = json_string_value(json_object_get(row, "path")),
                   *run = json_string_value(json_object_get(row, "run"));
        const char *state = json_string_value(json_object_get(row, "state"));
        json_int_t damaged = json_integer_value(json_object_get(row, "damaged"));
        bool is_unreadable = state && command_is_unreadable(state);

        if (!path || !run || (damaged == 0 && !is_unreadable))
                return;
        if (!is_of_runs(list, command_below_prefix(list->connection, run, true)))
                return;
        list->found++;
        path = command_below_prefix(list->connection, path, false);
        name_places(path, row, damaged);
        if (is_unreadable)
                name_error(path, json_object_get(row, "error"), state);
}

char *command_reasons(const json_t *reasons) {
        char *text = NULL, count[HUMAN_SIZE];
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        const char *reason;
        json_t *number;
        bool is_first = true;

        if (!out)
                return NULL;
        json_object_foreach((json_t *)(uintptr_t)reasons, reason, number) {
                fprintf(out, "%s%s %s", is_first ? "" : ", ",
                        human_count(count, json_integer_value(number)), reason);
                is_first = false;
        }
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}

static void on_source(void *userdata, const json_t *row) {
        struct damage_list *list = userdata;
        json_t *directory;
        size_t index;

        if (!command_is_source(list->connection, row))
                return;
        json_array_foreach(json_object_get(row, "unreadable"), index, directory) {
                const char *path = json_string_value(json_object_get(directory, "path"));

                list->found++;
                name_error(path ? path : "?", directory, "directory");
        }
}

int command_name_damage(struct hr_connection *connection, const char *url,
                        const char *const *runs) {
        struct damage_list list = { .connection = connection, .runs = runs };
        int r = command_pages(connection, "files", "files", command_source_params(connection),
                              on_file, &list);

        if (r == 0)
                r = command_pages(connection, "sources", "sources", json_object(), on_source,
                                  &list);
        if (r)
                return command_failed(connection, url, r);
        return list.found ? EXIT_DAMAGE : EXIT_GOOD;
}
