/* SPDX-License-Identifier: Apache-2.0 */
/* headrace source: adds sources to the running daemon, and removes them. */
#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "common/base.h"
#include "common/source_url.h"

struct arguments {
        struct common common;
        const char *verb, *thing; /* add URL, remove NAME; "" and NULL: not given */
        const char *name, *since;
        json_t *include, *exclude;
};

enum { OPTION_NAME = 0x200, OPTION_INCLUDE, OPTION_EXCLUDE, OPTION_SINCE };

static const struct argp_option options[] = {
        { "name", OPTION_NAME, "NAME", 0, "What the source is called; else its URL", 1 },
        { "include", OPTION_INCLUDE, "GLOB", 0,
          "Only files whose path below the URL matches; may be repeated", 1 },
        { "exclude", OPTION_EXCLUDE, "GLOB", 0,
          "No files whose path below the URL matches; may be repeated", 1 },
        { "since", OPTION_SINCE, "TIME", 0, "Only files modified since then: 7d, 12h, RFC 3339",
          1 },
        { 0 },
};

static error_t add_glob(json_t **globs, const char *glob, struct argp_state *state) {
        if (!*globs)
                *globs = json_array();
        if (json_array_append_new(*globs, json_string(glob)) < 0)
                argp_error(state, "%s: not UTF-8", glob);
        return 0;
}

static error_t parse_end(const struct arguments *arguments, struct argp_state *state) {
        bool has_options = arguments->name || arguments->since || arguments->include ||
                           arguments->exclude;

        if (arguments->common.is_private)
                argp_error(state, "--private: source changes the daemon that runs");
        if (!arguments->thing)
                argp_error(state, "it is: source add URL, or source remove NAME");
        else if (strcmp(arguments->verb, "remove") == 0 && has_options)
                argp_error(state, "remove takes the name or URL of a source, and nothing else");
        return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
        struct arguments *arguments = state->input;

        switch (key) {
        case OPTION_NAME:
                arguments->name = argument;
                return 0;
        case OPTION_INCLUDE:
                return add_glob(&arguments->include, argument, state);
        case OPTION_EXCLUDE:
                return add_glob(&arguments->exclude, argument, state);
        case OPTION_SINCE:
                arguments->since = argument;
                return 0;
        case ARGP_KEY_INIT:
                state->child_inputs[0] = &arguments->common;
                return 0;
        case ARGP_KEY_ARG:
                if (state->arg_num == 0 && strcmp(argument, "add") && strcmp(argument, "remove"))
                        argp_error(state, "%s: neither add nor remove", argument);
                if (state->arg_num > 1)
                        argp_error(state, "%s: one source at a time", argument);
                *(state->arg_num ? &arguments->thing : &arguments->verb) = argument;
                return 0;
        case ARGP_KEY_END:
                return parse_end(arguments, state);
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp_child children[] = { { &running_argp, 0, "Daemon:", 10 }, { 0 } };
static const struct argp argp = {
        options,
        parse,
        "add URL\nremove NAME",
        "Adds a source to the daemon that runs, or removes one; its clients see the runs come and "
        "go. Both last until the daemon ends: the configuration stays as it is."
        "\vExit codes: 0 done, 2 usage, or the daemon refuses it, 3 no daemon runs.",
        children,
        NULL,
        NULL,
};

/* A relative path is ours, not the daemon's. NULL: no memory, or not UTF-8. */
static json_t *add_params(const struct arguments *arguments) {
        CLEANUP(freep) char *path = NULL;
        const char *url = arguments->thing;

        if (!source_url_has_scheme(url) && source_url_normalize(url, &path) == 0)
                url = path;
        return json_pack("{s:s, s:s*, s:O*, s:O*, s:s*}", "url", url, "name", arguments->name,
                         "include", arguments->include, "exclude", arguments->exclude, "since",
                         arguments->since);
}

/* By its name or URL; a path as the daemon names it. */
static json_t *remove_params(const struct arguments *arguments) {
        CLEANUP(freep) char *path = NULL;
        const char *name = arguments->thing;

        if (strchr(name, '/') && source_url_normalize(name, &path) == 0)
                name = path;
        return json_pack("{s:s}", "source", name);
}

static int change(const struct arguments *arguments, struct hr_connection *connection) {
        bool adds = strcmp(arguments->verb, "add") == 0;
        CLEANUP(freep) char *shown = command_shown(arguments->thing);
        json_t *params = adds ? add_params(arguments) : remove_params(arguments);
        CLEANUP(freep) char *text = params ? json_dumps(params, JSON_COMPACT) : NULL;
        int r;

        json_decref(params);
        if (!text) {
                complain(shown ? shown : "source", "the name is not UTF-8", NULL);
                return EXIT_USAGE;
        }
        r = hr_call(connection, adds ? "add_source" : "remove_source", text, NULL);
        return r ? command_failed(connection, shown ? shown : "source", r) : EXIT_GOOD;
}

int command_source(int argc, char **argv) {
        struct arguments arguments = { .verb = "" };
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
                code = EXIT_SOURCE;
        } else {
                if (arguments.common.verbose)
                        fprintf(stderr, "headrace: using the %s\n", hr_daemon_name(connection));
                code = change(&arguments, connection);
        }
        hr_close(connection);
        json_decref(arguments.include);
        json_decref(arguments.exclude);
        return code;
}
