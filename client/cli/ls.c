/* SPDX-License-Identifier: Apache-2.0 */
/* headrace ls: the runs below a URL, when all of their files are read. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/cli/command.h"
#include "client/cli/human.h"
#include "client/cli/json_line.h"
#include "client/cli/table.h"
#include "common/base.h"
#include "common/source_url.h"

struct arguments {
        struct common common;
        const char *url;
        char *shown; /* of it, what may be shown */
        bool is_json, all;
};

enum { OPTION_JSON = 0x200 };

static const struct argp_option options[] = {
        { "all", 'a', NULL, 0, "Also the runs that filters leave out, and which filter it was", 1 },
        { "json", OPTION_JSON, NULL, 0, "One JSON object with runs and totals", 1 },
        { 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state) {
        struct arguments *arguments = state->input;

        switch (key) {
        case 'a':
                arguments->all = true;
                return 0;
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
        "Lists the runs below a URL or directory: files, size, last step, and how long ago it "
        "changed."
        "\vExit codes: 0 all good, 1 some records are damaged or files unreadable (named on "
        "standard error), 2 usage, "
        "3 the source cannot be listed.",
        children,
        NULL,
        NULL,
};

/* ---- Rows ------------------------------------------------------------------------------------ */

enum {
        COLUMN_RUN,
        COLUMN_STATE,
        COLUMN_FILES,
        COLUMN_SIZE,
        COLUMN_LAST_STEP,
        COLUMN_CHANGED,
        COLUMN_COUNT
};

static const char *const heads[] = { "RUN", "STATE", "FILES", "SIZE", "LAST STEP", "CHANGED" };
static const bool right[] = { false, false, true, true, true, true };

struct listing {
        struct hr_connection *connection;
        struct table table;
        json_t *rows;    /* for --json */
        bool has_states; /* a run that is not just loaded */
        int64_t runs, files, size_bytes, records, damaged;
        double now;
        int r;
};

static void add_cell(struct listing *listing, const char *text) {
        if (listing->r == 0)
                listing->r = table_add(&listing->table, text);
}

static void add_changed(struct listing *listing, const json_t *changed) {
        char age[HUMAN_SIZE], text[HUMAN_SIZE + 8];

        if (!json_is_number(changed)) {
                add_cell(listing, "-");
                return;
        }
        snprintf(text, sizeof(text), "%s ago",
                 human_age(age, listing->now - json_number_value(changed)));
        add_cell(listing, text);
}

static void on_run(void *userdata, const json_t *row) {
        struct listing *listing = userdata;
        const char *run = json_string_value(json_object_get(row, "run")),
                   *state = json_string_value(json_object_get(row, "state"));
        int64_t files = json_integer_value(json_object_get(row, "files"));
        int64_t size_bytes = json_integer_value(json_object_get(row, "size_bytes"));
        json_t *last_step = json_object_get(row, "last_step"), *copy;
        const char *name = run ? command_below_prefix(listing->connection, run, true) : "?";
        CLEANUP(freep) char *printable = human_name(name, strlen(name));
        char text[HUMAN_SIZE];

        add_cell(listing, printable ? printable : "?");
        add_cell(listing, state ? state : "?");
        add_cell(listing, human_count(text, files));
        add_cell(listing, human_bytes(text, (uint64_t)size_bytes));
        add_cell(listing, json_is_integer(last_step)
                                  ? human_count(text, json_integer_value(last_step))
                                  : "-");
        add_changed(listing, json_object_get(row, "changed"));

        copy = json_copy((json_t *)(uintptr_t)row);
        json_object_set_new(copy, "run", json_string(name));
        json_array_append_new(listing->rows, copy);
        listing->has_states |= !state || strcmp(state, "loaded") != 0;
        listing->runs += !state || strncmp(state, "excluded", 8) != 0;
        listing->files += files;
        listing->size_bytes += size_bytes;
        listing->records += json_integer_value(json_object_get(row, "records"));
        listing->damaged += json_integer_value(json_object_get(row, "damaged"));
}

/* ---- Totals ---------------------------------------------------------------------------------- */

struct requests {
        const struct hr_connection *connection;
        int64_t list, read, credentials, excluded;
        int64_t list_repeated, read_repeated; /* of them: asked before, in vain or too late */
        bool is_remote;
        double cost_usd;
        json_t *cost;   /* of the last source that costs something; NULL: they cost nothing */
        char *identity; /* as whom they were sent; NULL: nobody */
};

static void requests_deinit(struct requests *requests) {
        json_decref(requests->cost);
        free(requests->identity);
}

/* Of several sources the sum is shown. */
static void add_cost(struct requests *requests, json_t *cost) {
        if (!cost)
                return;
        requests->cost_usd += json_number_value(json_object_get(cost, "total_usd"));
        json_decref(requests->cost);
        requests->cost = json_copy(cost);
        json_object_set_new(requests->cost, "total_usd", json_real(requests->cost_usd));
}

static void on_source(void *userdata, const json_t *row) {
        struct requests *requests = userdata;
        json_t *counts = json_object_get(row, "requests"),
               *repeated = json_object_get(counts, "repeated");
        const char *identity, *url;

        if (!command_is_source(requests->connection, row))
                return;
        url = json_string_value(json_object_get(row, "url"));
        requests->is_remote |= url && source_url_has_scheme(url);
        requests->list += json_integer_value(json_object_get(counts, "list"));
        requests->read += json_integer_value(json_object_get(counts, "read"));
        requests->credentials += json_integer_value(json_object_get(counts, "credentials"));
        requests->list_repeated += json_integer_value(json_object_get(repeated, "list"));
        requests->read_repeated += json_integer_value(json_object_get(repeated, "read"));
        requests->excluded += json_integer_value(json_object_get(row, "excluded"));
        add_cost(requests, json_object_get(counts, "cost"));
        identity = json_string_value(json_object_get(row, "identity"));
        if (identity && !requests->identity)
                requests->identity = strdup(identity);
}

static void print_totals(const struct listing *listing, const struct requests *requests) {
        char runs[HUMAN_SIZE], files[HUMAN_SIZE], size[HUMAN_SIZE], list[HUMAN_SIZE],
                read[HUMAN_SIZE];
        bool is_remote = requests->is_remote;

        printf("%s %s, %s %s, %s; %s %s + %s %s", human_count(runs, listing->runs),
               listing->runs == 1 ? "run" : "runs", human_count(files, listing->files),
               listing->files == 1 ? "file" : "files",
               human_bytes(size, (uint64_t)listing->size_bytes), human_count(list, requests->list),
               is_remote             ? "LIST"
               : requests->list == 1 ? "listing"
                                     : "listings",
               human_count(read, requests->read),
               is_remote             ? "GET"
               : requests->read == 1 ? "read"
                                     : "reads");
        if (requests->credentials)
                printf(" + %s for credentials", human_count(read, requests->credentials));
        if (requests->list_repeated + requests->read_repeated > 0)
                printf(", %s of them asked again",
                       human_count(read, requests->list_repeated + requests->read_repeated));
        if (requests->cost)
                printf(" (about %s)", human_dollars(read, json_number_value(json_object_get(
                                                                  requests->cost, "total_usd"))));
        if (requests->identity) {
                CLEANUP(freep)
                char *identity = human_name(requests->identity, strlen(requests->identity));

                printf("; as %s", identity ? identity : "?");
        }
        if (requests->excluded)
                printf("; %s %s left out by filters (ls --all names %s)",
                       human_count(files, requests->excluded),
                       requests->excluded == 1 ? "file" : "files",
                       requests->excluded == 1 ? "it" : "them");
        putchar('\n');
}

/* A name as JSON, with U+FFFD where it is no UTF-8. */
static json_t *name_json(const char *name) {
        size_t size = name ? strlen(name) : 0;
        CLEANUP(freep) char *text = malloc(json_line_string_most(size));

        if (!name)
                return json_null();
        return text ? json_loadb(text, (size_t)(json_line_string(text, name, size) - text),
                                 JSON_DECODE_ANY, NULL)
                    : NULL;
}

static int print_json(const struct listing *listing, const struct requests *requests) {
        int r;
        json_t *object = json_pack(
                "{s:o, s:o, s:O, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:{s:I, s:I}}}",
                "source", name_json(hr_source(requests->connection)), "prefix",
                name_json(hr_prefix(listing->connection)), "runs", listing->rows, "files",
                (json_int_t)listing->files, "size_bytes", (json_int_t)listing->size_bytes,
                "records", (json_int_t)listing->records, "damaged", (json_int_t)listing->damaged,
                "excluded", (json_int_t)requests->excluded, "requests", "list",
                (json_int_t)requests->list, "read", (json_int_t)requests->read, "credentials",
                (json_int_t)requests->credentials, "repeated", "list",
                (json_int_t)requests->list_repeated, "read", (json_int_t)requests->read_repeated);

        if (requests->cost)
                json_object_set(json_object_get(object, "requests"), "cost", requests->cost);
        if (requests->identity)
                json_object_set_new(object, "identity", json_string(requests->identity));
        r = object ? json_dumpf(object, stdout, JSON_COMPACT) : -1;

        json_decref(object);
        putchar('\n');
        return r < 0 ? -ENOMEM : 0;
}

static int print_listing(struct listing *listing, const struct requests *requests, bool is_json) {
        const bool hidden[COLUMN_COUNT] = { [COLUMN_STATE] = !listing->has_states };

        if (listing->r < 0)
                return listing->r;
        if (is_json)
                return print_json(listing, requests);
        if (json_array_size(listing->rows) > 0)
                table_print(&listing->table, hidden);
        print_totals(listing, requests);
        return 0;
}

/* ---- Work ------------------------------------------------------------------------------------ */

static int list(struct hr_connection *connection, const struct arguments *arguments,
                struct listing *listing, struct requests *requests) {
        json_t *params = command_source_params(connection);
        int r = command_wait_loaded(connection, arguments->shown);

        if (arguments->all)
                json_object_set_new(params, "excluded", json_true());
        if (r == 0)
                r = command_pages(connection, "runs", "runs", json_incref(params), on_run, listing);
        json_decref(params);
        if (r == 0)
                r = command_pages(connection, "sources", "sources", json_object(), on_source,
                                  requests);
        return r;
}

static int list_and_print(const struct arguments *arguments, struct hr_connection *connection) {
        CLEANUP(requests_deinit) struct requests requests = { .connection = connection };
        struct listing listing = { .connection = connection,
                                   .rows = json_array(),
                                   .now = (double)time(NULL) };
        int r, code;

        table_init(&listing.table, COLUMN_COUNT, heads, right);
        r = list(connection, arguments, &listing, &requests);
        if (r) {
                code = command_failed(connection, arguments->shown, r);
        } else if ((code = command_check_prefix(connection, arguments->shown)) == EXIT_GOOD) {
                r = print_listing(&listing, &requests, arguments->is_json);
                if (r == 0 && fflush(stdout) != 0 && errno != EPIPE)
                        r = -errno;
                if (r < 0)
                        complain("standard output", strerror(-r), NULL);
                code = command_name_damage(connection, arguments->shown, NULL);
                code = r < 0 && code == EXIT_GOOD ? EXIT_DAMAGE : code;
        }
        table_deinit(&listing.table);
        json_decref(listing.rows);
        return code;
}

int command_ls(int argc, char **argv) {
        struct arguments arguments = { 0 };
        struct hr_connection *connection = NULL;
        int code;

        argp_parse(&argp, argc, argv, 0, NULL, &arguments);
        arguments.shown = command_shown(arguments.url);
        code = command_open(&arguments.common, arguments.url, &connection);
        if (code == EXIT_GOOD)
                code = list_and_print(&arguments, connection);
        hr_close(connection);
        free(arguments.shown);
        common_deinit(&arguments.common);
        return code;
}
