/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The straight line for one extent: decode_records() reads top to bottom. `place` is where the next
 * call would go on; whatever is before it is covered by the extent.
 */
#include "daemon/pipeline/block_decode.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/tensor_type.h"
#include "daemon/decode/event.h"
#include "daemon/decode/payload.h"
#include "daemon/frame/tfrecord.h"
#include "daemon/publish/extent_builder.h"
#include "daemon/publish/ring.h"

struct block {
        const struct block_input *input;
        struct block_output *output;
        struct tfrecord_reader frames;
        struct block_position place;
        struct extent_identity identity;
        struct extent_builder_range range;
        struct extent_builder builder;
        struct crc_prefix prefix;
};

static bool has_end(const struct block_input *input) {
        return input->end.offset > 0 || input->end.index > 0;
}

static void block_init(struct block *block, const struct block_input *input,
                       struct block_output *output) {
        const struct block_file *file = input->file;

        memset(output, 0, sizeof(*output));
        output->begin = input->begin;
        output->resume = input->resume;
        block->input = input;
        block->output = output;
        block->place = input->begin;
        block->range = (struct extent_builder_range){ .min_wall_time = INFINITY };
        block->identity = (struct extent_identity){
                .source_id = file->source_id,
                .run_id = file->run_id,
                .file_id = file->file_id,
                .file_version = file->file_version,
                .source_url = file->source_url,
                .run_name = file->run_name,
                .path = file->path,
                .run_name_size = file->run_name_size,
                .path_size = file->path_size,
        };
        block->frames = (struct tfrecord_reader){
                .bytes = input->bytes,
                .bytes_offset = input->bytes_offset,
                .size_bytes = input->size_bytes,
                .offset = input->begin.offset,
                .search_offset = input->search_offset,
                .search_damage = input->search_damage,
                .boundary = has_end(input) ? input->end.offset : UINT64_MAX,
                .boundary_is_open = input->end_is_open,
                .record_max_bytes = input->record_max_bytes,
                .length_crc_only = input->length_crc_only,
                .file_bytes = input->file_bytes,
                .last = input->last,
                .prefix = &block->prefix,
        };
}

/*
 * A block fetched again ends exactly where it ended before. Inside of a TFRecord: that one is read
 * like any other.
 */
static bool is_at_end(struct block *block) {
        const struct block_input *input = block->input;

        if (!has_end(input) || block->place.offset < input->end.offset)
                return false;
        if (block->place.offset > input->end.offset || block->place.index >= input->end.index)
                return true;
        block->frames.boundary = UINT64_MAX;
        return false;
}

static void report(struct block *block, const struct damaged_place *place) {
        struct block_output *output = block->output;

        if (output->damage_count < BLOCK_DAMAGE_MOST)
                output->damage[output->damage_count] = *place;
        if (block->input->places)
                block->input->places[output->damage_count] = *place;
        output->damage_count++;
        output->damage_by_reason[place->reason]++;
        block->range.skipped_count++;
}

static bool places_are_full(const struct block *block) {
        return block->input->places && block->output->damage_count == block->input->place_space;
}

static void skip(struct block *block, uint64_t offset, uint64_t size_bytes, enum damage reason) {
        report(block, &(struct damaged_place){ offset, size_bytes, reason, 0 });
}

/* A value whose names have no place in an extent of this ring. */
static void skip_names(struct block *block, const struct tfrecord *record, uint64_t tag_bytes) {
        const struct block_file *file = block->input->file;
        uint64_t names = tag_bytes + file->run_name_size + file->path_size;

        report(block, &(struct damaged_place){ record->offset, record->size_bytes, DAMAGE_TOO_LARGE,
                                               ring_bytes_for_segments(2 * names) });
}

/* Everything up to this position is in the extent; the record that holds it ends at end_offset. */
static void cover(struct block *block, struct block_position place, uint64_t end_offset) {
        block->place = place;
        block->range.end_offset = end_offset;
        block->range.end_index = place.index;
}

static void cover_event(struct block *block, const struct tfrecord *record, double wall_time,
                        uint32_t next_index) {
        uint64_t end_offset = record->offset + record->size_bytes;
        struct block_position place = { next_index ? record->offset : end_offset, next_index };

        if (isfinite(wall_time) && wall_time < block->range.min_wall_time)
                block->range.min_wall_time = wall_time;
        cover(block, place, end_offset);
}

static struct extent_string string_of(struct protobuf_bytes bytes) {
        return (struct extent_string){ bytes.at, bytes.size };
}

static struct extent_builder_metadata metadata_of(const struct event_metadata *metadata) {
        return (struct extent_builder_metadata){
                .plugin = string_of(metadata->plugin),
                .content = string_of(metadata->content),
                .display_name = string_of(metadata->display_name),
                .description = string_of(metadata->description),
                .data_class = metadata->data_class,
        };
}

/* metadata: room for what the value has of it. */
static struct extent_builder_value value_of(const struct tfrecord *record,
                                            const struct event *event, uint32_t index,
                                            const struct event_value *value,
                                            const struct payload *payload,
                                            struct extent_builder_metadata *metadata) {
        if (value->has_metadata)
                *metadata = metadata_of(&value->metadata);
        return (struct extent_builder_value){
                .step = event->step,
                .wall_time = event->wall_time,
                .value = payload->value,
                .kind = payload->kind,
                .dtype = payload->dtype,
                .flags = payload->flags,
                .bits = payload->bits,
                .payload_bytes = payload->bytes,
                .source_offset = record->offset,
                .source_size = record->size_bytes,
                .value_index = index,
                .written_as = value->written_as,
                .tag = string_of(value->tag),
                .metadata = value->has_metadata ? metadata : NULL,
        };
}

static bool is_external(const struct block *block, const struct extent_builder_value *value) {
        return value->payload_bytes > block->input->payload_inline_max_bytes ||
               (value->payload_bytes && !extent_builder_can_inline(&block->builder, value));
}

static void note_step(struct block_output *output, int64_t step) {
        if (!output->has_last_step || step > output->last_step)
                output->last_step = step;
        output->has_last_step = true;
}

static int append_value(struct block *block, const struct tfrecord *record,
                        const struct event *event, uint32_t index,
                        const struct event_value *value) {
        struct extent_builder_metadata metadata;
        struct extent_builder_value appended;
        struct payload payload;
        uint8_t *memory;
        int r;

        payload_plan(value, &payload);
        appended = value_of(record, event, index, value, &payload, &metadata);
        if (!extent_builder_can_hold(&block->builder, &appended)) {
                if (places_are_full(block))
                        return STAGE_FULL;
                skip_names(block, record, appended.tag.size);
                return 0;
        }
        if (is_external(block, &appended))
                appended.flags |= EXTENT_RECORD_EXTERNAL;
        r = extent_builder_append(&block->builder, &appended, &memory);
        if (r)
                return r;
        if (memory) {
                payload_write_first(&payload, memory);
                extent_builder_write(&block->builder, memory + payload.bytes - payload.last.size,
                                     payload.last.at, payload.last.size);
        }
        note_step(block->output, event->step);
        return 0;
}

/* The values from the block's place on. *ret_next: the first one that did not fit, 0 if all did. */
static int append_values(struct block *block, const struct tfrecord *record,
                         struct event_cursor *cursor, uint32_t *ret_next) {
        uint32_t end = record->offset == block->input->end.offset ? block->input->end.index : 0;
        const struct event_value *value;

        while ((value = event_cursor_next(cursor))) {
                uint32_t index = cursor->index - 1;
                int r;

                *ret_next = index;
                if (index < block->place.index)
                        continue;
                if (end && index >= end)
                        return 0;
                r = append_value(block, record, cursor->event, index, value);
                if (r)
                        return r;
        }
        *ret_next = 0;
        return 0;
}

static const uint8_t session_marks[] = {
        [EVENT_SESSION_START] = EXTENT_MARK_SESSION_START,
        [EVENT_SESSION_STOP] = EXTENT_MARK_SESSION_STOP,
        [EVENT_SESSION_CHECKPOINT] = EXTENT_MARK_SESSION_CHECKPOINT,
};

/* 0: the event is no mark. */
static uint8_t mark_of(const struct event *event) {
        uint32_t status = (uint32_t)event->session_status;

        if (event->what == EVENT_FILE_VERSION)
                return EXTENT_MARK_FILE_VERSION;
        return event->what == EVENT_SESSION_LOG && status < ARRAY_SIZE(session_marks)
                       ? session_marks[status]
                       : 0;
}

static int append_mark(struct block *block, const struct tfrecord *record,
                       const struct event *event) {
        uint8_t *none;
        struct extent_builder_value mark = {
                .step = event->step,
                .wall_time = event->wall_time,
                .kind = EXTENT_KIND_MARK,
                .dtype = mark_of(event),
                .source_offset = record->offset,
                .source_size = record->size_bytes,
        };

        return mark.dtype && block->place.index == 0
                       ? extent_builder_append(&block->builder, &mark, &none)
                       : 0;
}

/*
 * An Event of one number, which is nearly all there are: append_event() in one step. Field by field,
 * as a processor waits where it loads at once what it has just stored in two halves.
 */
static int append_scalar(struct block *block, const struct tfrecord *record,
                         const struct event *event) {
        struct extent_builder_value appended;
        uint8_t *none;
        float number;
        int r;

        memcpy(&number, &event->first.simple_value, sizeof(number));
        appended.step = event->step;
        appended.wall_time = event->wall_time;
        appended.value = number;
        appended.kind = EXTENT_KIND_SCALAR;
        appended.dtype = DT_FLOAT;
        appended.flags = 0;
        appended.bits = event->first.simple_value;
        appended.payload_bytes = 0;
        appended.source_offset = record->offset;
        appended.source_size = record->size_bytes;
        appended.value_index = 0;
        appended.written_as = EXTENT_WRITTEN_SIMPLE_VALUE;
        appended.tag.bytes = event->first.tag.at;
        appended.tag.size = event->first.tag.size;
        appended.metadata = NULL;
        r = extent_builder_append(&block->builder, &appended, &none);
        if (r) {
                block->output->need_bytes = record->size_bytes;
                return r;
        }
        note_step(block->output, event->step);
        cover_event(block, record, event->wall_time, 0);
        return 0;
}

/* STAGE_FULL: some or none of its values are in the extent, block->place says which. */
static int append_event(struct block *block, const struct tfrecord *record,
                        struct event_cursor *cursor) {
        const struct event *event = cursor->event;
        struct block_resume *resume = &block->output->resume;
        uint32_t next = 0;
        int r;

        resume->payload_bytes = 0;
        r = append_mark(block, record, event);
        if (r == 0)
                r = append_values(block, record, cursor, &next);
        if (r == STAGE_FULL)
                block->output->need_bytes = record->size_bytes;
        if ((r == STAGE_FULL || next > 0) && event->value_count > 1) {
                resume->payload_bytes = record->payload_bytes;
                event_cursor_place(cursor, record->payload, &resume->place);
        }
        if (r == 0 || next > block->place.index)
                cover_event(block, record, event->wall_time, next);
        return r;
}

/* One TFRecord with right CRCs. */
static int append_record(struct block *block, const struct tfrecord *record) {
        struct event_cursor cursor;
        struct event event;

        if (event_decode(record->payload, record->payload_bytes, &event) == STAGE_CORRUPT) {
                skip(block, record->offset, record->size_bytes, DAMAGE_NOT_AN_EVENT);
                cover(block, (struct block_position){ record->offset + record->size_bytes, 0 },
                      record->offset + record->size_bytes);
                return 0;
        }
        if (event_is_scalar(&event) && block->place.index == 0 &&
            event.first.tag.size <= block->builder.tag_bytes_max) {
                block->output->resume.payload_bytes = 0;
                return append_scalar(block, record, &event);
        }
        event_cursor_init(&cursor, &event);
        return append_event(block, record, &cursor);
}

/*
 * The rest of a TFRecord that did not fit before: its bytes are not looked at again, so that one
 * with many values takes no more time for each than others do.
 */
static int append_rest(struct block *block, const struct block_resume *resume) {
        const struct block_input *input = block->input;
        uint64_t at = input->begin.offset - input->bytes_offset;
        struct event_cursor cursor;
        struct event event;
        struct tfrecord record = {
                .offset = input->begin.offset,
                .size_bytes = resume->payload_bytes + TFRECORD_OVERHEAD_BYTES,
                .payload = input->bytes + at + TFRECORD_HEADER_BYTES,
                .payload_bytes = resume->payload_bytes,
        };

        MUST(at + record.size_bytes <= input->size_bytes);
        block->frames.offset += record.size_bytes;
        event_cursor_resume(&cursor, &event, record.payload, record.payload_bytes, &resume->place);
        return append_event(block, &record, &cursor);
}

/* Bytes that look like this may have been read wrongly, or may be just being written. */
static bool is_doubtful(struct block *block, enum damage damage) {
        const struct block_input *input = block->input;
        bool by_crc = damage != DAMAGE_NONE && damage != DAMAGE_TOO_LARGE &&
                      damage != DAMAGE_NOT_AN_EVENT;

        if (!input->doubts || !by_crc || block->place.offset < input->believed_offset)
                return false;
        block->output->doubted = damage;
        return true;
}

static int decode_records(struct block *block) {
        struct tfrecord record;
        int r = 0;

        if (block->input->resume.payload_bytes > 0)
                r = append_rest(block, &block->input->resume);
        while (r == 0 && !is_at_end(block)) {
                if (places_are_full(block))
                        return STAGE_FULL;
                r = tfrecord_next(&block->frames, &record);
                if (r == 0) {
                        r = append_record(block, &record);
                } else if (r == STAGE_CORRUPT && is_doubtful(block, record.damage)) {
                        r = STAGE_DOUBT;
                } else if (r == STAGE_CORRUPT) {
                        uint64_t next = record.offset + record.size_bytes;

                        skip(block, record.offset, record.size_bytes, record.damage);
                        cover(block, (struct block_position){ next, 0 }, next);
                        r = 0;
                }
        }
        return r;
}

/* The bytes end inside of an item, or at the end of one. */
static int tell_more(struct block *block) {
        const struct block_input *input = block->input;
        uint64_t end_offset = input->bytes_offset + input->size_bytes;
        struct block_output *output = block->output;

        if (is_doubtful(block, block->frames.unresolved_damage) ||
            (block->frames.search_offset > 0 && !input->last &&
             is_doubtful(block, block->frames.search_damage)))
                return STAGE_DOUBT;
        if (block->frames.unresolved_damage)
                output->tail = (struct damaged_place){ block->place.offset,
                                                       end_offset - block->place.offset,
                                                       block->frames.unresolved_damage, 0 };
        output->search_offset = block->frames.search_offset;
        output->search_damage = block->frames.search_damage;
        output->need_bytes = block->frames.need_bytes;
        return block->place.offset == end_offset ? 0 : STAGE_MORE;
}

int block_decode(const struct block_input *input, void *memory, uint64_t room_bytes,
                 struct block_output *ret_output) {
        struct block block;
        int r;

        block_init(&block, input, ret_output);
        r = extent_builder_init(&block.builder, memory, room_bytes, input->segment_bytes,
                                &block.identity);
        if (r == 0)
                r = decode_records(&block);
        if (r == STAGE_MORE)
                r = tell_more(&block);
        ret_output->next = ret_output->end = block.place;
        if (block.place.offset == input->begin.offset && block.place.index == input->begin.index)
                return r;
        block.frames.offset = block.place.offset;
        ret_output->end_is_open = ret_output->damage_count > 0 && tfrecord_is_open(&block.frames);
        block.range.begin_offset = input->begin.offset;
        block.range.begin_index = input->begin.index;
        ret_output->record_count = block.builder.record_count;
        ret_output->extent_bytes = extent_builder_close(&block.builder, &block.range);
        return r;
}

/*
 * The value that the position names; NULL if it is not there. What it points to is in the event and
 * in the cursor.
 */
static const struct event_value *find_value(struct block *block, struct tfrecord *record,
                                            struct event *event, struct event_cursor *cursor) {
        const struct event_value *value;

        block->frames.boundary = UINT64_MAX;
        block->frames.record_max_bytes = UINT64_MAX;
        block->frames.search_offset = 0;
        if (tfrecord_next(&block->frames, record) ||
            event_decode(record->payload, record->payload_bytes, event))
                return NULL;
        event_cursor_init(cursor, event);
        while ((value = event_cursor_next(cursor)))
                if (cursor->index == block->place.index + 1)
                        return value;
        return NULL;
}

/* Room that is enough for an extent of this value alone. */
static uint64_t room_for(const struct extent_identity *identity,
                         const struct extent_builder_value *value) {
        const struct extent_builder_metadata *metadata = value->metadata;
        uint64_t strings = (uint64_t)identity->run_name_size + identity->path_size +
                           value->tag.size;

        if (metadata)
                strings += metadata->plugin.size + metadata->content.size +
                           metadata->display_name.size + metadata->description.size;
        return sizeof(struct extent_header) + sizeof(struct extent_record) +
               sizeof(struct extent_series) + align_up(strings, EXTENT_ALIGNMENT) +
               align_up(value->payload_bytes, EXTENT_ALIGNMENT);
}

int block_decode_value(const struct block_input *input, void **ret_memory,
                       uint64_t *ret_size_bytes) {
        CLEANUP(freep) void *memory = NULL;
        struct extent_builder_metadata metadata;
        struct extent_builder_value appended;
        const struct event_value *value;
        struct event_cursor cursor;
        struct block_output output;
        struct tfrecord record;
        struct payload payload;
        struct event event;
        struct block block;
        uint8_t *payload_memory;
        uint64_t room;

        block_init(&block, input, &output);
        value = find_value(&block, &record, &event, &cursor);
        if (!value)
                return STAGE_CORRUPT;
        payload_plan(value, &payload);
        appended = value_of(&record, &event, input->begin.index, value, &payload, &metadata);
        room = room_for(&block.identity, &appended);
        if (room > UINT32_MAX)
                return -EFBIG; /* offsets of names are of 32 bits */
        memory = aligned_alloc(EXTENT_ALIGNMENT, room);
        if (!memory)
                return -ENOMEM;
        MUST(extent_builder_init(&block.builder, memory, room, UINT64_MAX, &block.identity) == 0);
        MUST(extent_builder_append(&block.builder, &appended, &payload_memory) == 0);
        if (payload_memory)
                payload_write(&payload, payload_memory);
        block.range.begin_offset = record.offset;
        block.range.begin_index = input->begin.index;
        cover_event(&block, &record, event.wall_time, input->begin.index + 1);
        *ret_size_bytes = extent_builder_close(&block.builder, &block.range);
        *ret_memory = steal_pointer(&memory);
        return 0;
}
