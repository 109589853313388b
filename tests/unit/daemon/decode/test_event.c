/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hundreds of Events, most of them damaged, against what TensorBoard's own protobuf classes read in
 * them (tests/data/events): the same are accepted, and the same values come out.
 */
#include "daemon/decode/event.h"

#include <jansson.h>
#include <math.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "daemon/decode/payload.h"
#include "tests/unit/runner.h"

#define VERDICTS "tests/data/events/verdicts.jsonl"
#define HEX_MOST 8192

static const char *const written_names[] = {
        [EXTENT_WRITTEN_NONE] = "none",
        [EXTENT_WRITTEN_SIMPLE_VALUE] = "simple_value",
        [EXTENT_WRITTEN_TENSOR] = "tensor",
        [EXTENT_WRITTEN_IMAGE] = "image",
        [EXTENT_WRITTEN_HISTOGRAM] = "histo",
        [EXTENT_WRITTEN_AUDIO] = "audio",
        [EXTENT_WRITTEN_OLD_HISTOGRAM] = "obsolete_old_style_histogram",
};

static const char *text(const json_t *line, const char *member) {
        const char *value = json_string_value(json_object_get(line, member));

        return value ? value : "";
}

static void hex_of(const void *bytes, size_t size, char *ret_hex) {
        ck_assert_uint_lt(2 * size, HEX_MOST);
        for (size_t i = 0; i < size; i++)
                sprintf(ret_hex + 2 * i, "%02x", ((const uint8_t *)bytes)[i]);
        ret_hex[2 * size] = '\0';
}

static size_t bytes_of(const char *hex, uint8_t *ret_bytes) {
        size_t size = strlen(hex) / 2;
        unsigned byte;

        for (size_t i = 0; i < size; i++) {
                ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
                ret_bytes[i] = (uint8_t)byte;
        }
        return size;
}

static void check_hex(const void *bytes, size_t size, const char *expected, const char *what) {
        char hex[HEX_MOST];

        hex_of(bytes, size, hex);
        ck_assert_msg(strcmp(hex, expected) == 0, "%s: %s, expected %s", what, hex, expected);
}

static void check_elements(const struct extent_payload_view *view, const char *expected,
                           const char *what) {
        CLEANUP(freep)
        uint8_t *canonical = malloc(view->elements_size + 8ull * view->element_count + 1);
        uint8_t digest[SHA256_DIGEST_LENGTH];
        size_t size = 0;

        if (view->element_bytes) {
                memcpy(canonical, view->elements, view->elements_size);
                size = view->elements_size;
        }
        for (uint32_t i = 0; view->end_offset && i < view->element_count; i++) {
                struct extent_string string = extent_payload_string(view, i);

                memcpy(canonical + size, &string.size, 8);
                memcpy(canonical + size + 8, string.bytes, string.size);
                size += 8 + string.size;
        }
        SHA256(canonical, size, digest);
        check_hex(digest, sizeof(digest), expected, what);
}

/* What the value becomes, against a tensor as the verdicts tell it. */
static void check_payload(const struct event_value *value, const json_t *expected,
                          const char *what) {
        CLEANUP(freep) uint8_t *memory = NULL;
        const json_t *shape = json_object_get(expected, "shape");
        json_int_t dtype = json_integer_value(json_object_get(expected, "dtype"));
        struct extent_payload_view view;
        struct extent_record record;
        struct payload payload;

        payload_plan(value, &payload);
        ck_assert_msg(payload.dtype == (dtype >= 0 && dtype < 256 ? dtype : 0), "%s: dtype %u",
                      what, payload.dtype);
        ck_assert_msg(!(payload.flags & EXTENT_RECORD_MALFORMED) ==
                              !json_is_true(json_object_get(expected, "malformed")),
                      "%s: malformed", what);
        memory = aligned_alloc(64, align_up(payload.bytes, 64));
        memset(memory, 0xaa, align_up(payload.bytes, 64));
        payload_write(&payload, memory);
        record = (struct extent_record){ .kind = payload.kind, .payload_size = payload.bytes };
        ck_assert_int_eq(extent_view_payload(&(struct extent_view){ .bytes = memory,
                                                                    .size_bytes = payload.bytes },
                                             &record, &view),
                         0);
        ck_assert_uint_eq(view.malformed, payload.flags & EXTENT_RECORD_MALFORMED ? 1 : 0);
        if (view.rank_known)
                ck_assert_uint_eq(view.rank, json_array_size(shape));
        else
                ck_assert(!json_is_array(shape));
        for (unsigned i = 0; i < view.rank; i++)
                ck_assert_int_eq(view.dimension[i], json_integer_value(json_array_get(shape, i)));
        check_elements(&view, text(expected, "sha256"), what);
}

static void check_metadata(const struct event_value *value, const json_t *expected,
                           const char *what) {
        const struct event_metadata *metadata = &value->metadata;

        ck_assert_msg(value->has_metadata == json_is_array(expected), "%s: metadata", what);
        if (!value->has_metadata)
                return;
        check_hex(metadata->plugin.at, metadata->plugin.size,
                  json_string_value(json_array_get(expected, 0)), what);
        check_hex(metadata->content.at, metadata->content.size,
                  json_string_value(json_array_get(expected, 1)), what);
        check_hex(metadata->display_name.at, metadata->display_name.size,
                  json_string_value(json_array_get(expected, 2)), what);
        check_hex(metadata->description.at, metadata->description.size,
                  json_string_value(json_array_get(expected, 3)), what);
        ck_assert_uint_eq(metadata->data_class,
                          (uint32_t)json_integer_value(json_array_get(expected, 4)));
}

/* A legacy value in its modern form; as it was written where it has none. */
static void check_legacy(const struct event_value *value, const json_t *modern, const char *what) {
        CLEANUP(freep) uint8_t *memory = NULL, *message = NULL;
        struct payload payload;
        uint64_t size;

        payload_plan(value, &payload);
        ck_assert_msg(payload.flags == (json_is_null(modern) ? EXTENT_RECORD_CARRIED
                                                             : EXTENT_RECORD_CONVERTED),
                      "%s: flags %u", what, payload.flags);
        if (!json_is_null(modern)) {
                check_payload(value, modern, what);
                return;
        }
        memory = aligned_alloc(64, align_up(payload.bytes, 64));
        payload_write(&payload, memory);
        size = event_value_message_size(value);
        message = malloc(size + 1);
        event_value_message_copy(value, message);
        ck_assert_uint_eq(payload.kind, EXTENT_KIND_BLOBS);
        ck_assert_uint_eq(payload.bytes, 64 + 8 + size);
        ck_assert_int_eq(memcmp(memory + 64, &size, 8), 0);
        ck_assert_int_eq(memcmp(memory + 64 + 8, message, size), 0);
}

static uint32_t quiet(uint32_t bits) {
        return (bits & 0x7f800000u) == 0x7f800000u && bits & 0x7fffffu ? bits | 0x400000u : bits;
}

static void check_value(const struct event_value *value, const json_t *expected, const char *what) {
        check_hex(value->tag.at, value->tag.size, text(expected, "tag"), what);
        ck_assert_msg(strcmp(written_names[value->written_as], text(expected, "written")) == 0,
                      "%s: written as %s", what, written_names[value->written_as]);
        check_metadata(value, json_object_get(expected, "metadata"), what);
        if (value->written_as == EXTENT_WRITTEN_SIMPLE_VALUE)
                ck_assert_uint_eq(quiet(value->simple_value),
                                  json_integer_value(json_object_get(expected, "bits")));
        if (value->written_as == EXTENT_WRITTEN_TENSOR)
                check_payload(value, json_object_get(expected, "tensor"), what);
        if (json_object_get(expected, "modern"))
                check_legacy(value, json_object_get(expected, "modern"), what);
}

static void check_values(const struct event *event, const json_t *line, const char *what) {
        const json_t *values = json_object_get(line, "values");
        const struct event_value *value;
        struct event_cursor cursor;
        size_t count = 0;

        event_cursor_init(&cursor, event);
        while ((value = event_cursor_next(&cursor))) {
                ck_assert_msg(count < json_array_size(values), "%s: more values than expected",
                              what);
                check_value(value, json_array_get(values, count++), what);
        }
        ck_assert_msg(count == json_array_size(values), "%s: %zu values", what, count);
}

/* A graph or run metadata: one value, whose data are these bytes. */
static void check_blob(const struct event *event, uint8_t written_as, const char *tag,
                       const json_t *line, const char *what) {
        const struct protobuf_bytes *data = &event->first.data;

        ck_assert_uint_eq(event->value_count, 1);
        ck_assert_uint_eq(event->first.written_as, written_as);
        check_hex(event->first.tag.at, event->first.tag.size, tag, what);
        check_hex(data->at, data->size, text(line, "data"), what);
}

static void check_what(const struct event *event, const json_t *line, const char *what) {
        const char *name = text(line, "what");

        if (strcmp(name, "summary") == 0) {
                check_values(event, line, what);
        } else if (strcmp(name, "graph_def") == 0) {
                check_blob(event, EXTENT_WRITTEN_GRAPH, "5f5f72756e5f67726170685f5f", line, what);
        } else if (strcmp(name, "tagged_run_metadata") == 0) {
                check_blob(event, EXTENT_WRITTEN_RUN_METADATA, text(line, "tag"), line, what);
        } else {
                ck_assert_uint_eq(event->value_count, 0);
                ck_assert_msg((event->what == EVENT_FILE_VERSION) ==
                                      (strcmp(name, "file_version") == 0),
                              "%s: file version", what);
                ck_assert_msg((event->what == EVENT_SESSION_LOG) ==
                                      (strcmp(name, "session_log") == 0),
                              "%s: session log", what);
                ck_assert_int_eq(event->session_status,
                                 json_integer_value(json_object_get(line, "status")));
        }
}

/* The wall time, NaN for NaN: Python may change which one it is. */
static void check_wall_time(double wall_time, const char *expected, const char *what) {
        uint8_t bytes[8];
        double wanted;

        bytes_of(expected, bytes);
        memcpy(&wanted, bytes, sizeof(wanted));
        if (!isnan(wanted) || !isnan(wall_time))
                check_hex(&wall_time, sizeof(wall_time), expected, what);
}

static void check_event(const json_t *line, unsigned number) {
        const char *hex = text(line, "payload");
        CLEANUP(freep) uint8_t *payload = malloc(strlen(hex) / 2 + 1);
        size_t size = bytes_of(hex, payload);
        struct event event;
        char what[32];
        int r;

        payload = realloc(payload, size ? size : 1); /* so that a read past its end is seen */
        snprintf(what, sizeof(what), "line %u", number);
        r = event_decode(payload, size, &event);
        ck_assert_msg((r == 0) == json_is_true(json_object_get(line, "accepted")), "%s: %s", what,
                      r ? "refused" : "accepted");
        if (r)
                return;
        ck_assert_int_eq(event.step, json_integer_value(json_object_get(line, "step")));
        check_wall_time(event.wall_time, text(line, "wall_time"), what);
        check_what(&event, line, what);
}

START_TEST(as_tensorboard_reads_it) {
        FILE *file = fopen(VERDICTS, "re");
        unsigned number = 0;
        char *line = NULL;
        size_t space = 0;

        ck_assert_ptr_nonnull(file);
        while (getline(&line, &space, file) > 0) {
                json_t *parsed = json_loads(line, 0, NULL);

                ck_assert_ptr_nonnull(parsed);
                check_event(parsed, ++number);
                json_decref(parsed);
        }
        ck_assert_uint_gt(number, 1500);
        free(line);
        fclose(file);
}
END_TEST

/* ---- One number: the short way and the long one ----------------------------------------------- */

#define UNKNOWN_FIELD_BYTES 2 /* field 15, a varint: what the short way does not know */
#define SCALAR_BYTES_MOST 400

static uint8_t *put(uint8_t *at, const void *bytes, size_t size) {
        memcpy(at, bytes, size);
        return at + size;
}

static uint8_t *put_size(uint8_t *at, size_t size) {
        if (size >= 0x80)
                *at++ = (uint8_t)(size | 0x80);
        *at++ = (uint8_t)(size >= 0x80 ? size >> 7 : size);
        return at;
}

/* step: as it is on the wire, with its key. */
static size_t make_scalar(const char *step, size_t step_size, size_t tag_size, uint8_t *ret_bytes) {
        size_t value = 1 + (tag_size < 0x80 ? 1 : 2) + tag_size + 5;
        size_t summary = 1 + (value < 0x80 ? 1 : 2) + value;
        uint8_t *at = put(ret_bytes, "\x09\x00\x00\xe0\xa9\x84\x8c\xd9\x41", 9);

        at = put(at, step, step_size);
        *at++ = 0x2a;
        at = put_size(at, summary);
        *at++ = 0x0a;
        at = put_size(at, value);
        *at++ = 0x0a;
        at = put_size(at, tag_size);
        memset(at, 't', tag_size);
        at = put(at + tag_size, "\x15\x00\x00\x80\x3f", 5);
        return (size_t)(at - ret_bytes);
}

/* The same bytes, and behind a field that says nothing: the same Event. */
static void check_both_ways(const uint8_t *bytes, size_t size) {
        uint8_t longer[UNKNOWN_FIELD_BYTES + SCALAR_BYTES_MOST] = { 0x78, 0 };
        struct event one, other;
        int r = event_decode(bytes, size, &one);

        memcpy(longer + UNKNOWN_FIELD_BYTES, bytes, size);
        ck_assert_int_eq(r, event_decode(longer, UNKNOWN_FIELD_BYTES + size, &other));
        if (r)
                return;
        ck_assert_int_eq(memcmp(&one.wall_time, &other.wall_time, sizeof(double)), 0);
        ck_assert_int_eq(one.step, other.step);
        ck_assert_int_eq(one.what, other.what);
        ck_assert_int_eq(one.session_status, other.session_status);
        ck_assert_uint_eq(one.value_count, other.value_count);
        if (one.value_count == 0 || one.what != EVENT_VALUES)
                return;
        ck_assert_uint_eq(one.first.written_as, other.first.written_as);
        ck_assert_int_eq(one.first.has_metadata, other.first.has_metadata);
        ck_assert_uint_eq(one.first.tag.size, other.first.tag.size);
        ck_assert_int_eq(memcmp(one.first.tag.at, other.first.tag.at, one.first.tag.size), 0);
        if (event_is_scalar(&one))
                ck_assert_uint_eq(one.first.simple_value, other.first.simple_value);
}

/* Cut anywhere, and with any one bit the other way round. */
static void check_around(const uint8_t *bytes, size_t size) {
        uint8_t wrong[SCALAR_BYTES_MOST];

        for (size_t cut = 0; cut <= size; cut++)
                check_both_ways(bytes, cut);
        for (size_t bit = 0; bit < 8 * size; bit++) {
                memcpy(wrong, bytes, size);
                wrong[bit / 8] ^= (uint8_t)(1u << bit % 8);
                check_both_ways(wrong, size);
        }
}

START_TEST(a_number_is_read_alike_either_way) {
        static const struct {
                const char *bytes;
                size_t size;
                int64_t value; /* INT64_MAX: refused */
        } steps[] = {
                { "", 0, 0 },
                { "\x10\x00", 2, 0 },
                { "\x10\x7f", 2, 127 },
                { "\x10\x80\x01", 3, 128 },
                { "\x10\xff\xff\x03", 4, 65535 },
                { "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, -1 },
                { "\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, INT64_MAX },
        };
        /* sizes around those at which tag, value and summary need two bytes for theirs */
        static const size_t tag_sizes[] = { 0, 1, 17, 117, 118, 119, 120, 121, 122, 127, 128, 300 };
        uint8_t bytes[SCALAR_BYTES_MOST];
        struct event event;

        for (size_t s = 0; s < ARRAY_SIZE(steps); s++)
                for (size_t t = 0; t < ARRAY_SIZE(tag_sizes); t++) {
                        size_t size = make_scalar(steps[s].bytes, steps[s].size, tag_sizes[t],
                                                  bytes);

                        check_around(bytes, size);
                        if (event_decode(bytes, size, &event)) {
                                ck_assert_int_eq(steps[s].value, INT64_MAX);
                                continue;
                        }
                        ck_assert_int_eq(event.step, steps[s].value);
                        ck_assert(event_is_scalar(&event));
                        ck_assert_uint_eq(event.first.tag.size, tag_sizes[t]);
                        ck_assert_uint_eq(event.first.simple_value, 0x3f800000);
                }
}
END_TEST

START_TEST(nothing_is_an_event) {
        struct event event;

        ck_assert_int_eq(event_decode((const uint8_t *)"", 0, &event), 0);
        ck_assert_int_eq(event.what, EVENT_EMPTY);
        ck_assert_uint_eq(event.value_count, 0);
}
END_TEST

RUNNER_MAIN("decode/event", as_tensorboard_reads_it, a_number_is_read_alike_either_way,
            nothing_is_an_event)
