/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/command.h"

#include <errno.h>
#include <string.h>

#include "client/cli/human.h"
#include "client/cli/progress.h"
#include "common/base.h"
#include "common/path_glob.h"
#include "common/since.h"
#include "common/source_url.h"

/* ---- Options that all have ------------------------------------------------------------------- */

enum { OPTION_SOCKET = 0x100, OPTION_PRIVATE, OPTION_INCLUDE, OPTION_EXCLUDE, OPTION_SINCE };

static const struct argp_option common_options[] = {
        { "include", OPTION_INCLUDE, "GLOB", 0,
          "Only files whose path below the URL matches; may be repeated", 5 },
        { "exclude", OPTION_EXCLUDE, "GLOB", 0,
          "No files whose path below the URL matches; may be repeated", 5 },
        { "since", OPTION_SINCE, "TIME", 0,
          "Only files modified since then: 7d, 12h, 2026-11-24, RFC 3339", 5 },
        { "socket", OPTION_SOCKET, "PATH", 0, "Use the daemon that listens there, and no other",
          10 },
        { "private", OPTION_PRIVATE, NULL, 0, "Start a daemon of its own, whatever runs", 10 },
        { "verbose", 'v', NULL, 0, "Say which daemon is used", 10 },
        { 0 },
};

static bool is_filter(int key, const char *value) {
        struct path_glob *glob = NULL;
        int64_t since_ns;
        int r = key == OPTION_SINCE ? since_parse(value, 0, &since_ns)
                                    : path_glob_new(value, &glob);

        path_glob_free(glob);
        return r == 0;
}

/* Filters are those of a daemon: one of its own is started with them. */
static error_t parse_filter(int key, const char *value, struct argp_state *state) {
        static const char *const names[] = { "include", "exclude", "since" };
        const char *name = names[key - OPTION_INCLUDE];
        struct common *common = state->input;
        char **filters, *text;

        if (!is_filter(key, value))
                argp_error(state, "--%s: %s is no %s", name, value,
                           key == OPTION_SINCE ? "time: 7d, 12h, 2026-11-24 and RFC 3339 are"
                                               : "glob");
        filters = reallocarray(common->filters, common->filter_count + 1, sizeof(filters[0]));
        if (filters)
                common->filters = filters;
        if (!filters || asprintf(&text, "--%s=%s", name, value) < 0)
                return ENOMEM;
        filters[common->filter_count++] = text;
        common->is_private = true;
        return 0;
}

void common_deinit(struct common *common) {
        for (size_t i = 0; i < common->filter_count; i++)
                free(common->filters[i]);
        free(common->filters);
}

static error_t parse_common(int key, char *argument, struct argp_state *state) {
        struct common *common = state->input;

        switch (key) {
        case OPTION_SOCKET:
                common->socket = argument;
                return 0;
        case OPTION_PRIVATE:
                common->is_private = true;
                return 0;
        case OPTION_INCLUDE:
        case OPTION_EXCLUDE:
        case OPTION_SINCE:
                return parse_filter(key, argument, state);
        case 'v':
                common->verbose = true;
                return 0;
        case ARGP_KEY_END:
                if (common->is_private && common->socket)
                        argp_error(state, "%s a daemon, --socket uses one that runs",
                                   common->filter_count ? "filters start" : "--private starts");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

const struct argp common_argp = { .options = common_options, .parser = parse_common };

/* --private is still known, so that what is said of it is more than that it is not. */
static const struct argp_option running_options[] = {
        { "socket", OPTION_SOCKET, "PATH", 0, "Use the daemon that listens there, and no other",
          10 },
        { "private", OPTION_PRIVATE, NULL, OPTION_HIDDEN, NULL, 10 },
        { "verbose", 'v', NULL, 0, "Say which daemon it is, and what its memory holds", 10 },
        { 0 },
};

const struct argp running_argp = { .options = running_options, .parser = parse_common };

/* ---- Messages -------------------------------------------------------------------------------- */

void complain(const char *thing, const char *reason, const char *way_out) {
        bool has_colours = progress_has_colours();

        progress_clear();
        fprintf(stderr, "%sheadrace:%s %s: %s\n", has_colours ? "\033[1;31m" : "",
                has_colours ? "\033[0m" : "", thing, reason);
        if (way_out)
                fprintf(stderr, "  %s\n", way_out);
}

void complain_file(const char *path, const char *text) {
        CLEANUP(freep) char *name = human_name(path, strlen(path));

        complain(name ? name : "?", text, NULL);
}

/* ---- Connections ----------------------------------------------------------------------------- */

error_t command_parse_url(int key, char *argument, struct argp_state *state, const char **url) {
        switch (key) {
        case ARGP_KEY_ARG:
                if (*url)
                        argp_error(state, "%s: one URL at a time", argument);
                *url = argument;
                return 0;
        case ARGP_KEY_END:
                if (!*url)
                        argp_error(state, "a URL or a directory is missing");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

char *command_shown(const char *url) {
        char *normal;

        if (!source_url_has_scheme(url) || source_url_normalize(url, &normal) < 0)
                return strdup(url);
        return normal;
}

/* The reason, without the thing in front of it that is named anyway. */
static const char *without_thing(const char *reason, const char *thing) {
        size_t size = thing ? strlen(thing) : 0;

        if (thing && strncmp(reason, thing, size) == 0 && strncmp(reason + size, ": ", 2) == 0)
                return reason + size + 2;
        return reason;
}

int command_open(const struct common *common, const char *url,
                 struct hr_connection **ret_connection) {
        CLEANUP(freep) char *shown = url ? command_shown(url) : NULL;
        CLEANUP(freep) char *error = NULL;
        struct hr_options options = HR_OPTIONS;
        CLEANUP(freep)
        const char **arguments = calloc(common->filter_count + 2, sizeof(arguments[0]));
        const char *way_out = NULL;
        int r;

        if (!arguments) {
                complain(shown ? shown : "daemon", strerror(ENOMEM), NULL);
                return EXIT_SOURCE;
        }
        for (size_t i = 0; i < common->filter_count; i++)
                arguments[i] = common->filters[i];
        /* What its warnings would say is said below in our own words. */
        if (!common->verbose)
                arguments[common->filter_count] = "--set=log.level=error";
        options.arguments = arguments;
        options.client = "headrace";
        options.socket = common->socket;
        options.daemon = common->is_private ? HR_DAEMON_PRIVATE : HR_DAEMON_ANY;
        r = hr_open(url, &options, ret_connection, &error);
        if (r == 0) {
                if (common->verbose)
                        fprintf(stderr, "headrace: using the %s\n",
                                hr_daemon_name(*ret_connection));
                return EXIT_GOOD;
        }
        if (r == -ENOENT && !common->socket)
                way_out = "install headraced beside headrace, or name it in HEADRACE_DAEMON";
        else if (common->socket)
                way_out = "without --socket a daemon of its own is started";
        complain(shown ? shown : "daemon", error ? without_thing(error, url) : strerror(ENOMEM),
                 way_out);
        return r == -EINVAL ? EXIT_USAGE : EXIT_SOURCE;
}

/* "CODE message" or "source: CODE message": the code, and not the same digits in an address. */
static bool is_reason(const char *reason, const char *code) {
        size_t size = strlen(code);

        for (const char *at = reason; (at = strstr(at, code)); at++) {
                bool begins = at == reason || (at - reason >= 2 && memcmp(at - 2, ": ", 2) == 0);

                if (begins && (at[size] == ' ' || at[size] == '\0'))
                        return true;
        }
        return false;
}

/* What to do about the commonest ways in which a source cannot be listed. */
static const char *way_out_of(const char *reason) {
        static const struct {
                const char *code, *way_out;
        } ways[] = {
                { "ENOENT",
                  "is the name right? a relative path is taken from the current directory" },
                { "404", "is the address right?" },
                { "EACCES", "reading it needs the right to list the directory (r and x)" },
                { "401", "the server wants a login: put it into the URL or ~/.netrc" },
                { "403", "the server does not let this identity list it" },
                { "refused", "is the server up, and the port right?" },
                { "resolve", "is the name of the host right?" },
                { "tls", "is it an https server? CURL_CA_BUNDLE names the certificates to trust" },
                { "ENOTDIR", "name the directory that holds the event files" },
        };

        if (is_reason(reason, "404") && strstr(reason, "tfevents"))
                return "is it a file? on a web server name the directory that holds it";
        if (strchr(reason, '\n'))
                return NULL; /* the daemon knows more, and has said it */
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                if (is_reason(reason, ways[i].code))
                        return ways[i].way_out;
        }
        return NULL;
}

int command_failed(const struct hr_connection *connection, const char *thing, int r) {
        const char *reason = without_thing(hr_error(connection), thing);

        complain(thing, reason, r == HR_E_SOURCE ? way_out_of(reason) : NULL);
        return r == HR_E_SOURCE                    ? EXIT_SOURCE
               : r == HR_E_REFUSED || r == -EINVAL ? EXIT_USAGE
                                                   : EXIT_SOURCE;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* What was opened is a list of sources: runs and paths of a row are named by their source's name. */
static void name_row(json_t *row) {
        static const char *const keys[] = { "run", "path" };
        const char *source = json_string_value(json_object_get(row, "source"));

        if (!source || strchr(source, '/')) /* a URL: it was given no name */
                return;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                const char *name = json_string_value(json_object_get(row, keys[i]));

                if (name && strcmp(name, ".") != 0)
                        json_object_set_new(row, keys[i], json_sprintf("%s/%s", source, name));
                else if (name)
                        json_object_set_new(row, keys[i], json_string(source));
        }
}

int command_pages(struct hr_connection *connection, const char *method, const char *list,
                  json_t *take_params, void (*on_row)(void *userdata, const json_t *row),
                  void *userdata) {
        bool has_more = true;
        int r = 0;

        while (has_more && r == 0) {
                CLEANUP(freep) char *params = json_dumps(take_params, JSON_COMPACT);
                CLEANUP(freep) char *text = NULL;
                json_t *result, *row, *next;
                size_t index;

                r = hr_call(connection, method, params, &text);
                if (r)
                        break;
                result = json_loads(text, 0, NULL);
                json_array_foreach(json_object_get(result, list), index, row) {
                        if (command_is_list(connection))
                                name_row(row);
                        on_row(userdata, row);
                }
                next = json_object_get(result, "next");
                has_more = json_is_string(next);
                if (has_more)
                        json_object_set(take_params, "after", next);
                json_decref(result);
        }
        json_decref(take_params);
        return r;
}

/* A run name as a glob that matches it alone. */
static json_t *glob_of(const char *name, const char *suffix) {
        CLEANUP(freep) char *glob = malloc(2 * strlen(name) + strlen(suffix) + 1);
        char *out = glob;

        if (!glob)
                return NULL;
        for (; *name; name++) {
                if (strchr("*?[\\", *name))
                        *out++ = '\\';
                *out++ = *name;
        }
        memcpy(out, suffix, strlen(suffix) + 1);
        return json_string(glob);
}

json_t *command_source_params(const struct hr_connection *connection) {
        const char *prefix = hr_prefix(connection);
        json_t *params = json_pack("{s:s*}", "source", hr_source(connection));

        if (prefix[0])
                json_object_set_new(
                        params, "run",
                        json_pack("[o, o]", glob_of(prefix, ""), glob_of(prefix, "/*")));
        return params;
}

bool command_is_list(const struct hr_connection *connection) {
        return hr_daemon_is_private(connection) && !hr_source(connection);
}

bool command_is_source(const struct hr_connection *connection, const json_t *row) {
        const char *url = json_string_value(json_object_get(row, "url"));

        return hr_daemon_is_private(connection) || (url && strcmp(url, hr_source(connection)) == 0);
}

const char *command_below_prefix(const struct hr_connection *connection, const char *name,
                                 bool is_run) {
        size_t size = strlen(hr_prefix(connection));

        if (size == 0 || strncmp(name, hr_prefix(connection), size) != 0)
                return name;
        if (name[size] == '\0')
                return is_run ? "." : name;
        return name[size] == '/' ? name + size + 1 : name;
}

static void count_row(void *userdata, const json_t *row) {
        (void)row;
        ++*(size_t *)userdata;
}

int command_check_prefix(struct hr_connection *connection, const char *shown) {
        CLEANUP(freep) char *reason = NULL;
        size_t runs = 0;
        int r;

        if (!hr_prefix(connection) || !hr_prefix(connection)[0])
                return EXIT_GOOD;
        r = command_pages(connection, "runs", "runs", command_source_params(connection), count_row,
                          &runs);
        if (r)
                return command_failed(connection, shown, r);
        if (runs > 0)
                return EXIT_GOOD;
        if (asprintf(&reason, "no event files there, says the daemon that watches %s",
                     hr_source(connection)) < 0)
                reason = NULL;
        complain(shown, reason ? reason : "no event files there", "is the name right?");
        return EXIT_SOURCE;
}

/* ---- Loading --------------------------------------------------------------------------------- */

int command_wait_loaded(struct hr_connection *connection, const char *shown) {
        json_t *params = json_pack("{s:s*}", "source", hr_source(connection));
        CLEANUP(freep) char *text = json_dumps(params, JSON_COMPACT);
        int r = 0;

        json_decref(params);
        progress_begin(connection, shown);
        if (!hr_daemon_is_private(connection))
                r = hr_call(connection, "reload", text, NULL);
        if (r == 0)
                r = hr_call(connection, "wait_loaded", text, NULL);
        progress_end(connection);
        return r;
}
