/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common Event (wall time, step, one summary with one simple value) is read in one pass. Everything that a parser would look
 * into is looked into before the first value is given out; the values of a larger summary are read again one by one.
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
        struct protobuf_field field;

        while (protobuf_next(&reader, parts->depth, &field)) {
                if (field.key != parts->key)
                        continue;
                parts->rest = (struct protobuf_bytes){ reader.at, (uint64_t)(reader.end - reader.at) };
                *ret_part = field.bytes;
                return true;
        }
        parts->rest.size = 0;
        return false;
}

static struct event_parts parts_from(const uint8_t *begin, const struct protobuf_reader *reader, uint32_t key, unsigned depth) {
        return (struct event_parts){ { begin, (uint64_t)(reader->end - begin) }, key, depth };
}

static void read_plugin_data(struct protobuf_bytes bytes, struct event_value *value) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        while (protobuf_next(&reader, IN_VALUE_DEPTH + 1, &field)) {
                if (field.key == BYTES(1))
                        value->plugin = field.bytes;
                else if (field.key == BYTES(2))
                        value->content = field.bytes;
        }
}

static void read_metadata(struct protobuf_bytes bytes, struct event_value *value) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        value->has_metadata = true;
        while (protobuf_next(&reader, IN_VALUE_DEPTH, &field)) {
                switch (field.key) {
                case BYTES(1):
                        read_plugin_data(field.bytes, value);
                        break;
                case BYTES(2):
                        value->display_name = field.bytes;
                        break;
                case BYTES(3):
                        value->description = field.bytes;
                        break;
                case VARINT(4):
                        value->data_class = (uint32_t)field.value;
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

/* A message of the oneof: the same one again merges with what is there, another one takes its place. */
static bool read_value_message(const struct protobuf_field *field, const uint8_t *begin, const struct protobuf_reader *reader,
                               struct event_value *value) {
        uint32_t number = field->key >> 3;

        if (value->written_as != value_messages[number].written_as) {
                value->written_as = value_messages[number].written_as;
                value->parts = parts_from(begin, reader, field->key, VALUE_DEPTH);
        }
        return event_schema_accepts(value_messages[number].message, field->bytes, IN_VALUE_DEPTH);
}

static bool read_value(struct protobuf_bytes bytes, struct event_value *value) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;
        const uint8_t *begin = reader.at;

        for (; protobuf_next(&reader, VALUE_DEPTH, &field); begin = reader.at) {
                switch (field.key) {
                case BYTES(1):
                        value->tag = field.bytes;
                        break;
                case FIXED32(2):
                        value->written_as = EXTENT_WRITTEN_SIMPLE_VALUE;
                        value->simple_value = (uint32_t)field.value;
                        break;
                case BYTES(3):
                        value->written_as = EXTENT_WRITTEN_OLD_HISTOGRAM;
                        value->data = field.bytes;
                        break;
                case BYTES(4):
                case BYTES(5):
                case BYTES(6):
                case BYTES(8):
                        if (!read_value_message(&field, begin, &reader, value))
                                return false;
                        break;
                case BYTES(9):
                        if (!event_schema_accepts(EVENT_MESSAGE_VALUE_METADATA, field.bytes, IN_VALUE_DEPTH))
                                return false;
                        read_metadata(field.bytes, value);
                        break;
                }
        }
        return !reader.malformed;
}

static const struct event_value no_value = { .tag = { run_graph_tag, 0 } };

/* Looks at all values of one Summary; the first of the Event is kept. */
static bool read_summary(struct protobuf_bytes bytes, struct event *event) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        while (protobuf_next(&reader, SUMMARY_DEPTH, &field)) {
                struct event_value other = no_value;
                bool is_first = event->value_count == 0;

                if (field.key != BYTES(1))
                        continue;
                if (is_first)
                        event->first = no_value;
                if (!read_value(field.bytes, is_first ? &event->first : &other))
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
                event->first = no_value;
                event->first.written_as = EXTENT_WRITTEN_RUN_METADATA;
                event->first.data.at = bytes.at;
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

/* Another member of the Event's oneof takes the place of what is there. member is the field's key. */
static void set_member(struct event *event, uint32_t *member, uint32_t key, enum event_what what) {
        if (*member == key)
                return;
        *member = key;
        event->what = what;
        event->value_count = 0;
        event->session_status = 0;
        event->summaries.rest.size = 0;
}

static bool read_member(struct event *event, uint32_t *member, const struct protobuf_field *field, const uint8_t *begin,
                        const struct protobuf_reader *reader) {
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
                return event_schema_accepts(EVENT_MESSAGE_LOG_MESSAGE, field->bytes, EVENT_DEPTH + 1);
        case BYTES(7):
                set_member(event, member, field->key, EVENT_SESSION_LOG);
                read_session_log(field->bytes, event);
                return event_schema_accepts(EVENT_MESSAGE_SESSION_LOG, field->bytes, EVENT_DEPTH + 1);
        case BYTES(8):
                set_member(event, member, field->key, EVENT_VALUES);
                read_run_metadata(field->bytes, event);
                return event_schema_accepts(EVENT_MESSAGE_RUN_METADATA, field->bytes, EVENT_DEPTH + 1);
        case BYTES(9):
                set_member(event, member, field->key, EVENT_NO_VALUE);
                return true;
        case BYTES(10):
                return event_schema_accepts(EVENT_MESSAGE_SOURCE_METADATA, field->bytes, EVENT_DEPTH + 1);
        default:
                return true;
        }
}

int event_decode(const uint8_t *payload, uint64_t size_bytes, struct event *ret_event) {
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

void event_cursor_init(struct event_cursor *cursor, const struct event *event) {
        *cursor = (struct event_cursor){ .event = event, .summaries = event->summaries };
}

/* The next Value of the summaries that merge. */
static bool next_value(struct event_cursor *cursor, struct protobuf_bytes *ret_bytes) {
        struct protobuf_bytes summary;
        struct protobuf_field field;

        for (;;) {
                while (protobuf_next(&cursor->summary, SUMMARY_DEPTH, &field)) {
                        if (field.key != BYTES(1))
                                continue;
                        *ret_bytes = field.bytes;
                        return true;
                }
                if (!event_parts_next(&cursor->summaries, &summary))
                        return false;
                cursor->summary = protobuf_reader_of(summary);
        }
}

bool event_cursor_next(struct event_cursor *cursor, struct event_value *ret_value) {
        struct protobuf_bytes bytes;

        if (cursor->index >= cursor->event->value_count)
                return false;
        if (cursor->event->value_count == 1) {
                *ret_value = cursor->event->first;
        } else {
                *ret_value = no_value;
                if (!next_value(cursor, &bytes) || !read_value(bytes, ret_value))
                        return false;
        }
        cursor->index++;
        return true;
}

static bool is_in_parts(const struct event_value *value) {
        return value->written_as == EXTENT_WRITTEN_IMAGE || value->written_as == EXTENT_WRITTEN_HISTOGRAM ||
               value->written_as == EXTENT_WRITTEN_AUDIO || value->written_as == EXTENT_WRITTEN_TENSOR;
}

uint64_t event_value_blob_size(const struct event_value *value) {
        struct event_parts parts = value->parts;
        struct protobuf_bytes part;
        uint64_t size = 0;

        if (!is_in_parts(value))
                return value->data.size;
        while (event_parts_next(&parts, &part))
                size += part.size;
        return size;
}

void event_value_blob_copy(const struct event_value *value, uint8_t *ret_bytes) {
        struct event_parts parts = value->parts;
        struct protobuf_bytes part;

        if (!is_in_parts(value)) {
                memcpy(ret_bytes, value->data.at, value->data.size);
                return;
        }
        while (event_parts_next(&parts, &part)) {
                memcpy(ret_bytes, part.at, part.size);
                ret_bytes += part.size;
        }
}
