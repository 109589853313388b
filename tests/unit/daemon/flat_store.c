/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/flat_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/event_name.h"

struct store_list {
        struct flat_store *flat;
        struct store_list *next;
        char *prefix, *after, *until; /* whole names; NULL: not given */
        bool one_level;
        void (*on_page)(void *userdata, const struct store_list_counts *counts,
                        const char *last_name, size_t size);
        const struct store_list_callbacks *callbacks;
        void *userdata;
        struct store_list_counts counts;
        char *position; /* the last name, or directory with its slash, that was given */
};

static int compare_keys(const void *a, const void *b) {
        const struct flat_key *first = a, *second = b;

        return strcmp(first->name, second->name);
}

static char *dup_or_null(const char *text) {
        char *copy = text ? strdup(text) : NULL;

        MUST(!text || copy);
        return copy;
}

static int flat_list(struct store *store, const struct store_list_range *range,
                     const struct store_list_callbacks *callbacks, void *userdata,
                     struct store_list **ret_list) {
        struct flat_store *flat = (struct flat_store *)store;
        struct store_list **last = &flat->lists, *list;

        if (flat->fail_starts && flat->starts_left-- == 0)
                return -ENOMEM;
        list = calloc(1, sizeof(*list));
        MUST(list);
        list->flat = flat;
        if (range && range->below_size)
                MUST(asprintf(&list->prefix, "%.*s/", (int)range->below_size, range->below) > 0);
        else
                list->prefix = dup_or_null("");
        list->after = dup_or_null(range ? range->after : NULL);
        list->until = dup_or_null(range ? range->until : NULL);
        list->one_level = range && range->one_level;
        list->on_page = range ? range->on_page : NULL;
        list->callbacks = callbacks;
        list->userdata = userdata;
        while (*last)
                last = &(*last)->next;
        *last = list;
        flat->list_count++;
        flat->most_at_once = flat->list_count > flat->most_at_once ? flat->list_count
                                                                   : flat->most_at_once;
        flat->requests++;
        list->counts.requests++;
        *ret_list = list;
        return 0;
}

static void list_unlink(struct store_list *list) {
        struct store_list **link = &list->flat->lists;

        while (*link != list)
                link = &(*link)->next;
        *link = list->next;
        list->next = NULL;
        list->flat->list_count--;
}

static void list_free(struct store_list *list) {
        free(list->prefix);
        free(list->after);
        free(list->until);
        free(list->position);
        free(list);
}

static void flat_list_cancel(struct store_list *list) {
        list_unlink(list);
        list_free(list);
}

static void on_handle_closed(uv_handle_t *handle) {
        struct flat_store *flat = handle->data;

        MUST(!flat->lists);
        if (flat->on_closed)
                flat->on_closed(flat->closed_userdata);
        for (size_t i = 0; i < flat->count; i++)
                free(flat->keys[i].name);
        free(flat->keys);
        free(flat->store.url);
        free(flat->store.endpoint);
        free(flat);
}

static void flat_close(struct store *store, void (*on_closed)(void *userdata), void *userdata) {
        struct flat_store *flat = (struct flat_store *)store;

        flat->on_closed = on_closed;
        flat->closed_userdata = userdata;
        uv_close((uv_handle_t *)&flat->handle, on_handle_closed);
}

struct flat_store *flat_store_new(uv_loop_t *loop, const char *url) {
        static const struct store_operations operations = { .list = flat_list,
                                                            .list_cancel = flat_list_cancel,
                                                            .close = flat_close };
        struct flat_store *flat = calloc(1, sizeof(*flat));

        MUST(flat);
        flat->store = (struct store){ .operations = &operations,
                                      .url = dup_or_null(url),
                                      .endpoint = dup_or_null("flat"),
                                      .is_flat = true };
        uv_timer_init(loop, &flat->handle);
        flat->handle.data = flat;
        return flat;
}

void flat_store_add(struct flat_store *flat, const char *name, uint64_t size_bytes,
                    int64_t mtime_ns) {
        if (flat->count == flat->space) {
                flat->space = flat->space ? 2 * flat->space : 1024;
                flat->keys = realloc(flat->keys, flat->space * sizeof(flat->keys[0]));
                MUST(flat->keys);
        }
        flat->keys[flat->count++] = (struct flat_key){ dup_or_null(name), size_bytes, mtime_ns };
        flat->is_sorted = false;
}

static void sort(struct flat_store *flat) {
        if (!flat->is_sorted && flat->count > 0)
                qsort(flat->keys, flat->count, sizeof(flat->keys[0]), compare_keys);
        flat->is_sorted = true;
}

void flat_store_remove(struct flat_store *flat, const char *name) {
        struct flat_key wanted = { (char *)(uintptr_t)name, 0, 0 }, *key;

        sort(flat);
        key = bsearch(&wanted, flat->keys, flat->count, sizeof(wanted), compare_keys);
        MUST(key);
        free(key->name);
        memmove(key, key + 1, (size_t)(flat->keys + --flat->count - key) * sizeof(*key));
}

static size_t first_behind(const struct flat_store *flat, const char *name) {
        size_t low = 0, high = flat->count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (strcmp(flat->keys[middle].name, name) <= 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Of one level: the directory is given, and all in it passed over. */
static size_t give_directory(struct store_list *list, const char *name, size_t size) {
        char behind[1200];

        MUST(size + 2 < sizeof(behind));
        list->callbacks->on_directory(list->userdata, name, size);
        memcpy(behind, name, size);
        strcpy(behind + size, "0"); /* the byte behind the slash */
        free(list->position);
        list->position = dup_or_null(behind);
        return first_behind(list->flat, behind);
}

static void give_row(struct store_list *list, const struct flat_key *key) {
        struct store_row row = { .name = key->name,
                                 .name_size = strlen(key->name),
                                 .size_bytes = key->size_bytes,
                                 .mtime_ns = key->mtime_ns };

        list->counts.objects++;
        if (event_name_is(row.name, row.name_size))
                list->callbacks->on_row(list->userdata, &row);
        free(list->position);
        list->position = dup_or_null(key->name);
}

/* Gives one page. True: there is more. */
static bool give_page(struct store_list *list) {
        const struct flat_store *flat = list->flat;
        const char *from = list->position ? list->position : list->after;
        size_t prefix_size = strlen(list->prefix), at = from ? first_behind(flat, from) : 0;

        for (unsigned given = 0;; given++) {
                const char *slash;

                while (at < flat->count &&
                       strncmp(flat->keys[at].name, list->prefix, prefix_size) < 0)
                        at++;
                if (at == flat->count || strncmp(flat->keys[at].name, list->prefix, prefix_size) ||
                    (list->until && strcmp(flat->keys[at].name, list->until) > 0))
                        return false;
                if (given == FLAT_PAGE_OBJECTS)
                        return true;
                slash = list->one_level ? strchr(flat->keys[at].name + prefix_size, '/') : NULL;
                if (slash)
                        at = give_directory(list, flat->keys[at].name,
                                            (size_t)(slash - flat->keys[at].name));
                else
                        give_row(list, &flat->keys[at++]);
        }
}

static void end(struct store_list *list, enum store_failure_class class) {
        const struct store_list_callbacks *callbacks = list->callbacks;
        struct store_list_counts counts = list->counts;
        struct store_failure failure = { .class = class };
        void *userdata = list->userdata;

        if (class != STORE_OK)
                strcpy(failure.code, "flat");
        list_unlink(list);
        list_free(list);
        callbacks->on_done(userdata, &failure, &counts);
}

bool flat_store_page(struct flat_store *flat) {
        struct store_list *list = flat->lists;

        if (!list)
                return false;
        sort(flat);
        if (flat->fail_after > 0 && --flat->fail_after == 0) {
                end(list, flat->class);
                return true;
        }
        if (flat->repeat > 0) {
                char *before = dup_or_null(list->position);

                flat->repeat--;
                give_page(list);
                free(list->position);
                list->position = before;
        }
        if (!give_page(list)) {
                end(list, STORE_OK);
                return true;
        }
        flat->requests++;
        list->counts.requests++;
        /* Others have their turn first. It may be cancelled inside. */
        if (list->next) {
                struct store_list **last = &flat->lists;

                list_unlink(list);
                while (*last)
                        last = &(*last)->next;
                *last = list;
                flat->list_count++;
        }
        if (list->on_page)
                list->on_page(list->userdata,
                              &(struct store_list_counts){ .requests = list->counts.requests - 1,
                                                           .objects = list->counts.objects },
                              list->position, strlen(list->position));
        return true;
}
