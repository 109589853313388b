/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While an extent is built, its own offsets of strings and payloads are distances from the end of
 * the room: they stay true when these bytes move as a whole. The table moves whenever one of its
 * neighbours reaches it, to the middle of what is left: a logarithmic number of times.
 */
#include "daemon/publish/extent_builder.h"

#include <string.h>
#include <xxhash.h>

#include "common/crc32c.h"
#include "common/metadata.h"
#include "common/name_id.h"

#define ROW_BYTES 64
#define SLOTS_AT_FIRST 64
#define SHORT_TAG_BYTES 64
#define MOVE_BYTES (16u << 10) /* half of what a processor has nearest */

/*
 * In extent_series.reserved[0] while the extent is built: a value of the series has said its class;
 * a later row of the same tag has taken the place of this one.
 */
#define CLASS_IS_SAID 1
#define IS_SUPERSEDED 2

static uint64_t align_down(uint64_t value) {
        return value & ~(uint64_t)(EXTENT_ALIGNMENT - 1);
}

static struct extent_record *record_at(struct extent_builder *builder, uint32_t index) {
        return (void *)(builder->memory + sizeof(struct extent_header) +
                        (uint64_t)index * ROW_BYTES);
}

static struct extent_series *series_at(struct extent_builder *builder, uint32_t index) {
        return (void *)(builder->memory + builder->table + (uint64_t)index * ROW_BYTES);
}

/* Puts bytes before what is at the back; there is room. Returns their distance from the end. */
static uint32_t push(struct extent_builder *builder, const void *bytes, uint64_t size) {
        builder->back -= size;
        if (size > 0)
                memcpy(builder->memory + builder->back, bytes, size);
        return (uint32_t)(builder->room - builder->back);
}

int extent_builder_init(struct extent_builder *builder, void *memory, uint64_t room_bytes,
                        uint64_t segment_bytes, const struct extent_identity *identity) {
        uint64_t names = (uint64_t)identity->run_name_size + identity->path_size;

        builder->memory = memory;
        builder->identity = identity;
        builder->segment_bytes = segment_bytes;
        builder->tag_bytes_max = segment_bytes / 2 - min_u64(names, segment_bytes / 2);
        builder->room = align_down(min_u64(room_bytes, segment_bytes));
        builder->record_count = 0;
        builder->series_count = 0;
        builder->has_payloads = false;
        builder->loan_count = 0;
        builder->last_series = EXTENT_SERIES_NONE;
        builder->seed = (uintptr_t)memory ^ (uintptr_t)builder ^ identity->file_id;
        builder->slot_mask = SLOTS_AT_FIRST - 1;
        memset(builder->slot, 0, SLOTS_AT_FIRST * sizeof(builder->slot[0]));
        if (builder->room < sizeof(struct extent_header) + align_up(names, EXTENT_ALIGNMENT))
                return STAGE_FULL;
        builder->records_end = sizeof(struct extent_header);
        builder->back = builder->room;
        push(builder, identity->path, identity->path_size);
        push(builder, identity->run_name, identity->run_name_size);
        builder->table = builder->table_end = align_down(
                builder->records_end + (builder->back - builder->records_end) / 2);
        return 0;
}

/* --- Strings of a series --- */

static uint64_t texts_bytes(const struct extent_builder_metadata *metadata) {
        return metadata->content.size + metadata->description.size;
}

static uint64_t labels_bytes(const struct extent_builder_metadata *metadata) {
        return metadata->plugin.size + metadata->display_name.size;
}

/*
 * Too long metadata is left out: the texts past a quarter of a segment, and plugin and display name
 * past half of that.
 */
static bool keeps_texts(const struct extent_builder *builder,
                        const struct extent_builder_value *value) {
        return value->tag.size + labels_bytes(value->metadata) + texts_bytes(value->metadata) <=
               builder->segment_bytes / 4;
}

static bool keeps_labels(const struct extent_builder *builder,
                         const struct extent_builder_value *value) {
        return labels_bytes(value->metadata) <= builder->segment_bytes / 8;
}

static uint64_t metadata_bytes(const struct extent_builder *builder,
                               const struct extent_builder_value *value) {
        if (!value->metadata)
                return 0;
        return (keeps_labels(builder, value) ? labels_bytes(value->metadata) : 0) +
               (keeps_texts(builder, value) ? texts_bytes(value->metadata) : 0);
}

bool extent_builder_can_inline(const struct extent_builder *builder,
                               const struct extent_builder_value *value) {
        uint64_t names = value->tag.size + builder->identity->run_name_size +
                         builder->identity->path_size;
        uint64_t strings = names + metadata_bytes(builder, value);
        uint64_t others = sizeof(struct extent_header) + 2 * ROW_BYTES +
                          align_up(strings, EXTENT_ALIGNMENT);

        return value->payload_bytes <= builder->segment_bytes &&
               others + align_up(value->payload_bytes, EXTENT_ALIGNMENT) <= builder->segment_bytes;
}

static enum extent_class class_of(const struct extent_builder_value *value) {
        if (!value->metadata)
                return metadata_class(EXTENT_CLASS_UNKNOWN, (struct extent_string){ NULL, 0 },
                                      value->written_as);
        return metadata_class(value->metadata->data_class, value->metadata->plugin,
                              value->written_as);
}

/*
 * The first value that says a class describes the series; until one does, the first with metadata.
 * What came before it keeps its row, so that what a record is shown as does not depend on where
 * extents end.
 */
static bool describes(const struct extent_series *series,
                      const struct extent_builder_value *value) {
        if (series->reserved[0] & CLASS_IS_SAID)
                return false;
        return (value->metadata && !(series->flags & EXTENT_SERIES_METADATA)) || class_of(value);
}

static void push_string(struct extent_builder *builder, struct extent_string string, bool keep,
                        uint32_t *ret_distance, uint32_t *ret_size) {
        *ret_size = keep ? (uint32_t)string.size : 0;
        *ret_distance = push(builder, string.bytes, *ret_size);
}

static void push_metadata(struct extent_builder *builder, struct extent_series *series,
                          const struct extent_builder_value *value) {
        const struct extent_builder_metadata *metadata = value->metadata;
        bool texts = keeps_texts(builder, value);
        bool labels = keeps_labels(builder, value);

        push_string(builder, metadata->plugin, labels, &series->plugin_offset,
                    &series->plugin_size);
        push_string(builder, metadata->display_name, labels, &series->display_name_offset,
                    &series->display_name_size);
        push_string(builder, metadata->description, texts, &series->description_offset,
                    &series->description_size);
        push_string(builder, metadata->content, texts, &series->content_offset,
                    &series->content_size);
        series->data_class = metadata->data_class <= EXTENT_CLASS_BLOBS
                                     ? (uint8_t)metadata->data_class
                                     : EXTENT_CLASS_UNKNOWN;
        series->flags |= EXTENT_SERIES_METADATA | (texts && labels ? 0 : EXTENT_SERIES_LEFT_OUT);
}

static void push_no_metadata(struct extent_builder *builder, struct extent_series *series) {
        uint32_t here = (uint32_t)(builder->room - builder->back);

        series->plugin_offset = series->display_name_offset = series->description_offset =
                series->content_offset = here;
        series->plugin_size = series->display_name_size = series->description_size =
                series->content_size = 0;
}

/* Fills in a new row. */
static void describe(struct extent_builder *builder, struct extent_series *series,
                     const struct extent_builder_value *value) {
        if (value->metadata)
                push_metadata(builder, series, value);
        else
                push_no_metadata(builder, series);
        series->written_as = value->written_as;
        series->reserved[0] = class_of(value) ? CLASS_IS_SAID : 0;
}

/* --- The index of tags --- */

static uint64_t load_u64(const uint8_t *bytes) {
        uint64_t value;

        memcpy(&value, bytes, sizeof(value));
        return value;
}

/* Tags are short: eight bytes at a time, the last eight over those before, cost less than a call. */
static inline bool is_same(const uint8_t *one, const uint8_t *other, uint64_t size) {
        if (size < 8 || size > SHORT_TAG_BYTES)
                return memcmp(one, other, size) == 0;
        for (uint64_t at = 0; at < size - 8; at += 8)
                if (load_u64(one + at) != load_u64(other + at))
                        return false;
        return load_u64(one + size - 8) == load_u64(other + size - 8);
}

static inline bool has_tag(struct extent_builder *builder, uint32_t index,
                           struct extent_string tag) {
        const struct extent_series *series = series_at(builder, index);

        return series->tag_size == tag.size &&
               is_same(builder->memory + builder->room - series->tag_offset, tag.bytes, tag.size);
}

static uint32_t hash_of(const struct extent_builder *builder, const void *tag, uint64_t size) {
        return (uint32_t)XXH3_64bits_withSeed(tag, size, builder->seed);
}

static uint32_t find_by_hash(struct extent_builder *builder, struct extent_string tag) {
        uint32_t at = hash_of(builder, tag.bytes, tag.size);
        uint32_t found;

        for (;; at++) {
                found = builder->slot[at & builder->slot_mask];
                if (found == 0)
                        return EXTENT_SERIES_NONE;
                if (has_tag(builder, found - 1, tag))
                        return found - 1;
        }
}

static uint32_t find_series(struct extent_builder *builder, struct extent_string tag) {
        uint32_t expected;

        if (builder->last_series == EXTENT_SERIES_NONE)
                return EXTENT_SERIES_NONE;
        expected = builder->follower[builder->last_series];
        if (has_tag(builder, expected, tag) &&
            !(series_at(builder, expected)->reserved[0] & IS_SUPERSEDED))
                return expected;
        return find_by_hash(builder, tag);
}

/* Puts the row into a free slot, or into that of the row whose place it takes. */
static void index_series(struct extent_builder *builder, uint32_t index, uint32_t superseded) {
        const struct extent_series *series = series_at(builder, index);
        uint32_t at = hash_of(builder, builder->memory + builder->room - series->tag_offset,
                              series->tag_size);
        uint32_t wanted = superseded == EXTENT_SERIES_NONE ? 0 : superseded + 1;

        while (builder->slot[at & builder->slot_mask] != wanted)
                at++;
        builder->slot[at & builder->slot_mask] = (uint16_t)(index + 1);
}

/* Twice as many slots. */
static void grow_index(struct extent_builder *builder) {
        builder->slot_mask = 2 * builder->slot_mask + 1;
        memset(builder->slot, 0, (builder->slot_mask + 1) * sizeof(builder->slot[0]));
        for (uint32_t i = 0; i < builder->series_count; i++)
                if (!(series_at(builder, i)->reserved[0] & IS_SUPERSEDED))
                        index_series(builder, i, EXTENT_SERIES_NONE);
}

/* A row for a tag that has none yet. There is room. */
static struct extent_series first_row(struct extent_builder *builder, struct extent_string tag) {
        const struct extent_identity *identity = builder->identity;

        return (struct extent_series){
                .series_id = name_id_series(identity->source_url, identity->run_name,
                                            identity->run_name_size, tag.bytes, tag.size),
                .tag_size = (uint32_t)tag.size,
                .tag_offset = push(builder, tag.bytes, tag.size),
        };
}

/* A row that takes the place of another one of its tag. */
static struct extent_series next_row(struct extent_series *superseded) {
        superseded->reserved[0] |= IS_SUPERSEDED;
        return (struct extent_series){
                .series_id = superseded->series_id,
                .tag_size = superseded->tag_size,
                .tag_offset = superseded->tag_offset,
                .flags = EXTENT_SERIES_AGAIN,
        };
}

/* superseded: the tag's row so far, or none. */
static uint32_t add_series(struct extent_builder *builder, struct extent_string tag,
                           uint32_t superseded) {
        uint32_t index = builder->series_count;

        if (2 * (index + 1) > builder->slot_mask)
                grow_index(builder);
        *series_at(builder, index) = superseded == EXTENT_SERIES_NONE
                                             ? first_row(builder, tag)
                                             : next_row(series_at(builder, superseded));
        builder->table_end += ROW_BYTES;
        builder->follower[index] = 0;
        builder->series_count++;
        index_series(builder, index, superseded);
        return index;
}

/* --- Room --- */

/* What a value takes, and where the back will begin with it. */
struct need {
        uint64_t front, table, back;
};

/* False: the finished image would be larger than the room. */
static bool is_room(const struct extent_builder *builder, uint64_t strings, uint64_t payload,
                    bool has_new_row, struct need *ret_need) {
        uint64_t front = builder->records_end + ROW_BYTES;
        uint64_t table = builder->table_end - builder->table + (has_new_row ? ROW_BYTES : 0);
        uint64_t back = builder->back;

        if (strings > back || payload > back - strings)
                return false;
        back -= strings;
        if (payload)
                back = align_down(back - payload);
        if (front + table > align_down(back))
                return false;
        *ret_need = (struct need){ front, table, back };
        return true;
}

/* Moves the table out of the way if a neighbour needs its place. */
static void make_way(struct extent_builder *builder, const struct need *need) {
        uint64_t table_bytes = builder->table_end - builder->table;
        uint64_t at;

        if (need->front <= builder->table && builder->table + need->table <= need->back)
                return;
        at = align_down(need->front + (align_down(need->back) - need->front - need->table) / 2);
        memmove(builder->memory + at, builder->memory + builder->table, table_bytes);
        builder->table = at;
        builder->table_end = at + table_bytes;
}

/* --- Values --- */

static uint8_t *push_payload(struct extent_builder *builder, uint64_t size) {
        uint64_t at = align_down(builder->back - size);

        memset(builder->memory + at + size, 0, builder->back - at - size);
        builder->back = at;
        builder->has_payloads = true;
        return builder->memory + at;
}

static uint64_t kept_payload(const struct extent_builder_value *value) {
        return value->flags & EXTENT_RECORD_EXTERNAL ? 0 : value->payload_bytes;
}

static inline void add_record(struct extent_builder *builder,
                              const struct extent_builder_value *value, uint32_t series,
                              uint64_t payload_distance) {
        struct extent_record *record = record_at(builder, builder->record_count++);

        record->step = value->step;
        record->wall_time = value->wall_time;
        record->value = value->value;
        record->series = series;
        record->kind = value->kind;
        record->dtype = value->dtype;
        record->flags = value->flags;
        record->payload_offset = value->payload_bytes ? payload_distance : value->bits;
        record->payload_size = value->payload_bytes;
        record->source_offset = value->source_offset;
        record->source_size = (uint32_t)min_u64(value->source_size, UINT32_MAX);
        record->value_index = value->value_index;
        builder->records_end += ROW_BYTES;
}

/*
 * What is not the next value of a series that is known and described: new strings, payloads, too
 * little room.
 */
__attribute__((noinline)) static int append_slowly(struct extent_builder *builder,
                                                   const struct extent_builder_value *value,
                                                   uint32_t series, uint8_t **ret_payload) {
        bool is_mark = value->kind == EXTENT_KIND_MARK;
        bool is_new = !is_mark && series == EXTENT_SERIES_NONE;
        bool is_described = is_new || (!is_mark && describes(series_at(builder, series), value));
        uint64_t payload = kept_payload(value);
        uint64_t strings = (is_new ? value->tag.size : 0) +
                           (is_described ? metadata_bytes(builder, value) : 0);
        struct need need;

        if ((is_described && builder->series_count == EXTENT_BUILDER_SERIES_MAX) ||
            !is_room(builder, strings, payload, is_described, &need))
                return STAGE_FULL;
        make_way(builder, &need);
        if (is_described) {
                series = add_series(builder, value->tag, series);
                describe(builder, series_at(builder, series), value);
        }
        *ret_payload = payload ? push_payload(builder, payload) : NULL;
        add_record(builder, value, series, payload ? builder->room - builder->back : 0);
        return 0;
}

static void remember_follower(struct extent_builder *builder, uint32_t series) {
        if (builder->last_series != EXTENT_SERIES_NONE)
                builder->follower[builder->last_series] = (uint16_t)series;
        builder->last_series = series;
}

int extent_builder_append(struct extent_builder *builder, const struct extent_builder_value *value,
                          uint8_t **ret_payload) {
        uint32_t series = EXTENT_SERIES_NONE;
        int r;

        if (value->kind == EXTENT_KIND_MARK)
                return append_slowly(builder, value, series, ret_payload);
        series = find_series(builder, value->tag);
        if (series != EXTENT_SERIES_NONE && value->payload_bytes == 0 &&
            builder->records_end + ROW_BYTES <= builder->table &&
            series_at(builder, series)->reserved[0] & CLASS_IS_SAID) {
                *ret_payload = NULL;
                add_record(builder, value, series, 0);
                remember_follower(builder, series);
                return 0;
        }
        r = append_slowly(builder, value, series, ret_payload);
        if (r == 0)
                remember_follower(builder, record_at(builder, builder->record_count - 1)->series);
        return r;
}

void extent_builder_write(struct extent_builder *builder, uint8_t *at, const uint8_t *bytes,
                          uint64_t size_bytes) {
        if (size_bytes < EXTENT_BUILDER_LOAN_MIN_BYTES ||
            builder->loan_count == EXTENT_BUILDER_LOANS_MAX) {
                if (size_bytes > 0)
                        memcpy(at, bytes, size_bytes);
                return;
        }
        builder->loan[builder->loan_count++] = (struct extent_builder_loan){
                .bytes = bytes,
                .size_bytes = size_bytes,
                .distance = builder->room - (uint64_t)(at - builder->memory),
        };
}

/* --- The end --- */

/* Moves the table behind the records. Returns the size that the image will have. */
static uint64_t close_front(struct extent_builder *builder) {
        uint64_t table_bytes = builder->table_end - builder->table;
        uint64_t back = align_down(builder->back);

        memset(builder->memory + back, 0, builder->back - back);
        memmove(builder->memory + builder->records_end, builder->memory + builder->table,
                table_bytes);
        builder->table = builder->records_end;
        builder->table_end = builder->table + table_bytes;
        builder->back = back;
        return builder->table_end + builder->room - back;
}

/* Moves bytes to where they stay, and returns the CRC with them while they are near. */
static uint32_t move(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t size_bytes) {
        for (uint64_t at = 0, piece; at < size_bytes; at += piece) {
                piece = min_u64(size_bytes - at, MOVE_BYTES);
                memmove(to + at, from + at, piece);
                crc = crc32c_extend(crc, to + at, piece);
        }
        return crc;
}

/*
 * Moves strings and payloads behind the table, from the lowest to the highest, and copies what was
 * lent into its place among them. Nothing that is still to be moved is overwritten: all goes down.
 */
static uint32_t close_back(struct extent_builder *builder, uint32_t crc) {
        uint8_t *end = builder->memory + builder->room;
        uint64_t from = builder->room - builder->back; /* distances from the end */
        uint8_t *image_end = builder->memory + builder->table_end + from;

        while (builder->loan_count > 0) {
                const struct extent_builder_loan *loan = &builder->loan[--builder->loan_count];

                crc = move(crc, image_end - from, end - from, from - loan->distance);
                crc = move(crc, image_end - loan->distance, loan->bytes, loan->size_bytes);
                from = loan->distance - loan->size_bytes;
        }
        return move(crc, image_end - from, end - from, from);
}

/* Distances from the end become offsets. */
static void settle_offsets(struct extent_builder *builder, uint64_t size_bytes) {
        for (uint32_t i = 0; i < builder->series_count; i++) {
                struct extent_series *series = series_at(builder, i);

                series->tag_offset = (uint32_t)(size_bytes - series->tag_offset);
                series->plugin_offset = (uint32_t)(size_bytes - series->plugin_offset);
                series->display_name_offset = (uint32_t)(size_bytes - series->display_name_offset);
                series->description_offset = (uint32_t)(size_bytes - series->description_offset);
                series->content_offset = (uint32_t)(size_bytes - series->content_offset);
                series->reserved[0] = 0;
        }
        for (uint32_t i = 0; builder->has_payloads && i < builder->record_count; i++) {
                struct extent_record *record = record_at(builder, i);

                if (record->payload_size && !(record->flags & EXTENT_RECORD_EXTERNAL))
                        record->payload_offset = size_bytes - record->payload_offset;
        }
}

uint64_t extent_builder_close(struct extent_builder *builder,
                              const struct extent_builder_range *range) {
        const struct extent_identity *identity = builder->identity;
        struct extent_header *header = (void *)builder->memory;
        uint64_t size_bytes = close_front(builder);
        uint64_t names = size_bytes - identity->path_size;

        settle_offsets(builder, size_bytes);
        *header = (struct extent_header){
                .magic = EXTENT_MAGIC,
                .version = EXTENT_VERSION,
                .flags = range->skipped_count ? EXTENT_DAMAGED : 0,
                .size_bytes = size_bytes,
                .record_count = builder->record_count,
                .series_count = builder->series_count,
                .skipped_count = range->skipped_count,
                .source_id = identity->source_id,
                .run_id = identity->run_id,
                .file_id = identity->file_id,
                .file_version = identity->file_version,
                .begin_offset = range->begin_offset,
                .end_offset = range->end_offset,
                .min_wall_time = range->min_wall_time,
                .records_offset = sizeof(struct extent_header),
                .series_offset = (uint32_t)builder->records_end,
                .run_name_offset = (uint32_t)(names - identity->run_name_size),
                .run_name_size = identity->run_name_size,
                .file_path_offset = (uint32_t)names,
                .file_path_size = identity->path_size,
                .payload_offset = builder->records_end +
                                  (uint64_t)builder->series_count * ROW_BYTES,
                .begin_index = range->begin_index,
                .end_index = range->end_index,
        };
        header->crc32c = close_back(builder, crc32c(header, builder->table_end));
        return size_bytes;
}
