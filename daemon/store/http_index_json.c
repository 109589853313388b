/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "common/base.h"
#include "daemon/store/http_index.h"

static int json_new(const char *path,
                    bool (*on_entry)(void *userdata, const struct autoindex_entry *entry),
                    void *userdata, void **ret_parser) {
        struct autoindex *index = malloc(sizeof(*index));

        (void)path;
        if (!index)
                return -ENOMEM;
        autoindex_init(index, on_entry, userdata);
        *ret_parser = index;
        return 0;
}

static int json_feed(void *parser, const uint8_t *bytes, size_t size) {
        return autoindex_feed(parser, bytes, size);
}

static int json_finish(void *parser) {
        return autoindex_finish(parser);
}

static void json_free(void *parser) {
        autoindex_deinit(parser);
        free(parser);
}

const struct http_index http_index_json = {
        .name = "JSON autoindex",
        .status = 200,
        .new = json_new,
        .feed = json_feed,
        .finish = json_finish,
        .free = json_free,
};
