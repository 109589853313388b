/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/s3_listing.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/iso_time.h"
#include "daemon/store/percent.h"
#include "daemon/store/xml_stream.h"

/* An object, or a common prefix. Its texts lie in the page's. */
struct row {
        size_t key, key_size, tag; /* offsets */
        uint64_t size_bytes;
        int64_t mtime_ns;
        bool is_prefix, is_archived;
};

struct s3_page {
        struct object_page_events events;
        void *userdata;
        struct xml_stream *xml;
        struct row *rows;
        size_t row_count, row_space;
        char *texts;
        size_t text_size, text_space;
        struct row row; /* that is being read */
        char *token;
        bool is_result; /* the document is a listing */
        bool is_truncated, is_encoded;
        int error;
};

/* Keeps a text with a NUL. Returns its offset. */
static size_t keep(struct s3_page *page, const char *text, size_t size) {
        size_t need = page->text_size + size + 1, at = page->text_size;

        if (need > page->text_space) {
                size_t space = max_u64(need, max_u64(2 * page->text_space, 4096));
                char *longer = realloc(page->texts, space);

                if (!longer) {
                        page->error = -ENOMEM;
                        return 0;
                }
                page->texts = longer;
                page->text_space = space;
        }
        memcpy(page->texts + at, text, size + 1);
        page->text_size = need;
        return at;
}

static void add_row(struct s3_page *page) {
        if (page->row_count == page->row_space) {
                size_t space = page->row_space ? 2 * page->row_space : 256;
                struct row *longer = reallocarray(page->rows, space, sizeof(*longer));

                if (!longer) {
                        page->error = -ENOMEM;
                        return;
                }
                page->rows = longer;
                page->row_space = space;
        }
        page->rows[page->row_count++] = page->row;
}

/* One without a name or a size is none of ours. */
static void end_row(struct s3_page *page) {
        if (page->row.key_size > 0 && (page->row.is_prefix || page->row.size_bytes != UINT64_MAX))
                add_row(page);
        else
                page->error = -EBADMSG;
}

static void take_key(struct s3_page *page, const char *text, size_t size) {
        page->row.key = keep(page, text, size);
        page->row.key_size = size;
}

static void take_prefix(struct s3_page *page, const char *text, size_t size) {
        page->row.is_prefix = true;
        take_key(page, text, size);
}

/* Without its quotes, and without W/ in front of them. */
static void take_tag(struct s3_page *page, const char *text, size_t size) {
        if (size > 2 && text[0] == 'W' && text[1] == '/') {
                text += 2;
                size -= 2;
        }
        page->row.tag = keep(page, text, size);
        if (size > 2 && text[0] == '"' && text[size - 1] == '"' && !page->error) {
                page->texts[page->row.tag + size - 1] = '\0';
                page->row.tag++;
        }
}

static void take_size(struct s3_page *page, const char *text, size_t size) {
        char *end;

        errno = 0;
        page->row.size_bytes = strtoull(text, &end, 10);
        if (size == 0 || *end || errno || text[0] == '-')
                page->error = -EBADMSG;
}

static void take_time(struct s3_page *page, const char *text, size_t size) {
        (void)size;
        page->row.mtime_ns = iso_time_parse(text);
}

/* What must be restored before it can be read. GLACIER_IR is as good as STANDARD. */
static void take_class(struct s3_page *page, const char *text, size_t size) {
        (void)size;
        page->row.is_archived = strcmp(text, "GLACIER") == 0 || strcmp(text, "DEEP_ARCHIVE") == 0;
}

static void take_truncated(struct s3_page *page, const char *text, size_t size) {
        (void)size;
        page->is_truncated = strcmp(text, "true") == 0;
}

static void take_token(struct s3_page *page, const char *text, size_t size) {
        free(page->token);
        page->token = strndup(text, size);
        if (!page->token)
                page->error = -ENOMEM;
}

static void take_encoding(struct s3_page *page, const char *text, size_t size) {
        (void)size;
        page->is_encoded = strcmp(text, "url") == 0;
}

/* By depth: of the result, of Contents, of CommonPrefixes (told from the result's own Prefix). */
static const struct {
        unsigned depth;
        const char *name;
        void (*take)(struct s3_page *page, const char *text, size_t size);
} elements[] = {
        { 3, "Key", take_key },
        { 3, "Size", take_size },
        { 3, "ETag", take_tag },
        { 3, "LastModified", take_time },
        { 3, "StorageClass", take_class },
        { 3, "Prefix", take_prefix },
        { 2, "IsTruncated", take_truncated },
        { 2, "NextContinuationToken", take_token },
        { 2, "EncodingType", take_encoding },
};

static bool is_row(const char *name) {
        return strcmp(name, "Contents") == 0 || strcmp(name, "CommonPrefixes") == 0;
}

static void on_open(void *userdata, const char *name, unsigned depth) {
        struct s3_page *page = userdata;

        if (depth == 1)
                page->is_result = strcmp(name, "ListBucketResult") == 0;
        if (depth == 2 && is_row(name))
                page->row = (struct row){ .size_bytes = UINT64_MAX,
                                          .mtime_ns = INT64_MIN,
                                          .tag = keep(page, "", 0) };
}

static void on_close(void *userdata, const char *name, unsigned depth, const char *text,
                     size_t size) {
        struct s3_page *page = userdata;

        if (page->error)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(elements); i++) {
                if (elements[i].depth == depth && strcmp(elements[i].name, name) == 0)
                        elements[i].take(page, text, size);
        }
        if (depth == 2 && is_row(name) && !page->error)
                end_row(page);
}

int s3_listing_new(const struct object_page_events *events, void *userdata, void **ret_page) {
        static const struct xml_stream_events own = { .on_open = on_open, .on_close = on_close };
        struct s3_page *page = calloc(1, sizeof(*page));
        int r;

        if (!page)
                return -ENOMEM;
        page->events = *events;
        page->userdata = userdata;
        r = xml_stream_new(&own, page, &page->xml);
        if (r < 0) {
                free(page);
                return r;
        }
        *ret_page = page;
        return 0;
}

int s3_listing_feed(void *userdata, const uint8_t *bytes, size_t size) {
        struct s3_page *page = userdata;
        int r = xml_stream_feed(page->xml, bytes, size);

        return page->error ? page->error : r;
}

static void give(struct s3_page *page, const struct row *row) {
        char *key = page->texts + row->key;
        size_t size = page->is_encoded ? percent_decode_form(key, row->key_size) : row->key_size;
        struct object_row object = {
                .key = key,
                .key_size = size,
                .size_bytes = row->size_bytes,
                .mtime_ns = row->mtime_ns,
                .tag = page->texts + row->tag,
                .is_archived = row->is_archived,
        };

        if (row->is_prefix)
                page->events.on_prefix(page->userdata, key, size);
        else
                page->events.on_object(page->userdata, &object);
}

int s3_listing_end(void *userdata, char **ret_token) {
        struct s3_page *page = userdata;
        int r = xml_stream_end(page->xml);

        if (r < 0 || page->error)
                return page->error ? page->error : r;
        if (!page->is_result || (page->is_truncated && !page->token))
                return -EBADMSG;
        for (size_t i = 0; i < page->row_count; i++)
                give(page, &page->rows[i]);
        *ret_token = page->is_truncated ? steal_pointer(&page->token) : NULL;
        return 0;
}

void s3_listing_free(void *userdata) {
        struct s3_page *page = userdata;

        xml_stream_free(page->xml);
        free(page->rows);
        free(page->texts);
        free(page->token);
        free(page);
}
