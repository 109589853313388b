/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of objects.list of any bytes, whole and in two pieces, must give the same rows; and what
 * it says as an error, a token or an account must not hurt. The first byte says where it is cut.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "common/base.h"
#include "daemon/store/gcs_error.h"
#include "daemon/store/gcs_listing.h"
#include "daemon/store/google_account.h"
#include "daemon/store/google_token.h"
#include "daemon/store/secret_file.h"

struct digest {
        uint64_t value, count;
};

static void add(struct digest *digest, const char *text, size_t size) {
        MUST(text[size] == '\0');
        for (size_t i = 0; i < size; i++)
                digest->value = digest->value * 31 + (uint8_t)text[i];
        digest->count++;
}

static void on_object(void *userdata, const struct object_row *row) {
        struct digest *digest = userdata;

        MUST(row->key_size > 0);
        add(digest, row->key, row->key_size);
        add(digest, row->tag, strlen(row->tag));
        digest->value = digest->value * 31 + row->size_bytes + (uint64_t)row->mtime_ns;
}

static void on_prefix(void *userdata, const char *prefix, size_t size) {
        add(userdata, prefix, size);
}

static int parse(const uint8_t *data, size_t size, size_t cut, struct digest *ret_digest) {
        static const struct object_page_events events = { on_object, on_prefix };
        char *token = NULL;
        void *page;
        int r;

        MUST(gcs_listing_new(&events, ret_digest, &page) == 0);
        r = gcs_listing_feed(page, data, cut);
        if (r == 0)
                r = gcs_listing_feed(page, data + cut, size - cut);
        if (r == 0)
                r = gcs_listing_end(page, &token);
        gcs_listing_free(page);
        free(token);
        return r;
}

static void parse_others(const char *text, size_t size) {
        struct google_account account;
        struct google_token token;
        struct store_failure failure;
        struct gcs_error error;
        const char *why;

        gcs_error_parse(text, size, &error);
        MUST(memchr(error.reason, '\0', sizeof(error.reason)));
        google_token_refusal(text, size, 400, "somebody", &failure);
        MUST(failure.class != STORE_OK);
        if (google_token_parse(text, size, 0, &token) == 0)
                secret_free(token.text);
        if (google_account_parse(&account, text, size, &why) == 0)
                google_account_deinit(&account);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct digest whole = { 0 }, cut = { 0 };

        if (size == 0)
                return 0;
        MUST(parse(data + 1, size - 1, size - 1, &whole) ==
             parse(data + 1, size - 1, data[0] % size, &cut));
        MUST(whole.value == cut.value && whole.count == cut.count);
        parse_others((const char *)data + 1, size - 1);
        return 0;
}
