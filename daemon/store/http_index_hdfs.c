/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebHDFS: LISTSTATUS_BATCH, which gives a thousand entries or so at a time. A page is parsed when
 * it is whole. Source: "WebHDFS REST API", Iteratively List a Directory.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/hdfs_error.h"
#include "daemon/store/http_index.h"
#include "daemon/store/percent.h"

#define PAGE_MOST_BYTES (64u << 20)

struct hdfs {
        bool (*on_entry)(void *userdata, const struct autoindex_entry *entry);
        void *userdata;
        char *text;
        size_t size, space;
        char *more; /* what the next page is asked for with; NULL: there is none */
};

static int hdfs_new(const char *path,
                    bool (*on_entry)(void *userdata, const struct autoindex_entry *entry),
                    void *userdata, void **ret_parser) {
        struct hdfs *hdfs = calloc(1, sizeof(*hdfs));

        (void)path;
        if (!hdfs)
                return -ENOMEM;
        hdfs->on_entry = on_entry;
        hdfs->userdata = userdata;
        *ret_parser = hdfs;
        return 0;
}

static int hdfs_feed(void *parser, const uint8_t *bytes, size_t size) {
        struct hdfs *hdfs = parser;

        if (size > PAGE_MOST_BYTES - hdfs->size)
                return AUTOINDEX_E_TOO_LARGE;
        if (hdfs->size + size > hdfs->space) {
                size_t space = max_u64(hdfs->size + size, 2 * hdfs->space);
                char *longer = realloc(hdfs->text, space);

                if (!longer)
                        return -ENOMEM;
                hdfs->text = longer;
                hdfs->space = space;
        }
        memcpy(hdfs->text + hdfs->size, bytes, size);
        hdfs->size += size;
        return 0;
}

/* False: no more is wanted. An entry without a name is the directory's file itself. */
static bool tell(struct hdfs *hdfs, const json_t *status) {
        const json_t *name = json_object_get(status, "pathSuffix");
        const char *type = json_string_value(json_object_get(status, "type"));
        json_int_t mtime_ms = json_integer_value(json_object_get(status, "modificationTime"));
        const json_t *length = json_object_get(status, "length");
        struct autoindex_entry entry = {
                .name = json_string_value(name),
                .name_size = json_string_length(name),
                .is_directory = type && strcmp(type, "DIRECTORY") == 0,
                .size_bytes = json_is_integer(length) && json_integer_value(length) >= 0
                                      ? (uint64_t)json_integer_value(length)
                                      : UINT64_MAX,
                .mtime_ns = mtime_ms > 0 && mtime_ms < INT64_MAX / 1000000 ? mtime_ms * 1000000
                                                                           : INT64_MIN,
        };

        if (!entry.name || entry.name_size == 0 || strlen(entry.name) != entry.name_size)
                return true;
        return hdfs->on_entry(hdfs->userdata, &entry);
}

static int remember_last(struct hdfs *hdfs, const char *name) {
        size_t size;
        FILE *out = open_memstream(&hdfs->more, &size);

        if (!out)
                return -ENOMEM;
        /* The documents write it with a capital, servers look for it in lower case (3.5.0). */
        fputs("&startAfter=", out);
        percent_write(out, name, strlen(name));
        fputs("&startafter=", out);
        percent_write(out, name, strlen(name));
        return fclose(out) == 0 ? 0 : -ENOMEM;
}

static int hdfs_finish(void *parser) {
        struct hdfs *hdfs = parser;
        json_t *root = json_loadb(hdfs->text, hdfs->size, 0, NULL), *status;
        const json_t *listing = json_object_get(root, "DirectoryListing");
        const json_t *partial = json_object_get(listing, "partialListing");
        json_t *statuses = json_object_get(
                json_object_get(partial ? partial : root, "FileStatuses"), "FileStatus");
        const char *last = NULL;
        size_t index;
        int r = 0;

        if (!json_is_array(statuses)) {
                r = root ? AUTOINDEX_E_NO_LISTING : AUTOINDEX_E_DAMAGED;
                json_decref(root);
                return r;
        }
        json_array_foreach(statuses, index, status) {
                last = json_string_value(json_object_get(status, "pathSuffix"));
                if (!tell(hdfs, status))
                        break;
        }
        if (last && *last && json_integer_value(json_object_get(listing, "remainingEntries")) > 0)
                r = remember_last(hdfs, last);
        json_decref(root);
        return r;
}

static char *hdfs_next(void *parser) {
        struct hdfs *hdfs = parser;

        return steal_pointer(&hdfs->more);
}

static void hdfs_free(void *parser) {
        struct hdfs *hdfs = parser;

        free(hdfs->text);
        free(hdfs->more);
        free(hdfs);
}

const struct http_index http_index_hdfs = {
        .name = "WebHDFS",
        .status = 200,
        .new = hdfs_new,
        .feed = hdfs_feed,
        .finish = hdfs_finish,
        .next = hdfs_next,
        .judge = hdfs_error_judge,
        .free = hdfs_free,
};
