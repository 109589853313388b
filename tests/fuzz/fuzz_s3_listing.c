/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of any bytes, whole and in two pieces, must give the same rows, prefixes and token; and as
 * the text of an error, whole fields. The first byte says where it is cut.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/s3_error.h"
#include "daemon/store/s3_listing.h"

struct digest {
        uint64_t value, count;
};

static void add(struct digest *digest, const char *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                digest->value = digest->value * 31 + (uint8_t)bytes[i];
}

static void on_object(void *userdata, const struct object_row *row) {
        struct digest *digest = userdata;

        MUST(row->key_size > 0 && row->key[row->key_size] == '\0');
        add(digest, row->key, row->key_size);
        add(digest, row->tag, strlen(row->tag));
        digest->value = digest->value * 31 + row->size_bytes + (uint64_t)row->mtime_ns +
                        row->is_archived;
        digest->count++;
}

static void on_prefix(void *userdata, const char *prefix, size_t size) {
        struct digest *digest = userdata;

        MUST(size > 0);
        add(digest, prefix, size);
        digest->count += 1u << 16;
}

static int parse(const uint8_t *data, size_t size, size_t cut, struct digest *ret_digest) {
        static const struct object_page_events events = { on_object, on_prefix };
        char *token = NULL;
        void *page;
        int r = s3_listing_new(&events, ret_digest, &page);

        MUST(r == 0);
        r = s3_listing_feed(page, data, cut);
        if (r == 0)
                r = s3_listing_feed(page, data + cut, size - cut);
        if (r == 0)
                r = s3_listing_end(page, &token);
        MUST(r == 0 || (r == -EBADMSG && !token));
        if (token)
                add(ret_digest, token, strlen(token));
        free(token);
        s3_listing_free(page);
        return r;
}

static void parse_error(const uint8_t *data, size_t size) {
        struct s3_error error;

        s3_error_parse((const char *)data, size, &error);
        MUST(strlen(error.code) < sizeof(error.code) &&
             strlen(error.message) < sizeof(error.message) &&
             strlen(error.region) < sizeof(error.region));
        s3_error_kind(error.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct digest whole = { 0 }, cut = { 0 };

        if (size == 0)
                return 0;
        MUST(parse(data + 1, size - 1, size - 1, &whole) ==
             parse(data + 1, size - 1, data[0] % size, &cut));
        MUST(whole.value == cut.value && whole.count == cut.count);
        parse_error(data + 1, size - 1);
        return 0;
}
