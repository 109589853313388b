/* SPDX-License-Identifier: Apache-2.0 */
/* An answer to PROPFIND of any bytes; the first one says where it is cut in two. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "common/base.h"
#include "daemon/store/http_index.h"

static bool on_entry(void *userdata, const struct autoindex_entry *entry) {
        (void)userdata;
        MUST(entry->name[entry->name_size] == '\0' && strlen(entry->name) == entry->name_size);
        MUST(!memchr(entry->name, '/', entry->name_size));
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        void *parser;
        size_t cut;
        int r;

        if (size < 1)
                return 0;
        cut = min_u64(data[0], size - 1);
        MUST(http_index_dav.new("/logs/", on_entry, NULL, &parser) == 0);
        r = http_index_dav.feed(parser, data + 1, cut);
        if (r == 0)
                r = http_index_dav.feed(parser, data + 1 + cut, size - 1 - cut);
        if (r == 0)
                http_index_dav.finish(parser);
        http_index_dav.free(parser);
        return 0;
}
