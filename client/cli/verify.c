/* SPDX-License-Identifier: Apache-2.0 */
/* headrace verify: every place below a URL that is damaged, not written yet, or cannot be read. */
#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/human.h"
#include "common/base.h"

struct arguments {
        struct common common;
        const char *url;
        char *shown; /* of it, what may be shown */
        bool is_json;
};

enum { OPTION_JSON = 0x200 };

static const struct argp_option options[] = {
        { "json", OPTION_JSON, NULL, 0, "One JSON object with places and totals", 1 },
        { 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state) {
        struct arguments *arguments = state->input;

        switch (key) {
        case OPTION_JSON:
                arguments->is_json = true;
                return 0;
        case ARGP_KEY_INIT:
                state->child_inputs[0] = &arguments->common;
                return 0;
        default:
                return command_parse_url(key, argument, state, &arguments->url);
        }
}

static const struct argp_child children[] = { { &common_argp, 0, "Daemon:", 10 }, { 0 } };
static const struct argp argp = {
        options,
        parse,
        "URL",
        "Reads every event file below a URL or directory and names every place that is damaged, "
        "with the reason and how many bytes were skipped; also what is not written yet, which is "
        "no damage, and what cannot be read."
        "\vExit codes: 0 intact, 1 some records are damaged or files unreadable, 2 usage, 3 the "
        "source cannot be listed.",
        children,
        NULL,
        NULL,
};

/* ---- Places ---------------------------------------------------------------------------------- */

struct verify {
        struct hr_connection *connection;
        bool is_json;
        bool has_rows; /* of JSON */
        int64_t files, size_bytes, records;
        int64_t damaged, damaged_files, damaged_bytes, unfinished, unreadable;
        json_t *reasons;
        int r;
};

static int64_t number_of(const json_t *object, const char *key) {
        return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key) {
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static void print_row(struct verify *verify, json_t *take_row) {
        fputs(verify->has_rows ? ",\n" : "\n", stdout);
        verify->has_rows = true;
        if (!take_row || json_dumpf(take_row, stdout, JSON_COMPACT) < 0)
                verify->r = verify->r ? verify->r : -ENOMEM;
        json_decref(take_row);
}

/* The names of a row of `files`, relative to what was opened. */
static json_t *json_row(const struct verify *verify, const json_t *file, const char *state) {
        size_t prefix = strlen(hr_prefix(verify->connection));
        const char *hex = json_string_value(json_object_get(file, "path_hex"));
        json_t *row = json_pack(
                "{s:s, s:s, s:s}", "state", state, "file",
                command_below_prefix(verify->connection, text_of(file, "path"), false), "run",
                command_below_prefix(verify->connection, text_of(file, "run"), true));

        if (row && hex && strlen(hex) > 2 * prefix)
                json_object_set_new(row, "file_hex",
                                    json_string(hex + (prefix ? 2 * (prefix + 1) : 0)));
        return row;
}

static void print_line(const struct verify *verify, const json_t *file, const char *text) {
        const char *path = command_below_prefix(verify->connection, text_of(file, "path"), false);
        CLEANUP(freep) char *name = human_name(path, strlen(path));

        printf("%s: %s\n", name ? name : "?", text);
}

static void on_place(struct verify *verify, const json_t *file, const json_t *place) {
        const char *reason = text_of(place, "reason");
        char text[160];

        verify->damaged++;
        verify->damaged_bytes += number_of(place, "bytes");
        json_object_set_new(verify->reasons, reason,
                            json_integer(number_of(verify->reasons, reason) + 1));
        if (verify->is_json) {
                json_t *row = json_row(verify, file, "damaged");

                if (row)
                        json_object_update(row, (json_t *)(uintptr_t)place);
                print_row(verify, row);
                return;
        }
        command_place_text(place, text, sizeof(text));
        print_line(verify, file, text);
}

static void on_places(struct verify *verify, const json_t *file, const json_t *places) {
        const json_t *place;
        size_t index;

        json_array_foreach((json_t *)(uintptr_t)places, index, place) on_place(verify, file, place);
}

/*
 * One page of all places of a file, from where `from` (may be NULL) says. *ret_next: where to go
 * on, or NULL.
 */
static int page_of_places(struct verify *verify, const json_t *file, const json_t *from,
                          json_t **ret_next) {
        json_t *params = json_pack("{s:O, s:O}", "file", json_object_get(file, "id"),
                                   "file_version", json_object_get(file, "version"));
        CLEANUP(freep) char *text = NULL, *answer = NULL;
        json_t *result;
        int r;

        if (from)
                json_object_update(params, (json_t *)(uintptr_t)from);
        text = json_dumps(params, JSON_COMPACT);
        json_decref(params);
        if (!text)
                return -ENOMEM;
        r = hr_call(verify->connection, "damage", text, &answer);
        if (r)
                return r;
        result = json_loads(answer, 0, NULL);
        on_places(verify, file, json_object_get(result, "damage"));
        *ret_next = json_incref(json_object_get(result, "next"));
        json_decref(result);
        return 0;
}

/* The daemon keeps the first places only; it finds the others by reading them again. */
static int all_places(struct verify *verify, const json_t *file) {
        json_t *from = NULL, *next = NULL;
        int r;

        do {
                r = page_of_places(verify, file, from, &next);
                json_decref(from);
                from = next;
                next = NULL;
        } while (r == 0 && from && !ferror(stdout));
        json_decref(from);
        return r;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void on_damaged(struct verify *verify, const json_t *file) {
        const json_t *named = json_object_get(file, "damage");
        int64_t damaged = number_of(file, "damaged"), before = verify->damaged;
        char text[320];
        int r = 0;

        verify->damaged_files++;
        if ((int64_t)json_array_size(named) >= damaged) {
                on_places(verify, file, named);
                return;
        }
        r = all_places(verify, file);
        if (r == 0)
                return;
        if (r < 0) {
                verify->r = verify->r ? verify->r : r;
                return;
        }
        snprintf(text, sizeof(text), "%lld of %lld damaged places cannot be named: %s",
                 (long long)(damaged - (verify->damaged - before)), (long long)damaged,
                 hr_error(verify->connection));
        complain_file(command_below_prefix(verify->connection, text_of(file, "path"), false), text);
        verify->unreadable++;
}

/* A record that the file ends in, or zeros up to its end. */
static void on_unfinished(struct verify *verify, const json_t *file, int64_t offset,
                          int64_t bytes) {
        char text[160];

        verify->unfinished++;
        if (verify->is_json) {
                json_t *row = json_row(verify, file, "unfinished");

                if (row) {
                        json_object_set_new(row, "offset", json_integer(offset));
                        json_object_set_new(row, "bytes", json_integer(bytes));
                }
                print_row(verify, row);
                return;
        }
        snprintf(text, sizeof(text), "not written yet from offset %lld on, %lld byte%s",
                 (long long)offset, (long long)bytes, bytes == 1 ? "" : "s");
        print_line(verify, file, text);
}

/* named: a row with a path, of a file or a directory. */
static void on_unreadable(struct verify *verify, const json_t *named, const json_t *error) {
        const char *code = text_of(error, "code"), *message = text_of(error, "message");
        char text[640];

        verify->unreadable++;
        if (verify->is_json) {
                json_t *row = json_row(verify, named, "unreadable");

                if (row) {
                        json_object_set_new(row, "code", json_string(code));
                        json_object_set_new(row, "message", json_string(message));
                }
                print_row(verify, row);
                return;
        }
        snprintf(text, sizeof(text), "cannot be read: %s%s%s",
                 strncmp(message, code, strlen(code)) ? code : "",
                 strncmp(message, code, strlen(code)) ? " " : "", message);
        print_line(verify, named, text);
}

/* True if what the file ends with is damage, and not just unwritten. */
static bool has_damaged_tail(const json_t *file, int64_t loaded) {
        const json_t *places = json_object_get(file, "damage");
        size_t count = json_array_size(places);

        return count > 0 && number_of(json_array_get(places, count - 1), "offset") >= loaded;
}

static void on_file(void *userdata, const json_t *file) {
        struct verify *verify = userdata;
        int64_t loaded = number_of(file, "loaded_bytes"), size = number_of(file, "size_bytes");

        if (verify->r || ferror(stdout))
                return;
        verify->files++;
        verify->size_bytes += size;
        verify->records += number_of(file, "records");
        if (number_of(file, "damaged") > 0)
                on_damaged(verify, file);
        if (command_is_unreadable(text_of(file, "state")))
                on_unreadable(verify, file, json_object_get(file, "error"));
        else if (loaded < size && !has_damaged_tail(file, loaded))
                on_unfinished(verify, file, loaded, size - loaded);
}

static void on_source(void *userdata, const json_t *source) {
        struct verify *verify = userdata;
        const json_t *directory;
        size_t index;

        if (!command_is_source(verify->connection, source))
                return;
        json_array_foreach(json_object_get(source, "unreadable"), index, directory)
                on_unreadable(verify, directory, directory);
}

/* ---- Totals ---------------------------------------------------------------------------------- */

static void print_damage(const struct verify *verify) {
        CLEANUP(freep) char *reasons = command_reasons(verify->reasons);
        char count[HUMAN_SIZE], files[HUMAN_SIZE], bytes[HUMAN_SIZE];

        printf("%s damaged %s in %s %s (%s), %s skipped", human_count(count, verify->damaged),
               verify->damaged == 1 ? "place" : "places", human_count(files, verify->damaged_files),
               verify->damaged_files == 1 ? "file" : "files", reasons ? reasons : "?",
               human_bytes(bytes, (uint64_t)verify->damaged_bytes));
}

static void print_summary(const struct verify *verify) {
        char files[HUMAN_SIZE], size[HUMAN_SIZE], records[HUMAN_SIZE], count[HUMAN_SIZE];

        printf("%s %s, %s, %s records: ", human_count(files, verify->files),
               verify->files == 1 ? "file" : "files",
               human_bytes(size, (uint64_t)verify->size_bytes),
               human_count(records, verify->records));
        if (verify->damaged > 0)
                print_damage(verify);
        else
                fputs(verify->unreadable ? "no damage found" : "intact", stdout);
        if (verify->unreadable > 0)
                printf("; %s unreadable", human_count(count, verify->unreadable));
        if (verify->unfinished > 0)
                printf("; %s not written to %s end", human_count(count, verify->unfinished),
                       verify->unfinished == 1 ? "its" : "their");
        putchar('\n');
}

static void print_json_end(struct verify *verify) {
        json_t *totals = json_pack(
                "{s:I, s:I, s:I, s:I, s:O, s:I, s:I, s:I, s:I}", "files", (json_int_t)verify->files,
                "size_bytes", (json_int_t)verify->size_bytes, "records",
                (json_int_t)verify->records, "damaged", (json_int_t)verify->damaged, "reasons",
                verify->reasons, "damaged_files", (json_int_t)verify->damaged_files,
                "damaged_bytes", (json_int_t)verify->damaged_bytes, "unfinished",
                (json_int_t)verify->unfinished, "unreadable", (json_int_t)verify->unreadable);
        CLEANUP(freep) char *text = totals ? json_dumps(totals, JSON_COMPACT) : NULL;

        if (text)
                printf("\n],%s\n", text + 1);
        else
                verify->r = -ENOMEM;
        json_decref(totals);
}

/* ---- Work ------------------------------------------------------------------------------------ */

static int list(struct verify *verify) {
        struct hr_connection *connection = verify->connection;
        int r = command_pages(connection, "files", "files", command_source_params(connection),
                              on_file, verify);

        if (r == 0 && verify->r == 0)
                r = command_pages(connection, "sources", "sources", json_object(), on_source,
                                  verify);
        return r ? r : verify->r;
}

/* Writes the report. The exit code. */
static int report(struct verify *verify, const char *shown) {
        int r;

        if (verify->is_json) {
                const char *url = hr_source(verify->connection);
                json_t *source = url ? json_string(url) : NULL;
                CLEANUP(freep) char *text = source ? json_dumps(source, JSON_ENCODE_ANY) : NULL;

                printf("{\"source\":%s,\"places\":[", text ? text : "null");
                json_decref(source);
        }
        r = list(verify);
        if (r)
                return command_failed(verify->connection, shown, r);
        if (verify->is_json)
                print_json_end(verify);
        else
                print_summary(verify);
        if (fflush(stdout) != 0 && errno != EPIPE) {
                complain("standard output", strerror(errno), NULL);
                return EXIT_DAMAGE;
        }
        return verify->damaged + verify->unreadable > 0 ? EXIT_DAMAGE : EXIT_GOOD;
}

/* A daemon that was told not to look at payloads has not seen all damage. */
static int check_checksum(const struct arguments *arguments, struct hr_connection *connection) {
        CLEANUP(freep) char *text = NULL;
        int r = hr_call(connection, "status", NULL, &text);
        json_t *status;
        bool looks;

        if (r)
                return command_failed(connection, "status", r);
        status = json_loads(text, 0, NULL);
        looks = strcmp(text_of(status, "checksum"), "length-only") != 0;
        json_decref(status);
        if (looks)
                return EXIT_GOOD;
        complain(arguments->shown, "the daemon does not check payloads (checksum is length-only)",
                 "set checksum to always in its configuration");
        return EXIT_DAMAGE;
}

static int verify_connection(const struct arguments *arguments, struct hr_connection *connection) {
        struct verify verify = { .connection = connection,
                                 .is_json = arguments->is_json,
                                 .reasons = json_object() };
        int code = check_checksum(arguments, connection);
        int r = code == EXIT_GOOD ? command_wait_loaded(connection, arguments->shown) : 0;

        if (r)
                code = command_failed(connection, arguments->shown, r);
        if (code == EXIT_GOOD)
                code = command_check_prefix(connection, arguments->shown);
        if (code == EXIT_GOOD)
                code = report(&verify, arguments->shown);
        json_decref(verify.reasons);
        return code;
}

int command_verify(int argc, char **argv) {
        struct arguments arguments = { 0 };
        struct hr_connection *connection = NULL;
        int code;

        argp_parse(&argp, argc, argv, 0, NULL, &arguments);
        arguments.shown = command_shown(arguments.url);
        code = command_open(&arguments.common, arguments.url, &connection);
        if (code == EXIT_GOOD)
                code = verify_connection(&arguments, connection);
        hr_close(connection);
        free(arguments.shown);
        common_deinit(&arguments.common);
        return code;
}
