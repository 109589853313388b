/* SPDX-License-Identifier: Apache-2.0 */
/* headrace status: what the running daemon does, a line a source. */
#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/human.h"
#include "common/base.h"

struct arguments {
        struct common common;
        bool is_json;
};

enum { OPTION_JSON = 0x200 };

static const struct argp_option options[] = {
        { "json", OPTION_JSON, NULL, 0, "Everything the daemon says, as one JSON object", 1 },
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
        case ARGP_KEY_ARG:
                argp_error(state, "%s: status takes no argument", argument);
                return 0;
        case ARGP_KEY_END:
                if (arguments->common.is_private)
                        argp_error(state, "--private: status asks the daemon that runs");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp_child children[] = { { &running_argp, 0, "Daemon:", 10 }, { 0 } };
static const struct argp argp = {
        options,
        parse,
        NULL,
        "Says what the running daemon does, in one line for every source: its state, how many of "
        "its runs are read, what is damaged, and the requests so far."
        "\vExit codes: 0 all good, 1 some records are damaged or files unreadable, 2 usage, 3 no "
        "daemon runs or a source cannot be "
        "listed.",
        children,
        NULL,
        NULL,
};

static const char *text_of(const json_t *object, const char *key, const char *fallback) {
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : fallback;
}

static int64_t number_of(const json_t *object, const char *key) {
        return json_integer_value(json_object_get(object, key));
}

/* How many of a source's runs there are, and how many of them wait for nothing. */
struct run_counts {
        int64_t all, done;
};

static void on_run(void *userdata, const json_t *row) {
        const char *state = text_of(row, "state", "");
        struct run_counts *counts = userdata;

        counts->all++;
        counts->done += strcmp(state, "loading") != 0 && strcmp(state, "queued") != 0;
}

static int count_runs(struct hr_connection *connection, const json_t *source,
                      struct run_counts *ret_counts) {
        json_t *params = json_object(), *name = json_object_get(source, "name"),
               *hex = json_object_get(source, "name_hex");

        *ret_counts = (struct run_counts){ 0 };
        json_object_set(params, hex ? "source_hex" : "source", hex ? hex : name);
        return command_pages(connection, "runs", "runs", params, on_run, ret_counts);
}

/* What was asked of storage today, and what that costs. */
static void print_requests(const json_t *requests) {
        json_t *today = json_object_get(requests, "today"),
               *cost = json_object_get(requests, "cost"), *day = json_object_get(cost, "day_usd");
        char count[HUMAN_SIZE], price[HUMAN_SIZE];
        int64_t sum = number_of(today, "list") + number_of(today, "read") +
                      number_of(today, "credentials");

        printf("  today %s request%s", human_count(count, sum), sum == 1 ? "" : "s");
        if (cost)
                printf(" (about %s",
                       human_dollars(price, json_number_value(json_object_get(cost, "today_usd"))));
        if (json_is_number(day))
                printf("; %s a day as of now", human_dollars(price, json_number_value(day)));
        if (cost)
                putchar(')');
}

/* Polls rest when nobody looks, which is as it should be; that the limit stopped them is news. */
static void print_polling(const json_t *polling) {
        const char *state = text_of(polling, "state", "");

        if (strcmp(state, "stopped") == 0)
                printf("  polling stopped until midnight UTC (max_requests_per_day)");
        else if (strcmp(state, "resting") == 0)
                printf("  polling rests");
}

static void print_source(const json_t *source, const struct run_counts *counts) {
        json_t *age = json_object_get(source, "listed_age_s");
        char done[HUMAN_SIZE], all[HUMAN_SIZE], damaged[HUMAN_SIZE], when[HUMAN_SIZE],
                count[HUMAN_SIZE];
        const char *name = text_of(source, "name", "?");
        CLEANUP(freep) char *printable = human_name(name, strlen(name));
        CLEANUP(freep) char *reasons = command_reasons(json_object_get(source, "reasons"));

        printf("%s  %s  %s/%s runs  damaged %s", printable ? printable : "?",
               text_of(source, "state", "?"), human_count(done, counts->done),
               human_count(all, counts->all), human_count(damaged, number_of(source, "damaged")));
        if (number_of(source, "damaged") > 0 && reasons)
                printf(" (%s)", reasons);
        if (number_of(source, "failed") > 0)
                printf("  unreadable %s", human_count(count, number_of(source, "failed")));
        if (number_of(source, "archived") > 0)
                printf("  archived %s", human_count(count, number_of(source, "archived")));
        if (number_of(source, "excluded") > 0)
                printf("  left out %s", human_count(count, number_of(source, "excluded")));
        if (json_is_number(age))
                printf("  last look %s ago", human_age(when, json_number_value(age)));
        print_requests(json_object_get(source, "requests"));
        print_polling(json_object_get(source, "polling"));
        putchar('\n');
}

/* A FUSE mount is slower than what it mounts: what to do about it. */
static void print_mount(const json_t *mount) {
        const char *type = text_of(mount, "type", ""), *native = text_of(mount, "native", "");
        int64_t most = number_of(mount, "max_background");

        if (strncmp(type, "fuse", 4) != 0)
                return;
        printf("  on %s: the kernel runs ", type);
        if (most > 0)
                printf("at most %lld", (long long)most);
        else
                fputs("few", stdout);
        fputs(" reads of it at a time", stdout);
        if (native[0])
                printf("; %s is read without it", native);
        putchar('\n');
}

/* Names what is wrong with a source; the exit code that stands for it. */
static int judge_source(const json_t *source) {
        json_t *error = json_object_get(source, "error");
        const char *code = text_of(error, "code", ""),
                   *message = text_of(error, "message", "failing");
        char reason[640];

        if (json_is_object(error)) {
                snprintf(reason, sizeof(reason), "%s%s%s", strstr(message, code) ? "" : code,
                         strstr(message, code) ? "" : " ", message);
                complain_file(text_of(source, "name", "?"), reason);
                return EXIT_SOURCE;
        }
        return number_of(source, "damaged") + number_of(source, "failed") +
                                       number_of(source, "archived") >
                               0
                       ? EXIT_DAMAGE
                       : EXIT_GOOD;
}

static void print_ring(const json_t *status) {
        json_t *ring = json_object_get(status, "ring"), *memory = json_object_get(status, "memory");
        char used[HUMAN_SIZE], all[HUMAN_SIZE], inflight[HUMAN_SIZE];
        size_t sessions = json_array_size(json_object_get(status, "sessions"));

        /* The limits in the unit in which they are configured, and in which --check shows them. */
        printf("ring %lld MiB (%s pages), %s of %s segments used, %lld pinned; in flight %s of "
               "%lld MiB; %zu session%s\n",
               (long long)number_of(ring, "size_bytes") >> 20, text_of(ring, "tier", "?"),
               human_count(used, number_of(ring, "segments_used")),
               human_count(all, number_of(ring, "segments")), (long long)number_of(ring, "pinned"),
               human_bytes(inflight, (uint64_t)number_of(memory, "inflight_bytes")),
               (long long)number_of(memory, "inflight_limit_bytes") >> 20, sessions,
               sessions == 1 ? "" : "s");
}

static void print_daemon(const struct hr_connection *connection, const json_t *status) {
        char age[HUMAN_SIZE];

        printf("%s, pid %lld, up %s, %s\n", text_of(status, "server", "?"),
               (long long)number_of(status, "pid"),
               human_age(age, json_number_value(json_object_get(status, "uptime_s"))),
               hr_daemon_name(connection));
        print_ring(status);
}

static int print_sources(struct hr_connection *connection, const json_t *status) {
        json_t *sources = json_object_get(status, "sources"), *source;
        size_t index, count = json_array_size(sources);

        json_array_foreach(sources, index, source) {
                struct run_counts counts;
                int r = count_runs(connection, source, &counts);

                if (r)
                        return r;
                print_source(source, &counts);
                print_mount(json_object_get(source, "mount"));
        }
        if (count == 0)
                puts("no sources");
        return 0;
}

static int show(const struct arguments *arguments, struct hr_connection *connection) {
        CLEANUP(freep) char *text = NULL;
        int r = hr_call(connection, "status", NULL, &text), code = EXIT_GOOD;
        json_t *status, *source;
        size_t index;

        if (r)
                return command_failed(connection, "status", r);
        status = json_loads(text, 0, NULL);
        json_array_foreach(json_object_get(status, "sources"), index, source) {
                int found = judge_source(source);

                code = found > code ? found : code;
        }
        if (arguments->is_json) {
                puts(text);
        } else {
                if (arguments->common.verbose)
                        print_daemon(connection, status);
                r = print_sources(connection, status);
        }
        json_decref(status);
        if (r)
                return command_failed(connection, "status", r);
        if (fflush(stdout) != 0 && errno != EPIPE) {
                complain("standard output", strerror(errno), NULL);
                code = EXIT_DAMAGE;
        }
        return code;
}

int command_status(int argc, char **argv) {
        struct arguments arguments = { 0 };
        struct hr_options connect_options = HR_OPTIONS;
        struct hr_connection *connection = NULL;
        CLEANUP(freep) char *error = NULL;
        int code;

        argp_parse(&argp, argc, argv, 0, NULL, &arguments);
        connect_options.client = "headrace";
        connect_options.socket = arguments.common.socket;
        if (hr_connect(&connect_options, &connection, &error)) {
                complain("no daemon answers", error ? error : strerror(ENOMEM),
                         "start headraced, or name its socket: --socket PATH");
                return EXIT_SOURCE;
        }
        code = show(&arguments, connection);
        hr_close(connection);
        return code;
}
