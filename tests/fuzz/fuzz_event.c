/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an Event: accepted or not, all its values are gone through, and their payloads
 * written into just the memory they ask for.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "daemon/decode/event.h"
#include "daemon/decode/payload.h"

/* what is repeated to fill a shape can be much larger than the input */
#define PAYLOAD_MOST (1u << 20)

static void look_at(const struct extent_payload_view *view) {
        for (uint32_t i = 0; view->end_offset && i < view->element_count; i++) {
                struct extent_string string = extent_payload_string(view, i);

                MUST(string.size == 0 ||
                     string.bytes[string.size - 1] == string.bytes[string.size - 1]);
        }
}

/* The payload as a reader sees it: in an image that is nothing else. */
static void read_back(const struct payload *payload, uint8_t *memory, uint64_t size) {
        struct extent_view view = { .bytes = memory, .size_bytes = size };
        struct extent_record record = { .kind = payload->kind,
                                        .dtype = payload->dtype,
                                        .payload_size = size };
        struct extent_payload_view found;

        MUST(extent_view_payload(&view, &record, &found) == 0);
        look_at(&found);
}

static void write_payload(const struct event_value *value) {
        CLEANUP(freep) uint8_t *memory = NULL;
        struct payload payload;

        payload_plan(value, &payload);
        if (payload.bytes == 0 || payload.bytes > PAYLOAD_MOST)
                return;
        MUST(posix_memalign((void **)&memory, 64, payload.bytes) == 0);
        payload_write(&payload, memory);
        read_back(&payload, memory, payload.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const struct event_value *value;
        struct event_cursor cursor;
        struct event event;
        uint32_t count = 0;

        if (event_decode(data, size, &event))
                return 0;
        event_cursor_init(&cursor, &event);
        while ((value = event_cursor_next(&cursor))) {
                write_payload(value);
                count++;
        }
        MUST(count == event.value_count);
        return 0;
}
