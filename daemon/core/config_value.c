/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reader for each type. A number may also be a string, which is what options and variables are;
 * so they share the readers. A field changes only when the whole value is right.
 */
#include "daemon/core/config_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "common/base.h"
#include "common/path_glob.h"
#include "common/since.h"

#define SOURCES_MAX 4096
#define UIDS_MAX 4096
#define GLOBS_MAX 1024
#define POLL_MIN_S 0.05
#define POLL_MAX_S 86400.0
#define PRICE_MAX 1000.0

static void *field_of(const struct config_key *key, struct config *config) {
        return (char *)config + key->offset;
}

static size_t *count_of(const struct config_key *key, struct config *config) {
        return (size_t *)(void *)((char *)config + key->count_offset);
}

/* Digits, and for sizes one unit behind them. */
static int number_from_text(const char *text, bool with_unit, uint64_t *ret_number) {
        static const char units[] = "KMGT";
        uint64_t number;
        char *end;

        if (text[0] < '0' || text[0] > '9')
                return -EINVAL;
        errno = 0;
        number = strtoull(text, &end, 10);
        if (errno)
                return -EINVAL;
        if (with_unit && *end) {
                const char *unit = strchr(units,
                                          *end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);

                if (!unit || __builtin_mul_overflow(
                                     number, UINT64_C(1) << (10 * (unit - units + 1)), &number))
                        return -EINVAL;
                end++;
        }
        if (*end)
                return -EINVAL;
        *ret_number = number;
        return 0;
}

static int number_from_json(const json_t *value, bool with_unit, uint64_t *ret_number) {
        if (json_is_string(value))
                return number_from_text(json_string_value(value), with_unit, ret_number);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return -EINVAL;
        *ret_number = (uint64_t)json_integer_value(value);
        return 0;
}

static int store_size(const struct config_key *key, const json_t *value, void *field) {
        uint64_t number;
        int r = number_from_json(value, true, &number);

        if (r < 0 || number < key->min || number > key->max)
                return -EINVAL;
        *(uint64_t *)field = number;
        return 0;
}

static int store_count(const struct config_key *key, const json_t *value, void *field) {
        uint64_t number;
        int r = number_from_json(value, false, &number);

        if (r < 0 || number < key->min || number > key->max)
                return -EINVAL;
        *(unsigned *)field = (unsigned)number;
        return 0;
}

static int store_word(const struct config_key *key, const json_t *value, void *field) {
        for (unsigned i = 0; json_is_string(value) && key->words[i]; i++) {
                if (!strcmp(key->words[i], json_string_value(value))) {
                        *(unsigned *)field = i;
                        return 0;
                }
        }
        return -EINVAL;
}

static int decimal_from_text(const char *text, double *ret_number) {
        size_t digits = strspn(text, "0123456789.");
        char *end;

        /* strtod() also takes hexadecimal numbers, exponents, "inf" and leading blanks. */
        if (digits == 0 || text[digits])
                return -EINVAL;
        *ret_number = strtod(text, &end);
        return *end ? -EINVAL : 0;
}

static int decimal_from_json(const json_t *value, double *ret_number) {
        if (!json_is_number(value))
                return json_is_string(value)
                               ? decimal_from_text(json_string_value(value), ret_number)
                               : -EINVAL;
        *ret_number = json_number_value(value);
        return 0;
}

static int store_poll(const struct config_key *key, const json_t *value, int64_t *field) {
        static const int64_t meant[] = { CONFIG_POLL_AUTO, CONFIG_POLL_ON_DEMAND,
                                         CONFIG_POLL_NEVER };
        double seconds;
        unsigned word = 0;

        if (store_word(key, value, &word) == 0 && word < ARRAY_SIZE(meant)) {
                *field = meant[word];
                return 0;
        }
        if (decimal_from_json(value, &seconds) < 0)
                return -EINVAL;
        if (!(seconds >= POLL_MIN_S && seconds <= POLL_MAX_S))
                return -EINVAL;
        *field = (int64_t)llround(seconds * 1e9);
        return 0;
}

/* true, false, or a directory; options and variables have them as text. */
static int store_place(const json_t *value, char **field) {
        const char *text = json_is_true(value)    ? "true"
                           : json_is_false(value) ? "false"
                                                  : json_string_value(value);
        bool is_default = text && !strcmp(text, "true");
        char *place = NULL;

        if (!text || (!is_default && strcmp(text, "false") != 0 && text[0] != '/'))
                return -EINVAL;
        if (!is_default && !(place = strdup(text[0] == '/' ? text : "")))
                return -ENOMEM;
        free(*field);
        *field = place;
        return 0;
}

/* Dollars for 1000 requests, kept as 10^-9 dollars for one. */
static int store_price(const struct config_key *key, const json_t *value, uint64_t *field) {
        double dollars;
        unsigned word = 0;

        if (store_word(key, value, &word) == 0) {
                *field = CONFIG_PRICE_AUTO;
                return 0;
        }
        if (decimal_from_json(value, &dollars) < 0 || !(dollars >= 0 && dollars <= PRICE_MAX))
                return -EINVAL;
        *field = (uint64_t)llround(dollars * 1e6);
        return 0;
}

static int store_path(const json_t *value, char **field) {
        char *path = NULL;

        if (!json_is_string(value) ||
            json_string_length(value) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
                return -EINVAL;
        if (json_string_length(value) > 0 && !(path = strdup(json_string_value(value))))
                return -ENOMEM;
        free(*field);
        *field = path;
        return 0;
}

static void free_sources(struct config_source *sources, size_t count) {
        for (size_t i = 0; i < count; i++)
                config_source_deinit(&sources[i]);
        free(sources);
}

static int read_text(const json_t *value, char **ret_text) {
        if (!value)
                return 0;
        if (!json_is_string(value) || json_string_length(value) == 0)
                return -EINVAL;
        *ret_text = strdup(json_string_value(value));
        return *ret_text ? 0 : -ENOMEM;
}

static int read_glob(const json_t *value, char **ret_text) {
        struct path_glob *glob = NULL;
        int r = json_is_string(value) ? path_glob_new(json_string_value(value), &glob) : -EINVAL;

        path_glob_free(glob);
        return r < 0 ? r : read_text(value, ret_text);
}

/* One glob, or a list of them. */
static int read_globs(const json_t *value, char ***ret_globs) {
        size_t count = json_is_array(value) ? json_array_size(value) : 1;
        int r = 0;

        if (!value)
                return 0;
        if (count > GLOBS_MAX)
                return -EINVAL;
        *ret_globs = calloc(count + 1, sizeof(**ret_globs));
        if (!*ret_globs)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < count; i++)
                r = read_glob(json_is_array(value) ? json_array_get(value, i) : value,
                              &(*ret_globs)[i]);
        return r;
}

static int read_since(const json_t *value, char **ret_since) {
        int r = read_text(value, ret_since);
        int64_t since_ns;

        return r == 0 && *ret_since ? since_parse(*ret_since, 0, &since_ns) : r;
}

static int read_bool(const json_t *value, bool *ret_bool) {
        if (value && !json_is_boolean(value))
                return -EINVAL;
        *ret_bool = json_is_true(value);
        return 0;
}

static int read_filter(const json_t *const *found, struct config_filter *filter) {
        int r = read_globs(found[0], &filter->include);

        if (r == 0)
                r = read_globs(found[1], &filter->exclude);
        return r == 0 ? read_since(found[2], &filter->since) : r;
}

/* A directory to be relative to is none of a daemon's. */
static int read_file_path(const json_t *value, char **ret_path) {
        const char *path = json_string_value(value);

        return value && (!path || path[0] != '/') ? -EINVAL : read_text(value, ret_path);
}

static int read_access(const json_t *const *found, struct config_access *access) {
        int r = read_text(found[0], &access->endpoint);

        if (r == 0)
                r = read_text(found[1], &access->region);
        if (r == 0)
                r = read_text(found[2], &access->profile);
        if (r == 0)
                r = read_bool(found[3], &access->anonymous);
        if (r == 0)
                r = read_bool(found[4], &access->requester_pays);
        if (r == 0)
                r = read_file_path(found[5], &access->bearer_file);
        if (r == 0)
                r = read_file_path(found[6], &access->client_certificate);
        return r == 0 ? read_file_path(found[7], &access->client_key) : r;
}

static int read_source(const json_t *value, struct config_source *source) {
        static const char *const members[] = {
                "url",       "name",           "include",     "exclude",
                "since",     "endpoint",       "region",      "profile",
                "anonymous", "requester_pays", "bearer_file", "client_certificate",
                "client_key"
        };
        const json_t *found[ARRAY_SIZE(members)] = { value };
        size_t count = 0;
        int r;

        for (size_t i = 0; json_is_object(value) && i < ARRAY_SIZE(members); i++) {
                found[i] = json_object_get(value, members[i]);
                count += found[i] != NULL;
        }
        if (!found[0] || (json_is_object(value) && json_object_size(value) != count))
                return -EINVAL;
        r = read_text(found[0], &source->url);
        if (r == 0)
                r = read_text(found[1], &source->name);
        if (r == 0)
                r = read_filter(&found[2], &source->filter);
        return r == 0 ? read_access(&found[5], &source->access) : r;
}

int config_source_from_json(const json_t *value, struct config_source *ret_source) {
        struct config_source source = { 0 };
        int r = read_source(value, &source);

        if (r < 0)
                config_source_deinit(&source);
        else
                *ret_source = source;
        return r;
}

static int store_sources(const json_t *value, struct config *config, const json_t **ret_culprit) {
        size_t count = json_array_size(value);
        struct config_source *sources;

        if (!json_is_array(value) || count > SOURCES_MAX)
                return -EINVAL;
        sources = calloc(count + 1, sizeof(*sources));
        if (!sources)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                int r = config_source_from_json(json_array_get(value, i), &sources[i]);

                if (r < 0) {
                        *ret_culprit = json_array_get(value, i);
                        free_sources(sources, count);
                        return r;
                }
        }
        free_sources(config->sources, config->source_count);
        config->sources = sources;
        config->source_count = count;
        return 0;
}

static int store_uids(const struct config_key *key, const json_t *value, struct config *config,
                      const json_t **ret_culprit) {
        uid_t **field = field_of(key, config);
        size_t count = json_array_size(value);
        CLEANUP(freep) uid_t *uids = NULL;

        if (!json_is_array(value) || count > UIDS_MAX)
                return -EINVAL;
        uids = calloc(count + 1, sizeof(*uids));
        if (!uids)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                uint64_t number;
                int r = number_from_json(json_array_get(value, i), false, &number);

                if (r < 0 || number >= (uid_t)-1) {
                        *ret_culprit = json_array_get(value, i);
                        return -EINVAL;
                }
                uids[i] = (uid_t)number;
        }
        free(*field);
        *field = steal_pointer(&uids);
        *count_of(key, config) = count;
        return 0;
}

static void free_texts(char **texts) {
        for (size_t i = 0; texts && texts[i]; i++)
                free(texts[i]);
        free(texts);
}

static int store_urls(const json_t *value, char ***field, const json_t **ret_culprit) {
        size_t count = json_array_size(value);
        char **texts;
        int r = 0;

        if (!json_is_array(value) || count > SOURCES_MAX)
                return -EINVAL;
        texts = calloc(count + 1, sizeof(*texts));
        if (!texts)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < count; i++) {
                *ret_culprit = json_array_get(value, i);
                r = read_text(*ret_culprit, &texts[i]);
        }
        if (r == 0) {
                free_texts(*field);
                *field = count ? steal_pointer(&texts) : NULL;
        }
        free_texts(texts);
        return r;
}

int config_value_store(const struct config_key *key, const json_t *value, struct config *config,
                       const json_t **ret_culprit) {
        void *field = field_of(key, config);

        *ret_culprit = value;
        switch (key->type) {
        case CONFIG_TYPE_SOURCES:
                return store_sources(value, config, ret_culprit);
        case CONFIG_TYPE_UIDS:
                return store_uids(key, value, config, ret_culprit);
        case CONFIG_TYPE_URLS:
                return store_urls(value, field, ret_culprit);
        case CONFIG_TYPE_PATH:
                return store_path(value, field);
        case CONFIG_TYPE_SIZE:
                return store_size(key, value, field);
        case CONFIG_TYPE_COUNT:
                return store_count(key, value, field);
        case CONFIG_TYPE_WORD:
                return store_word(key, value, field);
        case CONFIG_TYPE_POLL:
                return store_poll(key, value, field);
        case CONFIG_TYPE_PLACE:
                return store_place(value, field);
        case CONFIG_TYPE_PRICE:
                return store_price(key, value, field);
        }
        return -EINVAL;
}

void config_value_reset(const struct config_key *key, struct config *config) {
        void *field = field_of(key, config);

        switch (key->type) {
        case CONFIG_TYPE_SOURCES:
                free_sources(config->sources, config->source_count);
                config->sources = NULL;
                config->source_count = 0;
                break;
        case CONFIG_TYPE_UIDS:
                free(*(uid_t **)field);
                *(uid_t **)field = NULL;
                *count_of(key, config) = 0;
                break;
        case CONFIG_TYPE_URLS:
                free_texts(*(char ***)field);
                *(char ***)field = NULL;
                break;
        case CONFIG_TYPE_PATH:
        case CONFIG_TYPE_PLACE:
                free(*(char **)field);
                *(char **)field = NULL;
                break;
        case CONFIG_TYPE_SIZE:
                *(uint64_t *)field = key->initial;
                break;
        case CONFIG_TYPE_COUNT:
        case CONFIG_TYPE_WORD:
                *(unsigned *)field = (unsigned)key->initial;
                break;
        case CONFIG_TYPE_POLL:
                *(int64_t *)field = (int64_t)key->initial;
                break;
        case CONFIG_TYPE_PRICE:
                *(uint64_t *)field = key->initial;
                break;
        }
}

json_t *config_value_from_text(const struct config_key *key, const char *text) {
        json_t *value;

        if (key->type != CONFIG_TYPE_SOURCES && key->type != CONFIG_TYPE_UIDS &&
            key->type != CONFIG_TYPE_URLS)
                return json_string(text);
        if (text[strspn(text, " \t\n")] == '[' &&
            (value = json_loads(text, JSON_REJECT_DUPLICATES, NULL)))
                return value;
        return json_pack(text[0] ? "[s]" : "[]", text);
}
