/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which daemon to talk to: a running one that has the URL, or a private one (docs/PROTOCOL.md,
 * "Where"). A daemon that does not answer, is stopped or speaks something else is passed over like
 * one that is not there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "client/lib/call.h"
#include "client/lib/helper.h"
#include "client/lib/link.h"
#include "client/lib/source_names.h"
#include "common/private_source.h"
#include "common/settings_id.h"
#include "common/socket_path.h"
#include "common/source_spec.h"
#include "common/source_url.h"

#define HELLO_RUNNING_MS 3000
#define HELLO_PRIVATE_MS 30000

/* What is wanted, and why nothing was found so far. */
struct finder {
        const struct hr_options *options;
        const char *url;       /* normal form; NULL: any daemon, or a list */
        const char *given_url; /* as it was given, with what must not be shown */
        char *error;
};

static int finder_fail(struct finder *finder, int r, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static int finder_fail(struct finder *finder, int r, const char *format, ...) {
        va_list arguments;
        char *text = NULL;

        va_start(arguments, format);
        if (vasprintf(&text, format, arguments) < 0)
                text = NULL;
        va_end(arguments);
        free(finder->error);
        finder->error = text;
        return r;
}

static int hello(struct hr_connection *connection, const struct hr_options *options,
                 int timeout_ms) {
        const char *client = options->client ? options->client : "libheadrace";
        int r = call_start(connection, "hello",
                           json_pack("{s:s, s:[i]}", "client", client, "protocol", 1));

        if (r == 0)
                r = call_finish(connection, timeout_ms);
        if (r == HR_AGAIN)
                r = link_break(connection, -ETIMEDOUT, "%s: does not answer",
                               hr_daemon_name(connection));
        if (r == 0 && json_integer_value(json_object_get(connection->call.result, "protocol")) != 1)
                r = link_fail(connection, HR_E_REFUSED, "%s: speaks another protocol",
                              hr_daemon_name(connection));
        if (r == 0)
                connection->hello = json_incref(connection->call.result);
        call_reset(&connection->call);
        return r;
}

/* Connects and says hello. The error is the finder's. */
static int greet(struct finder *finder, int take_fd, char *take_name, pid_t helper, int timeout_ms,
                 struct hr_connection **ret_connection) {
        struct hr_connection *connection = NULL;
        int r = link_new(take_fd, &connection), status;

        if (r < 0) {
                free(take_name);
                if (helper)
                        helper_end(helper);
                return finder_fail(finder, r, "%s", strerror(-r));
        }
        connection->daemon_name = take_name;
        connection->helper = helper;
        connection->is_private = helper;
        r = hello(connection, finder->options, timeout_ms);
        if (r) {
                finder_fail(finder, r, "%s", hr_error(connection));
                connection->helper = 0;
                link_free(connection);
                /* It has said why, in a frame or on standard error. */
                if (helper && (status = helper_end(helper)) > 0 && status != PRIVATE_SOURCE_REFUSED)
                        finder_fail(finder, r, "the private daemon ended with exit code %d",
                                    status);
                return r;
        }
        *ret_connection = connection;
        return 0;
}

static int connect_path(const char *path, int *ret_fd) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(close_fdp) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        *ret_fd = steal_fd(&fd);
        return 0;
}

static int greet_path(struct finder *finder, const char *path,
                      struct hr_connection **ret_connection) {
        char *name = NULL;
        int fd = -1, r;

        r = connect_path(path, &fd);
        if (r < 0)
                return finder_fail(finder, r, "%s: %s", path, strerror(-r));
        if (asprintf(&name, "daemon at %s", path) < 0) {
                close(fd);
                return finder_fail(finder, -ENOMEM, "%s", strerror(ENOMEM));
        }
        return greet(finder, fd, name, 0, HELLO_RUNNING_MS, ret_connection);
}

static bool has_same_settings(const struct hr_connection *connection) {
        const char *theirs = json_string_value(json_object_get(connection->hello, "settings"));
        char ours[17];
        uint64_t id;

        if (!theirs || settings_id_compute(environ, &id) < 0)
                return false;
        snprintf(ours, sizeof(ours), "%016" PRIx64, id);
        return strcmp(ours, theirs) == 0;
}

/*
 * Remembers the daemon's source that has the URL, the nearest one where there are several. -ENOENT:
 * none has.
 */
static int take_source(struct hr_connection *connection, const char *url) {
        json_t *sources = json_object_get(connection->hello, "sources"), *source, *below;
        size_t index, best_size = 0, prefix_size;
        const char *best = NULL;
        struct stat status;

        json_array_foreach(sources, index, source) {
                const char *candidate = json_string_value(source);

                if (candidate && source_url_is_below(candidate, url, &prefix_size) &&
                    (!best || prefix_size > best_size)) {
                        best = candidate;
                        best_size = prefix_size;
                }
        }
        if (!best)
                return -ENOENT;
        /* Below a source there are runs to ask for; one file alone is for a daemon of its own. */
        if (url[best_size] && !source_url_has_scheme(url) && stat(url, &status) == 0 &&
            S_ISREG(status.st_mode))
                return -ENOENT;
        /* A prefix that is no UTF-8 cannot be asked for. */
        below = json_string(url + best_size);
        json_decref(below);
        if (!below)
                return -ENOENT;
        connection->source = strdup(best);
        connection->prefix = strdup(url + best_size);
        return connection->source && connection->prefix ? 0 : -ENOMEM;
}

static int try_path(struct finder *finder, const struct socket_path *path,
                    struct hr_connection **ret_connection) {
        struct hr_connection *connection = NULL;
        int r = greet_path(finder, path->path, &connection);

        if (r)
                return r;
        MUST(connection);
        if (finder->url && path->place == SOCKET_USER && !has_same_settings(connection))
                r = finder_fail(finder, -ENOENT,
                                "%s: has other storage settings in its environment",
                                hr_daemon_name(connection));
        else if (finder->url && (r = take_source(connection, finder->url)) < 0)
                finder_fail(finder, r, "%s: has no source with %s", hr_daemon_name(connection),
                            finder->url);
        if (r < 0)
                link_free(connection);
        else
                *ret_connection = connection;
        return r;
}

static int find_running(struct finder *finder, struct hr_connection **ret_connection) {
        struct socket_path paths[SOCKET_PATHS_MOST];
        size_t count = 0;
        int r = socket_path_search(finder->options->socket, paths, &count);

        if (r < 0)
                return finder_fail(finder, r, "%s", strerror(-r));
        r = -ENOENT;
        for (size_t i = 0; i < count && r; i++)
                r = try_path(finder, &paths[i], ret_connection);
        socket_paths_clear(paths, count);
        return r;
}

static int start_private(struct finder *finder, struct hr_connection **ret_connection) {
        CLEANUP(freep) char *program = NULL;
        char *name = NULL;
        pid_t pid;
        int fd = -1, r;

        r = helper_start(finder->options->program, finder->given_url, finder->options->arguments,
                         &fd, &pid, &program);
        if (r < 0)
                return finder_fail(finder, r, "cannot start %s: %s",
                                   program ? program : "headraced", strerror(-r));
        if (asprintf(&name, "private daemon %s (pid %d)", program, (int)pid) < 0)
                name = NULL;
        r = greet(finder, fd, name, pid, HELLO_PRIVATE_MS, ret_connection);
        if (r || !finder->url)
                return r;
        if (take_source(*ret_connection, finder->url) == 0)
                return 0;
        /* It may name its source only when it has looked at it. */
        free((*ret_connection)->source);
        free((*ret_connection)->prefix);
        (*ret_connection)->source = strdup(finder->url);
        (*ret_connection)->prefix = strdup("");
        return 0;
}

static int find(struct finder *finder, struct hr_connection **ret_connection) {
        const struct hr_options *options = finder->options;
        int r = -ENOENT;

        if (options->daemon != HR_DAEMON_PRIVATE)
                r = find_running(finder, ret_connection);
        if (r == 0 || options->daemon == HR_DAEMON_RUNNING || options->socket)
                return r;
        return start_private(finder, ret_connection);
}

/* Gives the error away, or frees it. */
static int finish(struct finder *finder, int r, char **ret_error) {
        if (r && ret_error)
                *ret_error = steal_pointer(&finder->error);
        free(finder->error);
        return r;
}

static const struct hr_options *options_or_default(const struct hr_options *options) {
        static const struct hr_options defaults = HR_OPTIONS;

        return options ? options : &defaults;
}

static int check_options(struct finder *finder) {
        if (finder->options->size_bytes == sizeof(*finder->options) &&
            (unsigned)finder->options->daemon <= HR_DAEMON_PRIVATE)
                return 0;
        return finder_fail(finder, -EINVAL, "not options that this library knows");
}

/* A list of sources with names is for a daemon of its own, which has these and no others. */
static int open_list(struct finder *finder, const struct source_spec *spec,
                     struct hr_connection **ret_connection) {
        struct source_names *names = NULL;
        int r;

        if (finder->options->daemon == HR_DAEMON_RUNNING || finder->options->socket)
                return finder_fail(finder, -EINVAL,
                                   "%s: a list of sources is not for a daemon "
                                   "that runs",
                                   finder->given_url);
        r = source_names_new(spec, &names);
        if (r < 0)
                return finder_fail(finder, r, "%s: %s", finder->given_url,
                                   r == -EINVAL ? "not a list of URLs or paths" : strerror(-r));
        r = start_private(finder, ret_connection);
        if (r == 0)
                (*ret_connection)->names = steal_pointer(&names);
        source_names_free(names);
        return r;
}

static int open_url(struct finder *finder, const char *url, struct hr_connection **ret_connection) {
        CLEANUP(freep) char *normal = NULL;
        int r = source_url_normalize(url, &normal);

        if (r < 0)
                return finder_fail(finder, r, "%s: %s", url,
                                   r == -EINVAL ? "not a URL or a path" : strerror(-r));
        finder->url = normal;
        r = find(finder, ret_connection);
        finder->url = NULL;
        return r;
}

static int open_spec(struct finder *finder, struct hr_connection **ret_connection) {
        CLEANUP(source_spec_deinit) struct source_spec spec = { 0 };
        int r = source_spec_parse(finder->given_url, &spec);

        if (r < 0)
                return finder_fail(finder, r, "%s: %s", finder->given_url,
                                   r == -EINVAL ? "a list of sources is name:url,name2:url2"
                                                : strerror(-r));
        return spec.items[0].name ? open_list(finder, &spec, ret_connection)
                                  : open_url(finder, spec.items[0].url, ret_connection);
}

int hr_open(const char *url, const struct hr_options *options,
            struct hr_connection **ret_connection, char **ret_error) {
        struct finder finder = { .options = options_or_default(options) };
        int r = check_options(&finder);

        finder.given_url = url;
        if (r == 0)
                r = open_spec(&finder, ret_connection);
        return finish(&finder, r, ret_error);
}

int hr_connect(const struct hr_options *options, struct hr_connection **ret_connection,
               char **ret_error) {
        struct finder finder = { .options = options_or_default(options) };
        int r = check_options(&finder);

        if (r == 0)
                r = find_running(&finder, ret_connection);
        return finish(&finder, r, ret_error);
}

int hr_connect_fd(int take_fd, const struct hr_options *options,
                  struct hr_connection **ret_connection, char **ret_error) {
        struct finder finder = { .options = options_or_default(options) };
        int r = check_options(&finder);

        if (r == 0)
                r = greet(&finder, take_fd, strdup("daemon"), 0, -1, ret_connection);
        else
                close(take_fd);
        return finish(&finder, r, ret_error);
}
