/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/aws_profile.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/base.h"

/* ---- Parsing ---- */

struct span {
        const char *at;
        size_t size;
};

static struct span trim(struct span span) {
        while (span.size > 0 && isspace((unsigned char)span.at[0])) {
                span.at++;
                span.size--;
        }
        while (span.size > 0 && isspace((unsigned char)span.at[span.size - 1]))
                span.size--;
        return span;
}

/* A comment behind a value begins with a space. */
static struct span without_comment(struct span span) {
        for (size_t i = 1; i < span.size; i++) {
                if ((span.at[i] == '#' || span.at[i] == ';') &&
                    isspace((unsigned char)span.at[i - 1])) {
                        span.size = i;
                        break;
                }
        }
        return trim(span);
}

static char *copy(struct span span) {
        return strndup(span.at, span.size);
}

static bool starts_with(struct span span, const char *word) {
        size_t size = strlen(word);

        return span.size > size && memcmp(span.at, word, size) == 0 &&
               isspace((unsigned char)span.at[size]);
}

/*
 * The section's name in one form: "profile x". In the config file only the default profile may
 * stand without that word; sections of other kinds keep their own.
 */
static char *section_name(struct span name, bool is_credentials) {
        static const char *const kinds[] = { "profile", "sso-session", "services" };
        char *section;

        name = trim(name);
        for (size_t i = 0; !is_credentials && i < ARRAY_SIZE(kinds); i++) {
                struct span rest = { name.at + strlen(kinds[i]), name.size - strlen(kinds[i]) };

                if (!starts_with(name, kinds[i]))
                        continue;
                rest = trim(rest);
                return asprintf(&section, "%s %.*s", kinds[i], (int)rest.size, rest.at) < 0
                               ? NULL
                               : section;
        }
        return asprintf(&section, "profile %.*s", (int)name.size, name.at) < 0 ? NULL : section;
}

static void setting_deinit(struct aws_setting *setting) {
        free(setting->section);
        free(setting->key);
        if (setting->value)
                explicit_bzero(setting->value, strlen(setting->value));
        free(setting->value);
}

static int add_setting(struct aws_profiles *profiles, const char *section, struct span key,
                       struct span value) {
        struct aws_setting *setting;

        if (profiles->count == profiles->space) {
                size_t space = profiles->space ? 2 * profiles->space : 32;
                struct aws_setting *longer = reallocarray(profiles->settings, space,
                                                          sizeof(*longer));

                if (!longer)
                        return -ENOMEM;
                profiles->settings = longer;
                profiles->space = space;
        }
        setting = &profiles->settings[profiles->count];
        *setting = (struct aws_setting){ strdup(section), copy(key), copy(value) };
        if (!setting->section || !setting->key || !setting->value) {
                setting_deinit(setting);
                return -ENOMEM;
        }
        for (char *c = setting->key; *c; c++)
                *c = (char)tolower((unsigned char)*c);
        profiles->count++;
        return 0;
}

/* The section itself counts, even when it is empty: a setting without a name. */
static int begin_section(struct aws_profiles *profiles, struct span line, bool is_credentials,
                         char **section) {
        const char *end = memchr(line.at, ']', line.size);

        free(*section);
        *section = NULL;
        if (!end)
                return 0;
        *section = section_name((struct span){ line.at + 1, (size_t)(end - line.at) - 1 },
                                is_credentials);
        if (!*section)
                return -ENOMEM;
        return add_setting(profiles, *section, (struct span){ "", 0 }, (struct span){ "", 0 });
}

/*
 * An indented line belongs to the setting above it, if that has no value of its own. nests: there is
 * such a setting.
 */
static int parse_line(struct aws_profiles *profiles, struct span line, bool is_credentials,
                      char **section, bool *nests) {
        bool is_indented = line.size > 0 && isspace((unsigned char)line.at[0]);
        struct span trimmed = trim(line);
        const char *equals;
        struct span key, value;

        if (trimmed.size == 0 || trimmed.at[0] == '#' || trimmed.at[0] == ';')
                return 0;
        if (trimmed.at[0] == '[' && !(is_indented && *nests)) {
                *nests = false;
                return begin_section(profiles, trimmed, is_credentials, section);
        }
        equals = memchr(trimmed.at, '=', trimmed.size);
        if ((is_indented && *nests) || !equals || !*section)
                return 0;
        key = trim((struct span){ trimmed.at, (size_t)(equals - trimmed.at) });
        value = without_comment(trim(
                (struct span){ equals + 1, trimmed.size - (size_t)(equals + 1 - trimmed.at) }));
        *nests = value.size == 0;
        return add_setting(profiles, *section, key, value);
}

int aws_profiles_parse(struct aws_profiles *profiles, const char *text, size_t size,
                       bool is_credentials) {
        CLEANUP(freep) char *section = NULL;
        const char *end = text + size;
        bool nests = false;
        int r = 0;

        while (text < end && r == 0) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                size_t line = newline ? (size_t)(newline - text) : (size_t)(end - text);

                r = parse_line(profiles, (struct span){ text, line }, is_credentials, &section,
                               &nests);
                text += line + 1;
        }
        return r;
}

/* ---- Files ---- */

static int load(struct aws_profiles *profiles, const char *path, bool is_credentials) {
        char *text;
        size_t size;
        int r = path ? secret_file_read(path, &text, &size) : -ENOENT;

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = aws_profiles_parse(profiles, text, size, is_credentials);
        explicit_bzero(text, size);
        free(text);
        return r;
}

/* NULL: no home, or no memory. */
static char *path_of(const char *variable, const char *below_home) {
        const char *path = getenv(variable), *home = getenv("HOME");
        char *joined;

        if (path && *path)
                return strdup(path);
        return home && asprintf(&joined, "%s/%s", home, below_home) >= 0 ? joined : NULL;
}

int aws_profiles_load(struct aws_profiles *profiles) {
        int r = 0;

        *profiles = (struct aws_profiles){ 0 };
        profiles->paths[0] = path_of("AWS_CONFIG_FILE", ".aws/config");
        profiles->paths[1] = path_of("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
        for (size_t i = 0; i < 2 && r == 0; i++) {
                profiles->stamps[i] = file_stamp_of(profiles->paths[i]);
                r = load(profiles, profiles->paths[i], i == 1);
        }
        if (r < 0)
                aws_profiles_deinit(profiles);
        return r;
}

void aws_profiles_deinit(struct aws_profiles *profiles) {
        for (size_t i = 0; i < profiles->count; i++)
                setting_deinit(&profiles->settings[i]);
        free(profiles->settings);
        free(profiles->paths[0]);
        free(profiles->paths[1]);
        *profiles = (struct aws_profiles){ 0 };
}

bool aws_profiles_have_changed(const struct aws_profiles *profiles) {
        for (size_t i = 0; i < 2; i++) {
                if (!file_stamp_is(&profiles->stamps[i], profiles->paths[i]))
                        return true;
        }
        return false;
}

/* ---- Looking up ---- */

const char *aws_profile_name(void) {
        const char *name = getenv("AWS_PROFILE");

        if (!name || !*name)
                name = getenv("AWS_DEFAULT_PROFILE");
        return name && *name ? name : "default";
}

static bool is_section(const char *section, const char *kind, const char *name) {
        size_t size = strlen(kind);

        return strncmp(section, kind, size) == 0 && section[size] == ' ' &&
               strcmp(section + size + 1, name) == 0;
}

const char *aws_profiles_get(const struct aws_profiles *profiles, const char *kind,
                             const char *name, const char *key) {
        for (size_t i = profiles->count; i-- > 0;) {
                const struct aws_setting *setting = &profiles->settings[i];

                if (strcmp(setting->key, key) == 0 && is_section(setting->section, kind, name))
                        return setting->value;
        }
        return NULL;
}

bool aws_profiles_have(const struct aws_profiles *profiles, const char *kind, const char *name) {
        return aws_profiles_get(profiles, kind, name, "") != NULL;
}
