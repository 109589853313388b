/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/azure_listing.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/http_time.h"
#include "daemon/store/percent.h"
#include "daemon/store/xml_stream.h"

struct azure_page {
        struct object_page_events events;
        void *userdata;
        struct xml_stream *xml;
        char *name; /* of the blob or prefix that is read; NULL: none yet */
        size_t name_size;
        bool is_encoded; /* the name has characters that XML cannot hold */
        char tag[64];
        struct object_row row;
        char *marker;
        bool is_result;
        int error;
};

static void on_open(void *userdata, const char *name, unsigned depth) {
        struct azure_page *page = userdata;

        if (depth == 1)
                page->is_result = strcmp(name, "EnumerationResults") == 0;
        if (depth != 3)
                return;
        free(page->name);
        page->name = NULL;
        page->is_encoded = false;
        page->tag[0] = '\0';
        page->row = (struct object_row){ .size_bytes = UINT64_MAX, .mtime_ns = INT64_MIN };
}

static void on_attribute(void *userdata, const char *element, const char *name, const char *value) {
        struct azure_page *page = userdata;

        if (strcmp(element, "Name") == 0 && strcmp(name, "Encoded") == 0)
                page->is_encoded = strcmp(value, "true") == 0;
}

static void take_name(struct azure_page *page, const char *text, size_t size) {
        free(page->name);
        page->name = malloc(size + 1);
        if (!page->name) {
                page->error = -ENOMEM;
                return;
        }
        memcpy(page->name, text, size + 1);
        page->name_size = page->is_encoded ? percent_decode(page->name, size) : size;
}

static void take_property(struct azure_page *page, const char *name, const char *text,
                          size_t size) {
        struct object_row *row = &page->row;
        char *end;

        if (strcmp(name, "Content-Length") == 0) {
                errno = 0;
                row->size_bytes = strtoull(text, &end, 10);
                if (size == 0 || *end || errno || text[0] == '-')
                        page->error = -EBADMSG;
        } else if (strcmp(name, "Last-Modified") == 0) {
                row->mtime_ns = http_time_parse(text);
        } else if (strcmp(name, "Etag") == 0) {
                bool quoted = size > 1 && text[0] == '"' && text[size - 1] == '"';

                snprintf(page->tag, sizeof(page->tag), "%.*s", (int)(quoted ? size - 2 : size),
                         text + quoted);
        } else if (strcmp(name, "AccessTier") == 0) {
                row->is_archived = strcmp(text, "Archive") == 0;
        } else if (strcmp(name, "ResourceType") == 0) {
                row->is_directory = strcmp(text, "directory") == 0;
        }
}

static void tell(struct azure_page *page, bool is_prefix) {
        if (!page->name || page->name_size == 0)
                return;
        if (is_prefix) {
                page->events.on_prefix(page->userdata, page->name, page->name_size);
                return;
        }
        page->row.key = page->name;
        page->row.key_size = page->name_size;
        page->row.tag = page->tag;
        page->events.on_object(page->userdata, &page->row);
}

static void on_close(void *userdata, const char *name, unsigned depth, const char *text,
                     size_t size) {
        struct azure_page *page = userdata;

        if (page->error)
                return;
        if (depth == 4 && strcmp(name, "Name") == 0) {
                take_name(page, text, size);
        } else if (depth == 5) {
                take_property(page, name, text, size);
        } else if (depth == 3 && (strcmp(name, "Blob") == 0 || strcmp(name, "BlobPrefix") == 0)) {
                tell(page, strcmp(name, "BlobPrefix") == 0);
        } else if (depth == 2 && strcmp(name, "NextMarker") == 0 && size > 0) {
                free(page->marker);
                page->marker = strndup(text, size);
                if (!page->marker)
                        page->error = -ENOMEM;
        }
}

void azure_listing_free(void *userdata) {
        struct azure_page *page = userdata;

        xml_stream_free(page->xml);
        free(page->name);
        free(page->marker);
        free(page);
}

int azure_listing_new(const struct object_page_events *events, void *userdata, void **ret_page) {
        static const struct xml_stream_events own = { .on_open = on_open,
                                                      .on_close = on_close,
                                                      .on_attribute = on_attribute };
        struct azure_page *page = calloc(1, sizeof(*page));

        if (!page)
                return -ENOMEM;
        page->events = *events;
        page->userdata = userdata;
        if (xml_stream_new(&own, page, &page->xml) < 0) {
                azure_listing_free(page);
                return -ENOMEM;
        }
        *ret_page = page;
        return 0;
}

int azure_listing_feed(void *userdata, const uint8_t *bytes, size_t size) {
        struct azure_page *page = userdata;
        int r = xml_stream_feed(page->xml, bytes, size);

        return page->error ? page->error : r;
}

int azure_listing_end(void *userdata, char **ret_token) {
        struct azure_page *page = userdata;
        int r = xml_stream_end(page->xml);

        if (r < 0 || page->error)
                return page->error ? page->error : r;
        if (!page->is_result)
                return -EBADMSG;
        *ret_token = steal_pointer(&page->marker);
        return 0;
}
