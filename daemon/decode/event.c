/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common Event (wall time, step, one summary with one simple value) is read in one pass, without
 * a loop over fields where they stand as writers put them. Everything that a parser would look into
 * is looked into before the first value is given out; the values of a larger summary are read again
 * one by one.
 */
#include "daemon/decode/event.h"

#include <string.h>

#include "daemon/decode/event_schema.h"

#define EVENT_DEPTH 0
#define SUMMARY_DEPTH 1
#define VALUE_DEPTH 2
#define IN_VALUE_DEPTH 3

#define VARINT(number) PROTOBUF_KEY(number, PROTOBUF_VARINT)
#define FIXED64(number) PROTOBUF_KEY(number, PROTOBUF_FIXED64)
#define FIXED32(number) PROTOBUF_KEY(number, PROTOBUF_FIXED32)
#define BYTES(number) PROTOBUF_KEY(number, PROTOBUF_BYTES)

static const uint8_t run_graph_tag[] = "__run_graph__";

bool event_parts_next(struct event_parts *parts, struct protobuf_bytes *ret_part) {
        struct protobuf_reader reader = protobuf_reader_of(parts->rest);
        struct protobuf_field field = { 0 };

        while (protobuf_next(&reader, parts->depth, &field)) {
                if (field.key != parts->key)
                        continue;
                parts->rest = (struct protobuf_bytes){ reader.at,
                                                       (uint64_t)(reader.end - reader.at) };
                *ret_part = field.bytes;
                return true;
        }
        parts->rest.size = 0;
        return false;
}

static struct event_parts parts_from(const uint8_t *begin, const struct protobuf_reader *reader,
                                     uint32_t key, unsigned depth) {
        return (struct event_parts){ { begin, (uint64_t)(reader->end - begin) }, key, depth };
}

static void read_plugin_data(struct protobuf_bytes bytes, struct event_metadata *metadata) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        while (protobuf_next(&reader, IN_VALUE_DEPTH + 1, &field)) {
                if (field.key == BYTES(1))
                        metadata->plugin = field.bytes;
                else if (field.key == BYTES(2))
                        metadata->content = field.bytes;
        }
}

static void read_metadata(struct protobuf_bytes bytes, struct event_metadata *metadata) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        while (protobuf_next(&reader, IN_VALUE_DEPTH, &field)) {
                switch (field.key) {
                case BYTES(1):
                        read_plugin_data(field.bytes, metadata);
                        break;
                case BYTES(2):
                        metadata->display_name = field.bytes;
                        break;
                case BYTES(3):
                        metadata->description = field.bytes;
                        break;
                case VARINT(4):
                        metadata->data_class = (uint32_t)field.value;
                        break;
                }
        }
}

/* The members of the value's oneof that are messages. */
static const struct {
        uint8_t written_as, message;
} value_messages[] = {
        [4] = { EXTENT_WRITTEN_IMAGE, EVENT_MESSAGE_IMAGE },
        [5] = { EXTENT_WRITTEN_HISTOGRAM, EVENT_MESSAGE_HISTOGRAM },
        [6] = { EXTENT_WRITTEN_AUDIO, EVENT_MESSAGE_AUDIO },
        [8] = { EXTENT_WRITTEN_TENSOR, EVENT_MESSAGE_TENSOR },
};

/*
 * A message of the oneof: the same one again merges with what is there, another one takes its
 * place.
 */
static bool read_value_message(struct protobuf_reader *reader, uint32_t key, const uint8_t *begin,
                               struct event_value *value) {
        uint32_t number = key >> 3;
        struct protobuf_bytes bytes;

        if (value->written_as != value_messages[number].written_as) {
                value->written_as = value_messages[number].written_as;
                value->parts = parts_from(begin, reader, key, VALUE_DEPTH);
        }
        return protobuf_delimited(reader, &bytes) &&
               event_schema_accepts(value_messages[number].message, bytes, IN_VALUE_DEPTH);
}

static bool read_value_metadata(struct protobuf_reader *reader, struct event_value *value) {
        struct protobuf_bytes bytes;

        if (!protobuf_delimited(reader, &bytes) ||
            !event_schema_accepts(EVENT_MESSAGE_VALUE_METADATA, bytes, IN_VALUE_DEPTH))
                return false;
        if (!value->has_metadata)
                memset(&value->metadata, 0, sizeof(value->metadata));
        value->has_metadata = true;
        read_metadata(bytes, &value->metadata);
        return true;
}

static bool read_simple_value(struct protobuf_reader *reader, struct event_value *value) {
        uint64_t bits;

        value->written_as = EXTENT_WRITTEN_SIMPLE_VALUE;
        if (!protobuf_fixed(reader, 4, &bits))
                return false;
        value->simple_value = (uint32_t)bits;
        return true;
}

static bool read_value_field(struct protobuf_reader *reader, uint32_t key, const uint8_t *begin,
                             struct event_value *value) {
        struct protobuf_field other = { .key = key };

        switch (key) {
        case BYTES(1):
                return protobuf_delimited(reader, &value->tag);
        case FIXED32(2):
                return read_simple_value(reader, value);
        case BYTES(3):
                value->written_as = EXTENT_WRITTEN_OLD_HISTOGRAM;
                return protobuf_delimited(reader, &value->data);
        case BYTES(4):
        case BYTES(5):
        case BYTES(6):
        case BYTES(8):
                return read_value_message(reader, key, begin, value);
        case BYTES(9):
                return read_value_metadata(reader, value);
        default:
                return protobuf_value(reader, &other, VALUE_DEPTH);
        }
}

/* The fields of an event_value that are always valid. */
static void value_init(struct event_value *value) {
        value->tag = (struct protobuf_bytes){ run_graph_tag, 0 };
        value->written_as = EXTENT_WRITTEN_NONE;
        value->has_metadata = false;
}

static bool read_value(struct protobuf_bytes bytes, struct event_value *value) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        const uint8_t *begin = reader.at;
        uint32_t key;

        value_init(value);
        for (; protobuf_key(&reader, &key); begin = reader.at)
                if (!read_value_field(&reader, key, begin, value))
                        return false;
        return !reader.malformed;
}

/* Looks at all values of one Summary; the first of the Event is kept. */
static bool read_summary(struct protobuf_bytes bytes, struct event *event) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        while (protobuf_next(&reader, SUMMARY_DEPTH, &field)) {
                struct event_value other;

                if (field.key != BYTES(1))
                        continue;
                if (!read_value(field.bytes, event->value_count == 0 ? &event->first : &other))
                        return false;
                event->value_count++;
        }
        return !reader.malformed;
}

static void set_graph(struct protobuf_bytes graph, struct event *event) {
        event->value_count = 1;
        event->first = (struct event_value){
                .tag = { run_graph_tag, sizeof(run_graph_tag) - 1 },
                .written_as = EXTENT_WRITTEN_GRAPH,
                .data = graph,
        };
}

static void read_run_metadata(struct protobuf_bytes bytes, struct event *event) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        if (event->value_count == 0) {
                event->value_count = 1;
                value_init(&event->first);
                event->first.written_as = EXTENT_WRITTEN_RUN_METADATA;
                event->first.data = (struct protobuf_bytes){ bytes.at, 0 };
        }
        while (protobuf_next(&reader, EVENT_DEPTH + 1, &field)) {
                if (field.key == BYTES(1))
                        event->first.tag = field.bytes;
                else if (field.key == BYTES(2))
                        event->first.data = field.bytes;
        }
}

static void read_session_log(struct protobuf_bytes bytes, struct event *event) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        while (protobuf_next(&reader, EVENT_DEPTH + 1, &field))
                if (field.key == VARINT(1))
                        event->session_status = (int32_t)field.value;
}

/*
 * Another member of the Event's oneof takes the place of what is there. member is the field's key.
 */
static void set_member(struct event *event, uint32_t *member, uint32_t key, enum event_what what) {
        if (*member == key)
                return;
        *member = key;
        event->what = what;
        event->value_count = 0;
        event->session_status = 0;
        event->summaries.rest.size = 0;
}

static bool read_member(struct event *event, uint32_t *member, const struct protobuf_field *field,
                        const uint8_t *begin, const struct protobuf_reader *reader) {
        switch (field->key) {
        case BYTES(3):
                set_member(event, member, field->key, EVENT_FILE_VERSION);
                return true;
        case BYTES(4):
                set_member(event, member, field->key, EVENT_VALUES);
                set_graph(field->bytes, event);
                return true;
        case BYTES(5):
                if (*member != field->key) {
                        set_member(event, member, field->key, EVENT_VALUES);
                        event->summaries = parts_from(begin, reader, field->key, EVENT_DEPTH);
                }
                return read_summary(field->bytes, event);
        case BYTES(6):
                set_member(event, member, field->key, EVENT_NO_VALUE);
                return event_schema_accepts(EVENT_MESSAGE_LOG_MESSAGE, field->bytes,
                                            EVENT_DEPTH + 1);
        case BYTES(7):
                set_member(event, member, field->key, EVENT_SESSION_LOG);
                read_session_log(field->bytes, event);
                return event_schema_accepts(EVENT_MESSAGE_SESSION_LOG, field->bytes,
                                            EVENT_DEPTH + 1);
        case BYTES(8):
                set_member(event, member, field->key, EVENT_VALUES);
                read_run_metadata(field->bytes, event);
                return event_schema_accepts(EVENT_MESSAGE_RUN_METADATA, field->bytes,
                                            EVENT_DEPTH + 1);
        case BYTES(9):
                set_member(event, member, field->key, EVENT_NO_VALUE);
                return true;
        case BYTES(10):
                return event_schema_accepts(EVENT_MESSAGE_SOURCE_METADATA, field->bytes,
                                            EVENT_DEPTH + 1);
        default:
                return true;
        }
}

/* ---- One number as writers put it ------------------------------------------------------------ */

#define WALL_TIME_BYTES 9 /* with its key, as all of these */
#define SIMPLE_VALUE_BYTES 5
#define BEFORE_TAG_BYTES 6 /* keys and sizes of summary, value and tag, one byte each */

#define SUMMARY_BYTES_LEAST (BEFORE_TAG_BYTES + SIMPLE_VALUE_BYTES)

/*
 * A varint that ten bytes may be read of; that it has no pointer to a pointer keeps all in
 * registers. NULL: it is longer.
 */
static const uint8_t *read_step(const uint8_t *at, uint64_t *ret_step) {
        uint64_t step = *at & 0x7f;

        for (unsigned shift = 7; *at++ >= 0x80; shift += 7) {
                if (shift > 63)
                        return NULL;
                step |= (uint64_t)(*at & 0x7f) << shift;
        }
        *ret_step = step;
        return at;
}

/*
 * summary{value{tag, simple_value}} and nothing else: every byte from `at` on is accounted for, with
 * sizes of one byte. The tag is then what lies between.
 */
static bool is_scalar_summary(const uint8_t *at, uint64_t size) {
        return size >= SUMMARY_BYTES_LEAST && size < 0x82 && at[0] == BYTES(5) &&
               at[1] == size - 2 && at[2] == BYTES(1) && at[3] == size - 4 && at[4] == BYTES(1) &&
               at[5] == size - BEFORE_TAG_BYTES - SIMPLE_VALUE_BYTES &&
               at[size - SIMPLE_VALUE_BYTES] == FIXED32(2);
}

/*
 * An Event of a wall time, a step unless it is 0, and one number, in the order of their field
 * numbers: nearly every Event there is. False: it is another, or has its fields in another order.
 */
static bool read_scalar(const uint8_t *payload, uint64_t size_bytes, struct event *event) {
        const uint8_t *at = payload + WALL_TIME_BYTES, *end = payload + size_bytes;
        uint64_t step = 0, size;

        if (size_bytes < WALL_TIME_BYTES + SUMMARY_BYTES_LEAST || payload[0] != FIXED64(1))
                return false;
        if (*at == VARINT(2) && !(at = read_step(at + 1, &step)))
                return false;
        size = (uint64_t)(end - at);
        if (at > end || !is_scalar_summary(at, size))
                return false;
        memcpy(&event->wall_time, payload + 1, sizeof(event->wall_time));
        event->step = (int64_t)step;
        event->what = EVENT_VALUES;
        event->session_status = 0;
        event->value_count = 1;
        event->first.tag.at = at + BEFORE_TAG_BYTES;
        event->first.tag.size = size - BEFORE_TAG_BYTES - SIMPLE_VALUE_BYTES;
        event->first.written_as = EXTENT_WRITTEN_SIMPLE_VALUE;
        event->first.has_metadata = false;
        memcpy(&event->first.simple_value, end - 4, 4);
        event->summaries.rest.size = 0;
        return true;
}

/* ---- Any Event ------------------------------------------------------------------------------- */

/* Not a part of event_decode(): what it must save and make room for would be paid for each number. */
__attribute__((noinline)) static int read_event(const uint8_t *payload, uint64_t size_bytes,
                                                struct event *ret_event) {
        struct protobuf_reader reader = { payload, payload + size_bytes, false };
        struct protobuf_field field;
        const uint8_t *begin = payload;
        uint32_t member = 0;

        ret_event->wall_time = 0;
        ret_event->step = 0;
        ret_event->what = EVENT_EMPTY;
        ret_event->session_status = 0;
        ret_event->value_count = 0;
        ret_event->summaries.rest.size = 0;
        for (; protobuf_next(&reader, EVENT_DEPTH, &field); begin = reader.at) {
                if (field.key == FIXED64(1))
                        memcpy(&ret_event->wall_time, &field.value, sizeof(double));
                else if (field.key == VARINT(2))
                        ret_event->step = (int64_t)field.value;
                else if (!read_member(ret_event, &member, &field, begin, &reader))
                        return STAGE_CORRUPT;
        }
        return reader.malformed ? STAGE_CORRUPT : 0;
}

int event_decode(const uint8_t *payload, uint64_t size_bytes, struct event *ret_event) {
        return read_scalar(payload, size_bytes, ret_event)
                       ? 0
                       : read_event(payload, size_bytes, ret_event);
}

void event_cursor_init(struct event_cursor *cursor, const struct event *event) {
        cursor->event = event;
        cursor->index = 0;
        if (event->value_count < 2)
                return; /* it is event->first */
        cursor->summaries = event->summaries;
        cursor->summary = (struct protobuf_reader){ NULL, NULL, false };
}

static struct protobuf_bytes rest_of(const struct protobuf_reader *reader) {
        return (struct protobuf_bytes){ reader->at, (uint64_t)(reader->end - reader->at) };
}

/* The next Value of the summaries that merge. */
static bool next_value(struct event_cursor *cursor, struct protobuf_bytes *ret_bytes) {
        struct protobuf_bytes summary;
        struct protobuf_field field;

        for (;;) {
                for (;;) {
                        cursor->from_value = rest_of(&cursor->summary);
                        if (!protobuf_next(&cursor->summary, SUMMARY_DEPTH, &field))
                                break;
                        if (field.key != BYTES(1))
                                continue;
                        cursor->behind_summary = cursor->summaries.rest;
                        *ret_bytes = field.bytes;
                        return true;
                }
                if (!event_parts_next(&cursor->summaries, &summary))
                        return false;
                cursor->summary = protobuf_reader_of(summary);
        }
}

void event_cursor_place(const struct event_cursor *cursor, const uint8_t *payload,
                        struct event_place *ret_place) {
        const struct event *event = cursor->event;
        uint64_t value_at = (uint64_t)(cursor->from_value.at - payload);

        MUST(cursor->index > 0 && event->value_count > 1);
        *ret_place = (struct event_place){
                .wall_time = event->wall_time,
                .step = event->step,
                .value_count = event->value_count,
                .index = cursor->index - 1,
                .value_at = value_at,
                .value_end = value_at + cursor->from_value.size,
                .summaries_at = (uint64_t)(cursor->behind_summary.at - payload),
        };
}

void event_cursor_resume(struct event_cursor *cursor, struct event *ret_event,
                         const uint8_t *payload, uint64_t size_bytes,
                         const struct event_place *place) {
        MUST(place->value_at <= place->value_end && place->value_end <= size_bytes &&
             place->summaries_at <= size_bytes);
        *ret_event = (struct event){
                .wall_time = place->wall_time,
                .step = place->step,
                .what = EVENT_VALUES,
                .value_count = place->value_count,
                .summaries = { { payload + place->summaries_at, size_bytes - place->summaries_at },
                               BYTES(5),
                               EVENT_DEPTH },
        };
        event_cursor_init(cursor, ret_event);
        cursor->index = place->index;
        cursor->summary = (struct protobuf_reader){ payload + place->value_at,
                                                    payload + place->value_end, false };
}

const struct event_value *event_cursor_next(struct event_cursor *cursor) {
        struct protobuf_bytes bytes;

        if (cursor->index >= cursor->event->value_count)
                return NULL;
        cursor->index++;
        if (cursor->event->value_count == 1)
                return &cursor->event->first;
        return next_value(cursor, &bytes) && read_value(bytes, &cursor->value) ? &cursor->value
                                                                               : NULL;
}

uint64_t event_value_message_size(const struct event_value *value) {
        struct event_parts parts = value->parts;
        struct protobuf_bytes part;
        uint64_t size = 0;

        while (event_parts_next(&parts, &part))
                size += part.size;
        return size;
}

void event_value_message_copy(const struct event_value *value, uint8_t *ret_bytes) {
        struct event_parts parts = value->parts;
        struct protobuf_bytes part;

        while (event_parts_next(&parts, &part)) {
                protobuf_copy(ret_bytes, part);
                ret_bytes += part.size;
        }
}
