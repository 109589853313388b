/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/gcs_listing.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/iso_time.h"

struct gcs_listing {
        struct object_page_events events;
        void *userdata;
        char *text;
        size_t size, space;
};

int gcs_listing_new(const struct object_page_events *events, void *userdata, void **ret_page) {
        struct gcs_listing *page = calloc(1, sizeof(*page));

        if (!page)
                return -ENOMEM;
        page->events = *events;
        page->userdata = userdata;
        *ret_page = page;
        return 0;
}

int gcs_listing_feed(void *userdata, const uint8_t *bytes, size_t size) {
        struct gcs_listing *page = userdata;

        if (size > GCS_PAGE_MOST_BYTES - page->size)
                return -EBADMSG;
        if (page->size + size > page->space) {
                size_t space = max_u64(page->size + size, 2 * page->space);
                char *longer = realloc(page->text, space);

                if (!longer)
                        return -ENOMEM;
                page->text = longer;
                page->space = space;
        }
        if (size)
                memcpy(page->text + page->size, bytes, size);
        page->size += size;
        return 0;
}

static const char *text_of(const json_t *object, const char *key) {
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

/* Numbers of 64 bits are strings in Google's JSON; some servers write numbers. */
static bool size_of(const json_t *value, uint64_t *ret_size) {
        const char *text = json_string_value(value);
        unsigned long long size;
        char *end;

        if (json_is_integer(value) && json_integer_value(value) >= 0) {
                *ret_size = (uint64_t)json_integer_value(value);
                return true;
        }
        if (!text || *text < '0' || *text > '9')
                return false;
        errno = 0;
        size = strtoull(text, &end, 10);
        if (errno || *end)
                return false;
        *ret_size = size;
        return true;
}

/* A generation names a version for all requests; a server without it has an ETag, perhaps. */
static const char *tag_of(const json_t *item, char *space, size_t space_size) {
        const json_t *generation = json_object_get(item, "generation");

        if (json_is_string(generation))
                return json_string_value(generation);
        if (!json_is_integer(generation))
                return text_of(item, "etag");
        snprintf(space, space_size, "%lld", (long long)json_integer_value(generation));
        return space;
}

static int give_object(struct gcs_listing *page, const json_t *item) {
        const json_t *name = json_object_get(item, "name");
        struct object_row row = { .mtime_ns = iso_time_parse(text_of(item, "updated")) };
        char space[24];

        if (!json_is_string(name) || !size_of(json_object_get(item, "size"), &row.size_bytes))
                return -EBADMSG;
        row.key = json_string_value(name);
        row.key_size = json_string_length(name);
        row.tag = tag_of(item, space, sizeof(space));
        if (row.key_size)
                page->events.on_object(page->userdata, &row);
        return 0;
}

static bool is_page(const json_t *root) {
        const json_t *items = json_object_get(root, "items");
        const json_t *prefixes = json_object_get(root, "prefixes");
        const json_t *token = json_object_get(root, "nextPageToken");

        return json_is_object(root) && !json_object_get(root, "error") &&
               (!items || json_is_array(items)) && (!prefixes || json_is_array(prefixes)) &&
               (!token || json_is_string(token));
}

static int give_all(struct gcs_listing *page, const json_t *root) {
        const json_t *value;
        size_t i;
        int r;

        json_array_foreach(json_object_get(root, "items"), i, value) {
                r = give_object(page, value);
                if (r < 0)
                        return r;
        }
        json_array_foreach(json_object_get(root, "prefixes"), i, value) {
                if (!json_is_string(value))
                        return -EBADMSG;
                page->events.on_prefix(page->userdata, json_string_value(value),
                                       json_string_length(value));
        }
        return 0;
}

int gcs_listing_end(void *userdata, char **ret_token) {
        struct gcs_listing *page = userdata;
        json_error_t error;
        json_t *root = json_loadb(page->text ? page->text : "", page->size, JSON_ALLOW_NUL, &error);
        char *token = NULL;
        int r;

        if (!root)
                return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
        r = is_page(root) ? give_all(page, root) : -EBADMSG;
        if (r == 0 && text_of(root, "nextPageToken")[0]) {
                token = strdup(text_of(root, "nextPageToken"));
                r = token ? 0 : -ENOMEM;
        }
        json_decref(root);
        if (r == 0)
                *ret_token = token;
        return r;
}

void gcs_listing_free(void *userdata) {
        struct gcs_listing *page = userdata;

        free(page->text);
        free(page);
}
