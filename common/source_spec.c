/* SPDX-License-Identifier: Apache-2.0 */
#include "common/source_spec.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"

/* Size of the name in front of the ':' of a part; 0: it has none. */
static size_t name_size(const char *part, size_t size) {
        const char *colon = memchr(part, ':', size);
        size_t before = colon ? (size_t)(colon - part) : 0, behind = size - before - 1;

        if (before == 0 || memchr(part, '/', before))
                return 0;
        if (behind >= 2 && memcmp(colon, "://", 3) == 0)
                return 0;
        return behind >= 1 && strncasecmp(part, "file:/", 6) == 0 ? 0 : before;
}

static int add_item(struct source_spec *spec, const char *part, size_t size) {
        size_t named = name_size(part, size), skip = named ? named + 1 : 0;
        struct source_spec_item *items = realloc(spec->items, (spec->count + 1) * sizeof(items[0])),
                                *item;

        if (!items)
                return -ENOMEM;
        spec->items = items;
        item = &items[spec->count++];
        *item = (struct source_spec_item){ 0 };
        if (size == skip)
                return -EINVAL;
        item->url = strndup(part + skip, size - skip);
        item->name = named ? strndup(part, named) : NULL;
        if (!item->url || (named && !item->name))
                return -ENOMEM;
        for (size_t i = 0; named && i + 1 < spec->count; i++) {
                if (items[i].name && strcmp(items[i].name, item->name) == 0)
                        return -EINVAL;
        }
        return 0;
}

static int add_items(struct source_spec *spec, const char *text) {
        int r;

        do {
                size_t size = strcspn(text, ",");

                r = add_item(spec, text, size);
                text += size;
        } while (r == 0 && *text++ == ',');
        return r;
}

int source_spec_parse(const char *text, struct source_spec *ret_spec) {
        struct source_spec spec = { 0 };
        bool is_list = name_size(text, strcspn(text, ",")) > 0 && access(text, F_OK) < 0;
        int r;

        if (is_list) {
                r = add_items(&spec, text);
        } else {
                spec.items = calloc(1, sizeof(spec.items[0]));
                spec.count = spec.items ? 1 : 0;
                if (spec.items)
                        spec.items[0].url = strdup(text);
                r = spec.items && spec.items[0].url ? 0 : -ENOMEM;
        }
        if (r < 0)
                source_spec_deinit(&spec);
        else
                *ret_spec = spec;
        return r;
}

void source_spec_deinit(struct source_spec *spec) {
        for (size_t i = 0; i < spec->count; i++) {
                free(spec->items[i].name);
                free(spec->items[i].url);
        }
        free(spec->items);
        *spec = (struct source_spec){ 0 };
}
