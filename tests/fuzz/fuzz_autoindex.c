/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listing of any bytes, whole and in two pieces, must give the same entries. The first byte says
 * where it is cut.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "common/base.h"
#include "daemon/store/autoindex.h"

struct digest {
        uint64_t value, count;
};

static bool on_entry(void *userdata, const struct autoindex_entry *entry) {
        struct digest *digest = userdata;

        MUST(strlen(entry->name) == entry->name_size);
        for (size_t i = 0; i < entry->name_size; i++)
                digest->value = digest->value * 31 + (uint8_t)entry->name[i];
        digest->value = digest->value * 31 + entry->size_bytes + (uint64_t)entry->mtime_ns +
                        entry->is_directory;
        digest->count++;
        return true;
}

static int parse(const uint8_t *data, size_t size, size_t cut, struct digest *ret_digest) {
        struct autoindex index;
        int r;

        autoindex_init(&index, on_entry, ret_digest);
        r = autoindex_feed(&index, data, cut);
        if (r == 0)
                r = autoindex_feed(&index, data + cut, size - cut);
        if (r == 0)
                r = autoindex_finish(&index);
        autoindex_deinit(&index);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct digest whole = { 0 }, cut = { 0 };

        if (size == 0)
                return 0;
        MUST(parse(data + 1, size - 1, size - 1, &whole) ==
             parse(data + 1, size - 1, data[0] % size, &cut));
        MUST(whole.value == cut.value && whole.count == cut.count);
        return 0;
}
