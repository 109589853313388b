/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/path_glob.h"
#include "common/since.h"

struct rule {
        struct path_glob *glob;
        char *text; /* "exclude old" */
};

struct filter {
        struct rule *include, *exclude;
        size_t include_count, exclude_count;
        int64_t since_ns; /* INT64_MIN: any time */
        char *since;      /* "since 7d" */
};

static size_t count_of(char *const *globs) {
        size_t count = 0;

        while (globs && globs[count])
                count++;
        return count;
}

static void rules_free(struct rule *rules, size_t count) {
        for (size_t i = 0; rules && i < count; i++) {
                path_glob_free(rules[i].glob);
                free(rules[i].text);
        }
        free(rules);
}

static int rules_new(const char *word, char *const *globs, struct rule **ret_rules,
                     size_t *ret_count) {
        size_t count = count_of(globs);
        struct rule *rules = calloc(count + 1, sizeof(*rules));
        int r = rules ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < count; i++) {
                r = path_glob_new(globs[i], &rules[i].glob);
                if (r == 0 && asprintf(&rules[i].text, "%s %s", word, globs[i]) < 0) {
                        rules[i].text = NULL;
                        r = -ENOMEM;
                }
        }
        if (r < 0) {
                rules_free(rules, count);
                return r;
        }
        *ret_rules = rules;
        *ret_count = count;
        return 0;
}

static int set_since(struct filter *filter, const char *since, int64_t now_ns) {
        int r = since_parse(since, now_ns, &filter->since_ns);

        if (r == 0 && asprintf(&filter->since, "since %s", since) < 0) {
                filter->since = NULL;
                r = -ENOMEM;
        }
        return r;
}

int filter_new(const struct config_filter *options, int64_t now_ns, struct filter **ret_filter) {
        struct filter *filter;
        int r;

        if (!options ||
            (!count_of(options->include) && !count_of(options->exclude) && !options->since)) {
                *ret_filter = NULL;
                return 0;
        }
        filter = calloc(1, sizeof(*filter));
        if (!filter)
                return -ENOMEM;
        filter->since_ns = INT64_MIN;
        r = rules_new("include", options->include, &filter->include, &filter->include_count);
        if (r == 0)
                r = rules_new("exclude", options->exclude, &filter->exclude,
                              &filter->exclude_count);
        if (r == 0 && options->since)
                r = set_since(filter, options->since, now_ns);
        if (r < 0) {
                filter_free(filter);
                return r;
        }
        *ret_filter = filter;
        return 0;
}

struct filter *filter_free(struct filter *filter) {
        if (!filter)
                return NULL;
        rules_free(filter->include, filter->include_count);
        rules_free(filter->exclude, filter->exclude_count);
        free(filter->since);
        free(filter);
        return NULL;
}

/* The first rule that matches; NULL: none. */
static const struct rule *find_rule(const struct rule *rules, size_t count, const char *path,
                                    size_t size) {
        for (size_t i = 0; i < count; i++) {
                if (path_glob_matches(rules[i].glob, path, size))
                        return &rules[i];
        }
        return NULL;
}

const char *filter_excludes(const struct filter *filter, const char *path, size_t size,
                            int64_t mtime_ns) {
        const struct rule *rule;

        if (!filter)
                return NULL;
        rule = find_rule(filter->exclude, filter->exclude_count, path, size);
        if (rule)
                return rule->text;
        if (filter->include_count > 0 &&
            !find_rule(filter->include, filter->include_count, path, size))
                return "include";
        return mtime_ns != INT64_MIN && mtime_ns < filter->since_ns ? filter->since : NULL;
}
