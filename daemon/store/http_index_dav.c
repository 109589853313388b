/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebDAV: PROPFIND of depth 1, one for each directory, as servers refuse an infinite depth. Source:
 * RFC 4918, sections 9.1 and 14. Properties that a server does not have come empty, in a propstat of
 * their own. Tags are not taken: that of a young file may be weak and change by itself.
 */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/http_index.h"
#include "daemon/store/http_time.h"
#include "daemon/store/percent.h"
#include "daemon/store/xml_stream.h"

struct dav {
        bool (*on_entry)(void *userdata, const struct autoindex_entry *entry);
        void *userdata;
        struct xml_stream *xml;
        char *self; /* decoded path of the directory, without a slash at its end */
        size_t self_size;
        char *href; /* of the response that is read; NULL: none yet */
        bool is_multistatus, is_collection, stopped;
        uint64_t size_bytes;
        int64_t mtime_ns;
        int error;
};

static size_t without_slashes(const char *path, size_t size) {
        while (size > 0 && path[size - 1] == '/')
                size--;
        return size;
}

/* An href is a path, or a whole URL. */
static const char *path_of(const char *href) {
        const char *host = strstr(href, "://");

        if (!host)
                return href;
        host += strlen("://");
        return host + strcspn(host, "/");
}

static void tell(struct dav *dav) {
        size_t size = dav->href ? strlen(dav->href) : 0;
        struct autoindex_entry entry = { .is_directory = dav->is_collection,
                                         .size_bytes = dav->size_bytes,
                                         .mtime_ns = dav->mtime_ns };
        const char *slash;

        if (size == 0)
                return;
        size = percent_decode(dav->href, size);
        size = without_slashes(dav->href, size);
        if (memchr(dav->href, '\0', size) ||
            (size == dav->self_size && memcmp(dav->href, dav->self, size) == 0))
                return;
        dav->href[size] = '\0';
        slash = strrchr(dav->href, '/');
        entry.name = slash ? slash + 1 : dav->href;
        entry.name_size = strlen(entry.name);
        if (!dav->on_entry(dav->userdata, &entry))
                dav->stopped = true;
}

static void begin_response(struct dav *dav) {
        free(dav->href);
        dav->href = NULL;
        dav->is_collection = false;
        dav->size_bytes = UINT64_MAX;
        dav->mtime_ns = INT64_MIN;
}

static void on_open(void *userdata, const char *name, unsigned depth) {
        struct dav *dav = userdata;

        if (depth == 1)
                dav->is_multistatus = strcmp(name, "multistatus") == 0;
        else if (depth == 2)
                begin_response(dav);
        else if (depth == 6 && strcmp(name, "collection") == 0)
                dav->is_collection = true;
}

static void take_href(struct dav *dav, const char *text) {
        free(dav->href);
        dav->href = strdup(path_of(text));
        if (!dav->href)
                dav->error = -ENOMEM;
}

static void take_property(struct dav *dav, const char *name, const char *text) {
        char *end;

        if (strcmp(name, "getcontentlength") == 0) {
                errno = 0;
                dav->size_bytes = strtoull(text, &end, 10);
                if (*end || errno || text[0] == '-')
                        dav->size_bytes = UINT64_MAX;
        } else if (strcmp(name, "getlastmodified") == 0) {
                dav->mtime_ns = http_time_parse(text);
        }
}

static void on_close(void *userdata, const char *name, unsigned depth, const char *text,
                     size_t size) {
        struct dav *dav = userdata;

        if (dav->error || dav->stopped)
                return;
        if (depth == 3 && strcmp(name, "href") == 0 && !dav->href)
                take_href(dav, text);
        else if (depth == 5 && size > 0)
                take_property(dav, name, text);
        else if (depth == 2 && strcmp(name, "response") == 0)
                tell(dav);
}

static void dav_free(void *parser) {
        struct dav *dav = parser;

        xml_stream_free(dav->xml);
        free(dav->self);
        free(dav->href);
        free(dav);
}

static int dav_new(const char *path,
                   bool (*on_entry)(void *userdata, const struct autoindex_entry *entry),
                   void *userdata, void **ret_parser) {
        static const struct xml_stream_events events = { .on_open = on_open, .on_close = on_close };
        struct dav *dav = calloc(1, sizeof(*dav));

        if (!dav)
                return -ENOMEM;
        dav->on_entry = on_entry;
        dav->userdata = userdata;
        dav->self = strdup(path);
        if (!dav->self || xml_stream_new(&events, dav, &dav->xml) < 0) {
                dav_free(dav);
                return -ENOMEM;
        }
        dav->self_size = without_slashes(dav->self, percent_decode(dav->self, strlen(dav->self)));
        *ret_parser = dav;
        return 0;
}

static int outcome(const struct dav *dav, int r) {
        if (r == -ENOMEM || dav->error)
                return -ENOMEM;
        if (r == -EBADMSG)
                return dav->is_multistatus ? AUTOINDEX_E_DAMAGED : AUTOINDEX_E_NO_LISTING;
        return r;
}

static int dav_feed(void *parser, const uint8_t *bytes, size_t size) {
        struct dav *dav = parser;

        return dav->stopped ? 0 : outcome(dav, xml_stream_feed(dav->xml, bytes, size));
}

static int dav_finish(void *parser) {
        struct dav *dav = parser;
        int r = dav->stopped ? 0 : xml_stream_end(dav->xml);

        if (r == 0 && !dav->is_multistatus)
                return AUTOINDEX_E_NO_LISTING;
        return outcome(dav, r);
}

static const char *const headers[] = { "Depth: 1", "Content-Type: application/xml", NULL };

const struct http_index http_index_dav = {
        .name = "WebDAV",
        .method = "PROPFIND",
        .headers = headers,
        .body = "<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><prop><resourcetype/>"
                "<getcontentlength/><getlastmodified/></prop></propfind>",
        .status = 207,
        .new = dav_new,
        .feed = dav_feed,
        .finish = dav_finish,
        .free = dav_free,
};
