/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/store/page_harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

char page_given[16384];
char *page_token;

static void give(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void give(const char *format, ...) {
        size_t size = strlen(page_given);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(page_given + size, sizeof(page_given) - size, format, arguments);
        va_end(arguments);
}

static void on_object(void *userdata, const struct object_row *row) {
        (void)userdata;
        give("%s|%lld|%lld|%s%s%s\n", row->key, (long long)row->size_bytes,
             row->mtime_ns == INT64_MIN ? -1 : (long long)(row->mtime_ns / 1000000), row->tag,
             row->is_archived ? "|archived" : "", row->is_directory ? "|directory" : "");
}

static void on_prefix(void *userdata, const char *prefix, size_t size) {
        (void)userdata;
        give("%.*s\n", (int)size, prefix);
}

const struct object_page_events page_events = { on_object, on_prefix };

int page_parse(const struct object_dialect *dialect, const char *text, size_t size, size_t piece) {
        void *page;
        int r = dialect->page_new(&page_events, NULL, &page);

        if (r < 0)
                return r;
        page_given[0] = '\0';
        free(page_token);
        page_token = NULL;
        for (size_t at = 0; r == 0 && at < size; at += piece)
                r = dialect->page_feed(page, (const uint8_t *)text + at, min_u64(piece, size - at));
        if (r == 0)
                r = dialect->page_end(page, &page_token);
        dialect->page_free(page);
        return r;
}
