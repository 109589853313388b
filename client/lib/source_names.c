/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/source_names.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/name_id.h"
#include "common/source_url.h"

struct source_name {
        uint64_t source_id;
        char *text; /* NULL: none */
};

struct source_names {
        size_t count;
        struct source_name names[];
};

static int set_name(const struct source_spec_item *item, struct source_name *name) {
        CLEANUP(freep) char *url = NULL;
        int r = source_url_normalize(item->url, &url);

        if (r < 0)
                return r;
        name->source_id = name_id_source(url);
        name->text = item->name ? strdup(item->name) : NULL;
        return item->name && !name->text ? -ENOMEM : 0;
}

int source_names_new(const struct source_spec *spec, struct source_names **ret_names) {
        struct source_names *names = calloc(1,
                                            sizeof(*names) + spec->count * sizeof(names->names[0]));
        int r = names ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < spec->count; i++)
                r = set_name(&spec->items[i], &names->names[names->count++]);
        if (r < 0)
                source_names_free(names);
        else
                *ret_names = names;
        return r;
}

struct source_names *source_names_free(struct source_names *names) {
        for (size_t i = 0; names && i < names->count; i++)
                free(names->names[i].text);
        free(names);
        return NULL;
}

static const char *find_name(const struct source_names *names, uint64_t source_id) {
        for (size_t i = 0; names && i < names->count; i++) {
                if (names->names[i].source_id == source_id)
                        return names->names[i].text;
        }
        return NULL;
}

int source_names_join(const struct source_names *names, uint64_t source_id, bool is_run,
                      struct extent_string *name, char **ret_memory) {
        const char *text = find_name(names, source_id);
        bool is_root = is_run && name->size == 1 && name->bytes[0] == '.';
        size_t size = text ? strlen(text) : 0;
        char *memory;

        if (!text)
                return 0;
        memory = malloc(size + 1 + name->size);
        if (!memory)
                return -ENOMEM;
        memcpy(memory, text, size);
        if (!is_root) {
                memory[size++] = '/';
                memcpy(memory + size, name->bytes, name->size);
                size += name->size;
        }
        *name = (struct extent_string){ (const uint8_t *)memory, size };
        *ret_memory = memory;
        return 0;
}
