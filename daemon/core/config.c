/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where values come from. What the table says about a key decides everything else; here is only the
 * order, and the sentences about what is wrong. jansson does not remember where in a file a value
 * stood, so the line is searched when it is needed.
 */
#include "daemon/core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/core/config_key.h"
#include "daemon/core/config_value.h"

#define SYSTEM_FILE "/etc/headrace/headrace.json"
#define FILE_MAX_BYTES (1u << 20)
#define SHOWN_MAX_BYTES 100 /* of a wrong value, in an error */

/*
 * Where something was said, for errors: a file with its text, or the name of an option or a
 * variable.
 */
struct origin {
        const char *name;
        const char *text; /* NULL: no lines */
};

static void globs_free(char **globs) {
        for (size_t i = 0; globs && globs[i]; i++)
                free(globs[i]);
        free(globs);
}

void config_source_deinit(struct config_source *source) {
        free(source->url);
        free(source->name);
        globs_free(source->filter.include);
        globs_free(source->filter.exclude);
        free(source->filter.since);
        free(source->access.endpoint);
        free(source->access.region);
        free(source->access.profile);
        free(source->access.bearer_file);
        free(source->access.client_certificate);
        free(source->access.client_key);
        *source = (struct config_source){ 0 };
}

static int globs_dup(char *const *globs, char ***ret_globs) {
        size_t count = 0;

        while (globs && globs[count])
                count++;
        if (count == 0)
                return 0;
        *ret_globs = calloc(count + 1, sizeof(**ret_globs));
        if (!*ret_globs)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                if (!((*ret_globs)[i] = strdup(globs[i])))
                        return -ENOMEM;
        }
        return 0;
}

int config_filter_dup(const struct config_filter *filter, struct config_filter *ret_filter) {
        struct config_source copy = { 0 };
        int r = globs_dup(filter->include, &copy.filter.include);

        if (r == 0)
                r = globs_dup(filter->exclude, &copy.filter.exclude);
        if (r == 0 && filter->since && !(copy.filter.since = strdup(filter->since)))
                r = -ENOMEM;
        if (r < 0)
                config_source_deinit(&copy);
        else
                *ret_filter = copy.filter;
        return r;
}

void config_init(struct config *config) {
        memset(config, 0, sizeof(*config));
        for (size_t i = 0; i < config_key_count; i++)
                config_value_reset(&config_keys[i], config);
}

void config_deinit(struct config *config) {
        for (size_t i = 0; i < config_key_count; i++)
                config_value_reset(&config_keys[i], config);
}

__attribute__((format(printf, 3, 4))) static int fail(char **ret_error, int error,
                                                      const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(ret_error, format, arguments) < 0)
                *ret_error = NULL;
        va_end(arguments);
        return error;
}

/* The line on which the member begins, 0 if it cannot be told. */
static unsigned line_of(const char *text, const char *key) {
        CLEANUP(freep) char *quoted = NULL;
        unsigned line = 1;

        if (!text || asprintf(&quoted, "\"%s\"", key) < 0)
                return 0;
        for (const char *at = text; *at; at++) {
                line += *at == '\n';
                if (!strncmp(at, quoted, strlen(quoted)) &&
                    at[strlen(quoted) + strspn(at + strlen(quoted), " \t\r\n")] == ':')
                        return line;
        }
        return 0;
}

/* "FILE:LINE: " or "--set: ", the caller's to free. */
static char *place_of(const struct origin *origin, const char *key) {
        unsigned line = line_of(origin->text, key);
        char *place;
        int r = line ? asprintf(&place, "%s:%u", origin->name, line)
                     : asprintf(&place, "%s", origin->name);

        return r < 0 ? NULL : place;
}

static int fail_unknown(const struct origin *origin, const char *name, char **ret_error) {
        CLEANUP(freep) char *place = place_of(origin, name);

        return fail(ret_error, -EINVAL, "%s: unknown key '%.*s'; did you mean '%s'?",
                    place ? place : origin->name, SHOWN_MAX_BYTES, name,
                    config_key_nearest(name)->name);
}

static int fail_value(const struct origin *origin, const struct config_key *key,
                      const json_t *culprit, char **ret_error) {
        CLEANUP(freep) char *place = place_of(origin, key->name);
        CLEANUP(freep) char *value = json_dumps(culprit, JSON_ENCODE_ANY | JSON_COMPACT);
        CLEANUP(freep) char *allowed = config_key_allowed(key);

        if (!place || !value || !allowed)
                return fail(ret_error, -EINVAL, "%s: %s has a wrong value", origin->name,
                            key->name);
        return fail(ret_error, -EINVAL, "%s: %s is %.*s%s, but must be %s", place, key->name,
                    SHOWN_MAX_BYTES, value, strlen(value) > SHOWN_MAX_BYTES ? "..." : "", allowed);
}

static int store(struct config *config, const struct origin *origin, const struct config_key *key,
                 const json_t *value, char **ret_error) {
        const json_t *culprit = NULL;
        int r = config_value_store(key, value, config, &culprit);

        if (r == -ENOMEM)
                return fail(ret_error, r, "%s: no memory", origin->name);
        return r < 0 ? fail_value(origin, key, culprit, ret_error) : 0;
}

static int store_text(struct config *config, const struct origin *origin,
                      const struct config_key *key, const char *text, char **ret_error) {
        CLEANUP(json_decrefp) json_t *value = config_value_from_text(key, text);

        if (!value)
                return fail(ret_error, -EINVAL, "%s: the value of %s is not UTF-8", origin->name,
                            key->name);
        return store(config, origin, key, value, ret_error);
}

static int load_text(struct config *config, const char *path, const char *text, size_t size,
                     char **ret_error) {
        const struct origin origin = { path, text };
        json_error_t error;
        CLEANUP(json_decrefp)
        json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
        const char *name;
        json_t *value;

        if (!root)
                return fail(ret_error, -EINVAL, "%s:%d: %s", path, error.line, error.text);
        if (!json_is_object(root))
                return fail(ret_error, -EINVAL,
                            "%s:1: the file must hold one JSON object: { \"key\": value, ... }",
                            path);
        json_object_foreach(root, name, value) {
                const struct config_key *key = config_key_find(name);
                int r = key ? store(config, &origin, key, value, ret_error)
                            : fail_unknown(&origin, name, ret_error);

                if (r < 0)
                        return r;
        }
        return 0;
}

/*
 * The file's bytes with a NUL behind them, the caller's to free. -EFBIG, -EISDIR, -EINVAL: not a
 * plain file.
 */
static int read_file(const char *path, char **ret_text, size_t *ret_size) {
        /* a fifo must not hold us up */
        CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(freep) char *text = NULL;
        size_t size = 0;
        struct stat status;
        ssize_t n;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
        text = malloc(FILE_MAX_BYTES + 1);
        if (!text)
                return -ENOMEM;
        while ((n = read(fd, text + size, FILE_MAX_BYTES + 1 - size)) > 0 &&
               size + (size_t)n <= FILE_MAX_BYTES)
                size += (size_t)n;
        if (n != 0)
                return n < 0 ? -errno : -EFBIG;
        text[size] = '\0';
        *ret_text = steal_pointer(&text);
        *ret_size = size;
        return 0;
}

int config_load_file(struct config *config, const char *path, char **ret_error) {
        CLEANUP(freep) char *text = NULL;
        size_t size = 0;
        int r = read_file(path, &text, &size);

        if (r == -EFBIG)
                return fail(ret_error, r, "%s: larger than 1 MiB; a configuration file is not",
                            path);
        if (r == -EINVAL)
                return fail(ret_error, r, "%s: not a plain file", path);
        if (r < 0)
                return fail(ret_error, r, "%s: cannot be read: %s", path, strerror(-r));
        return load_text(config, path, text, size, ret_error);
}

static int load_file_if_there(struct config *config, const char *path, char **ret_error) {
        char *error = NULL;
        int r = config_load_file(config, path, &error);

        if (r == -ENOENT || r == -ENOTDIR) {
                free(error);
                return 0;
        }
        if (r < 0)
                *ret_error = error;
        return r;
}

int config_load_files(struct config *config, char **ret_error) {
        const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
        CLEANUP(freep) char *path = NULL;
        int r = load_file_if_there(config, SYSTEM_FILE, ret_error);

        if (r < 0)
                return r;
        if (xdg && xdg[0] == '/') /* the standard: a relative one is to be ignored */
                r = asprintf(&path, "%s/headrace/headrace.json", xdg);
        else if (home && home[0] == '/')
                r = asprintf(&path, "%s/.config/headrace/headrace.json", home);
        else
                return 0;
        if (r < 0) {
                path = NULL;
                return fail(ret_error, -ENOMEM, "no memory");
        }
        return load_file_if_there(config, path, ret_error);
}

/* HEADRACE_RING_SIZE for ring.size. */
static void variable_name(const struct config_key *key, char *ret_name, size_t size) {
        snprintf(ret_name, size, "HEADRACE_%s", key->name);
        for (char *at = ret_name; *at; at++) {
                if (*at == '.')
                        *at = '_';
                else if (*at >= 'a' && *at <= 'z')
                        *at = (char)(*at - 'a' + 'A');
        }
}

int config_load_environment(struct config *config, char **ret_error) {
        for (size_t i = 0; i < config_key_count; i++) {
                char name[64];
                const struct origin origin = { name, NULL };
                const char *value;
                int r;

                variable_name(&config_keys[i], name, sizeof(name));
                value = getenv(name);
                if (!value)
                        continue;
                r = store_text(config, &origin, &config_keys[i], value, ret_error);
                if (r < 0)
                        return r;
        }
        return 0;
}

int config_set(struct config *config, const char *where, const char *key, const char *value,
               char **ret_error) {
        const struct origin origin = { where, NULL };
        const struct config_key *known = config_key_find(key);

        return known ? store_text(config, &origin, known, value, ret_error)
                     : fail_unknown(&origin, key, ret_error);
}

int config_set_assignment(struct config *config, const char *where, const char *assignment,
                          char **ret_error) {
        const char *equals = strchr(assignment, '=');
        CLEANUP(freep) char *key = NULL;

        if (!equals)
                return fail(ret_error, -EINVAL, "%s: '%.*s' is not KEY=VALUE", where,
                            SHOWN_MAX_BYTES, assignment);
        key = strndup(assignment, (size_t)(equals - assignment));
        if (!key)
                return fail(ret_error, -ENOMEM, "%s: no memory", where);
        return config_set(config, where, key, equals + 1, ret_error);
}
