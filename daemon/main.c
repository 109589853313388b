/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of headraced. What it says is put into the configuration; nothing else is
 * decided here.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/path_glob.h"
#include "common/private_source.h"
#include "common/since.h"
#include "common/source_spec.h"
#include "common/standard_fds.h"
#include "daemon/check.h"
#include "daemon/core/config_key.h"
#include "daemon/daemon.h"

#define EXIT_USAGE 2

const char *argp_program_version = "headraced " HEADRACE_VERSION;

enum option_key {
        OPTION_CONFIG = 256,
        OPTION_SET,
        OPTION_HUGE,
        OPTION_CHECK,
        OPTION_PRIVATE,
        OPTION_SOCKET_FD,
        OPTION_KEYS,
        OPTION_INCLUDE,
        OPTION_EXCLUDE,
        OPTION_SINCE,
};

static const struct argp_option options[] = {
        { "socket", 's', "PATH", 0, "Listen on PATH", 0 },
        { "ring", 'm', "SIZE", 0, "Size of the ring (256M)", 0 },
        { "huge", OPTION_HUGE, "off|try|on", 0, "Huge pages for the ring", 0 },
        { "config", OPTION_CONFIG, "FILE", 0, "Read FILE instead of the usual configuration files",
          0 },
        { "set", OPTION_SET, "KEY=VALUE", 0, "Set a configuration key; see --keys", 0 },
        { "include", OPTION_INCLUDE, "GLOB", 0,
          "Of the URLs named here, only files whose path matches GLOB; may be repeated", 0 },
        { "exclude", OPTION_EXCLUDE, "GLOB", 0,
          "Of the URLs named here, no files whose path matches GLOB; may be repeated", 0 },
        { "since", OPTION_SINCE, "TIME", 0,
          "Of the URLs named here, only files modified since then: 7d, 12h, RFC 3339", 0 },
        { "keys", OPTION_KEYS, NULL, 0, "List the configuration keys and end", 0 },
        { "check", OPTION_CHECK, NULL, 0, "Say whether it would work as configured, and end", 0 },
        { "verbose", 'v', NULL, 0, "Log more; twice: all", 0 },
        { "private", OPTION_PRIVATE, NULL, 0, "Serve one client, on --socket-fd, and end with it",
          1 },
        { "socket-fd", OPTION_SOCKET_FD, "N", 0, "The connected socket of that client", 1 },
        { 0 },
};

struct setting {
        const char *where, *key, *value; /* key NULL: value is KEY=VALUE */
};

struct arguments {
        const char *config_file;
        struct setting *settings; /* in the order of the command line */
        size_t setting_count;
        const char **urls;
        size_t url_count;
        char **include, **exclude; /* end with NULL */
        size_t include_count, exclude_count;
        char *since;
        unsigned verbose;
        bool check, keys, is_private;
        int socket_fd;
};

static void add_setting(struct arguments *arguments, const char *where, const char *key,
                        const char *value) {
        arguments->settings[arguments->setting_count++] = (struct setting){ .where = where,
                                                                            .key = key,
                                                                            .value = value };
}

static error_t parse_fd(struct arguments *arguments, const char *text, struct argp_state *state) {
        char *end;
        long fd = strtol(text, &end, 10);

        if (*end || end == text || fd < 0 || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0)
                argp_error(state, "--socket-fd: %s is no open descriptor", text);
        arguments->socket_fd = (int)fd;
        return 0;
}

/* A filter of the command line goes to all URLs of it. */
static error_t parse_filter(int key, char *value, struct arguments *arguments,
                            struct argp_state *state) {
        struct path_glob *glob = NULL;
        int64_t since_ns;

        if (key == OPTION_SINCE) {
                if (since_parse(value, 0, &since_ns) < 0)
                        argp_error(state, "--since: %s is neither RFC 3339 nor like 7d or 12h",
                                   value);
                arguments->since = value;
                return 0;
        }
        if (path_glob_new(value, &glob) < 0)
                argp_error(state, "%s: %s is no glob",
                           key == OPTION_INCLUDE ? "--include" : "--exclude", value);
        path_glob_free(glob);
        if (key == OPTION_INCLUDE)
                arguments->include[arguments->include_count++] = value;
        else
                arguments->exclude[arguments->exclude_count++] = value;
        return 0;
}

static error_t parse_option(int key, char *value, struct argp_state *state) {
        struct arguments *arguments = state->input;

        switch (key) {
        case 's':
                add_setting(arguments, "--socket", "socket", value);
                return 0;
        case 'm':
                add_setting(arguments, "--ring", "ring.size", value);
                return 0;
        case OPTION_HUGE:
                add_setting(arguments, "--huge", "ring.huge", value);
                return 0;
        case OPTION_SET:
                add_setting(arguments, "--set", NULL, value);
                return 0;
        case OPTION_CONFIG:
                arguments->config_file = value;
                return 0;
        case OPTION_KEYS:
                arguments->keys = true;
                return 0;
        case OPTION_CHECK:
                arguments->check = true;
                return 0;
        case OPTION_PRIVATE:
                arguments->is_private = true;
                return 0;
        case OPTION_SOCKET_FD:
                return parse_fd(arguments, value, state);
        case 'v':
                arguments->verbose++;
                return 0;
        case OPTION_INCLUDE:
        case OPTION_EXCLUDE:
        case OPTION_SINCE:
                return parse_filter(key, value, arguments, state);
        case ARGP_KEY_ARG:
                arguments->urls[arguments->url_count++] = value;
                return 0;
        case ARGP_KEY_END:
                if (arguments->is_private != (arguments->socket_fd >= 0))
                        argp_error(state, "--private and --socket-fd go together");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "[URL...]",
        .doc = "Watches directories of TensorBoard event files, on a local disk or a web server, "
               "and serves their records to local "
               "clients from shared memory."
               "\vURLs are paths, file://, http:// and https://; they are added to `sources` of "
               "the configuration.",
};

/* One source of the command line. The caller has made room. */
static int add_source(struct config *config, const struct source_spec_item *item,
                      const struct arguments *arguments) {
        const struct config_filter filter = { .include = arguments->include,
                                              .exclude = arguments->exclude,
                                              .since = arguments->since };
        struct config_source *source = &config->sources[config->source_count++];

        *source = (struct config_source){ .url = strdup(item->url),
                                          .name = item->name ? strdup(item->name) : NULL };
        if (!source->url || (item->name && !source->name))
                return -ENOMEM;
        return config_filter_dup(&filter, &source->filter);
}

/* Adds the sources of one argument of the command line: a URL, or name:url,name2:url2. */
static int add_spec(struct config *config, const char *text, const struct arguments *arguments,
                    char **ret_error) {
        CLEANUP(source_spec_deinit) struct source_spec spec = { 0 };
        struct config_source *sources;
        int r = source_spec_parse(text, &spec);

        if (r == -EINVAL && asprintf(ret_error, "a list of sources is name:url,name2:url2") < 0)
                *ret_error = NULL;
        if (r < 0)
                return r;
        sources = realloc(config->sources,
                          (config->source_count + spec.count) * sizeof(sources[0]));
        if (!sources)
                return -ENOMEM;
        config->sources = sources;
        for (size_t i = 0; r == 0 && i < spec.count; i++)
                r = add_source(config, &spec.items[i], arguments);
        return r;
}

static int load_config(struct config *config, const struct arguments *arguments, char **ret_error) {
        int r = arguments->config_file ? config_load_file(config, arguments->config_file, ret_error)
                                       : config_load_files(config, ret_error);

        if (r == 0)
                r = config_load_environment(config, ret_error);
        for (size_t i = 0; r == 0 && i < arguments->setting_count; i++) {
                const struct setting *setting = &arguments->settings[i];

                r = setting->key ? config_set(config, setting->where, setting->key, setting->value,
                                              ret_error)
                                 : config_set_assignment(config, setting->where, setting->value,
                                                         ret_error);
        }
        if (r == 0 && arguments->is_private)
                /* its client names what it wants */
                r = config_set(config, "--private", "sources", "[]", ret_error);
        for (size_t i = 0; r == 0 && i < arguments->url_count; i++)
                r = add_spec(config, arguments->urls[i], arguments, ret_error);
        if (arguments->verbose > 0)
                config->log_level = arguments->verbose > 1 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
        return r;
}

static int run(const struct arguments *arguments) {
        struct daemon_options daemon = {
                .version = argp_program_version,
                .is_private = arguments->is_private,
                .socket_fd = arguments->socket_fd,
        };
        CLEANUP(freep) char *error = NULL;
        int r;

        config_init(&daemon.config);
        r = load_config(&daemon.config, arguments, &error);
        if (r < 0) {
                fprintf(stderr, "headraced: %s\n", error ? error : strerror(-r));
                config_deinit(&daemon.config);
                return EXIT_USAGE;
        }
        r = arguments->check ? check_run(&daemon.config) : daemon_run(&daemon);
        config_deinit(&daemon.config);
        return r < 0 ? EXIT_FAILURE : r;
}

int main(int argc, char **argv) {
        CLEANUP(freep) struct setting *settings = calloc((size_t)argc, sizeof(settings[0]));
        CLEANUP(freep) const char **urls = calloc((size_t)argc + 1, sizeof(urls[0]));
        CLEANUP(freep) char **include = calloc((size_t)argc + 1, sizeof(include[0]));
        CLEANUP(freep) char **exclude = calloc((size_t)argc + 1, sizeof(exclude[0]));
        struct arguments arguments = { .settings = settings,
                                       .urls = urls,
                                       .include = include,
                                       .exclude = exclude,
                                       .socket_fd = -1 };

        if (standard_fds_fill() < 0 || !settings || !urls || !include || !exclude)
                return EXIT_FAILURE;
        argp_err_exit_status = EXIT_USAGE;
        if (argp_parse(&argp, argc, argv, 0, NULL, &arguments))
                return EXIT_USAGE;
        if (arguments.is_private && getenv(PRIVATE_SOURCE_VARIABLE))
                urls[arguments.url_count++] = getenv(PRIVATE_SOURCE_VARIABLE);
        if (arguments.keys)
                return config_key_write_all(stdout, CONFIG_FORMAT_HELP) < 0 ? EXIT_FAILURE
                                                                            : EXIT_SUCCESS;
        return run(&arguments);
}
