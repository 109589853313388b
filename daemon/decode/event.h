/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Event message and the values in it, in place: everything points into the payload. An Event is
 * taken as a whole or not at all, as a protobuf parser does it: fields in any order, of a field
 * written twice the last one (messages merge), strings that are no UTF-8 as the bytes they are.
 * Pure, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"
#include "common/extent_format.h"
#include "daemon/decode/protobuf.h"

/*
 * All occurrences of one field, from some place of a message on: of a message field they merge to
 * their concatenation.
 */
struct event_parts {
        struct protobuf_bytes rest;
        uint32_t key;
        unsigned depth;
};

struct event_metadata {
        struct protobuf_bytes plugin, content, display_name, description;
        uint32_t data_class; /* as written */
};

/* One value of a series. What it was written as tells which of the fields below are valid. */
struct event_value {
        struct protobuf_bytes tag;
        uint8_t written_as; /* enum extent_written_as */
        bool has_metadata;
        uint32_t simple_value;          /* bits of the float */
        struct protobuf_bytes data;     /* of a graph, run metadata, or old histogram */
        struct event_parts parts;       /* of a tensor, image, histogram or audio message */
        struct event_metadata metadata; /* if has_metadata */
};

enum event_what {
        EVENT_EMPTY = 0,
        EVENT_FILE_VERSION,
        EVENT_SESSION_LOG,
        EVENT_VALUES,   /* a summary (which may be empty), a graph, run metadata */
        EVENT_NO_VALUE, /* a log message, a meta graph */
};

enum event_session_status {
        EVENT_SESSION_START = 1,
        EVENT_SESSION_STOP = 2,
        EVENT_SESSION_CHECKPOINT = 3,
};

struct event {
        double wall_time;
        int64_t step;
        enum event_what what;
        int32_t session_status;
        uint32_t value_count;
        struct event_value first;     /* value 0 if there is one */
        struct event_parts summaries; /* of a summary */
};

/* One number without metadata: all there is to it is its tag and the bits. */
static inline bool event_is_scalar(const struct event *event) {
        return event->value_count == 1 && event->first.written_as == EXTENT_WRITTEN_SIMPLE_VALUE &&
               !event->first.has_metadata;
}

/* STAGE_CORRUPT: no parser would take these bytes as an Event. */
int event_decode(const uint8_t *payload, uint64_t size_bytes, struct event *ret_event);

/* Goes through the values of an Event that event_decode() accepted. */
struct event_cursor {
        const struct event *event;
        struct event_parts summaries;
        struct protobuf_reader summary;
        uint32_t index; /* of the next one */
        /* what is left from the value given last on, and behind its summary */
        struct protobuf_bytes from_value, behind_summary;
        struct event_value value;
};

/*
 * A value between others of its Event, and what else was known of that: reading goes on there
 * without a look at what is before it. value_count 0: no such place.
 */
struct event_place {
        double wall_time;
        int64_t step;
        uint32_t value_count, index;
        /* offsets in the payload: the rest of the value's summary, and what is behind that */
        uint64_t value_at, value_end, summaries_at;
};

void event_cursor_init(struct event_cursor *cursor, const struct event *event);

/* The place of the value that was given last. */
void event_cursor_place(const struct event_cursor *cursor, const uint8_t *payload,
                        struct event_place *ret_place);

/* The Event again (of its `first` value nothing is known) and a cursor before that value. */
void event_cursor_resume(struct event_cursor *cursor, struct event *ret_event,
                         const uint8_t *payload, uint64_t size_bytes,
                         const struct event_place *place);

/* Valid until the next call; NULL: there are no more. */
const struct event_value *event_cursor_next(struct event_cursor *cursor);

/* The next occurrence; false if there is none. */
bool event_parts_next(struct event_parts *parts, struct protobuf_bytes *ret_part);

/* The message that the parts of a value merge to, as its bytes one after the other. */
uint64_t event_value_message_size(const struct event_value *value);
void event_value_message_copy(const struct event_value *value, uint8_t *ret_bytes);
