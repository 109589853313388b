/* SPDX-License-Identifier: Apache-2.0 */
/* A page of List Blobs of any bytes; the first one says where it is cut in two. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/azure_listing.h"

static void on_object(void *userdata, const struct object_row *row) {
        (void)userdata;
        MUST(row->key_size > 0 && row->key[row->key_size] == '\0' && strlen(row->tag) < 64);
}

static void on_prefix(void *userdata, const char *prefix, size_t size) {
        (void)userdata;
        MUST(size > 0 && prefix[size] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const struct object_page_events events = { on_object, on_prefix };
        char *token = NULL;
        void *page;
        size_t cut;
        int r;

        if (size < 1)
                return 0;
        cut = min_u64(data[0], size - 1);
        MUST(azure_listing_new(&events, NULL, &page) == 0);
        r = azure_listing_feed(page, data + 1, cut);
        if (r == 0)
                r = azure_listing_feed(page, data + 1 + cut, size - 1 - cut);
        if (r == 0)
                azure_listing_end(page, &token);
        free(token);
        azure_listing_free(page);
        return 0;
}
