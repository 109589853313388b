/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one extent into memory that the caller owns. Records grow from the front of the room;
 * strings and payloads, in the order in which they come, from its end downwards; the series table
 * floats in the gap between. Closing moves the table behind the records and the rest behind the
 * table. So nothing is ever needed beyond the room that the finished image takes, and the image
 * depends on what was appended and on the segment size, not on where it lies or on the room.
 *
 * The builder itself is large (54 KiB) and is meant for the stack of the thread that fills the
 * segment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"
#include "common/extent_format.h"
#include "common/extent_view.h"

/*
 * An extent in a segment holds fewer: each of these has a record, a row of the table and a tag of
 * its own.
 */
#define EXTENT_BUILDER_SERIES_MAX 8192

struct extent_identity {
        uint64_t source_id, run_id, file_id, file_version;
        const char *source_url; /* NUL-terminated */
        const char *run_name;
        const char *path;
        uint32_t run_name_size, path_size;
};

struct extent_builder_metadata {
        struct extent_string plugin, content, display_name, description;
        uint32_t data_class; /* as written */
};

/* A value of a series, or an event mark (kind EXTENT_KIND_MARK: no series). */
struct extent_builder_value {
        int64_t step;
        double wall_time;
        double value;
        uint8_t kind, dtype;
        uint16_t flags;
        uint64_t bits; /* of a scalar: as written */
        /* of the others; with EXTENT_RECORD_EXTERNAL it is only said, not kept */
        uint64_t payload_bytes;
        uint64_t source_offset, source_size;
        uint32_t value_index;
        /* Of its series. */
        uint8_t written_as;
        struct extent_string tag;
        const struct extent_builder_metadata *metadata; /* NULL: none */
};

/* So many payloads of an extent are copied when it is closed, once for all. */
#define EXTENT_BUILDER_LOANS_MAX 256
#define EXTENT_BUILDER_LOAN_MIN_BYTES 4096

struct extent_builder_loan {
        const uint8_t *bytes;
        uint64_t size_bytes;
        uint64_t distance; /* of its place, from the end of the room */
};

struct extent_builder {
        uint8_t *memory;
        const struct extent_identity *identity;
        uint64_t segment_bytes;
        uint64_t tag_bytes_max;
        /* Offsets in memory. */
        uint64_t room;             /* multiple of 64 */
        uint64_t records_end;      /* behind the last record */
        uint64_t table, table_end; /* the series, now */
        uint64_t back;             /* first byte of strings and payloads */
        uint32_t record_count, series_count;
        bool has_payloads;
        uint32_t loan_count;
        struct extent_builder_loan loan[EXTENT_BUILDER_LOANS_MAX]; /* from the end downwards */
        /* of the last value: the next one is likely to be what followed it before */
        uint32_t last_series;
        uint64_t seed; /* of the index: which tags collide is nobody's to choose */
        uint32_t slot_mask;
        uint16_t follower[EXTENT_BUILDER_SERIES_MAX];
        /* 1 + series, 0 free: a hash table of the tags */
        uint16_t slot[2 * EXTENT_BUILDER_SERIES_MAX];
};

/*
 * memory is 64-byte aligned, room_bytes of it may be written. The identity is borrowed while the
 * builder is used. STAGE_FULL: not even an empty extent fits.
 */
int extent_builder_init(struct extent_builder *builder, void *memory, uint64_t room_bytes,
                        uint64_t segment_bytes, const struct extent_identity *identity);

/*
 * True if the names of a value leave it a place in an extent (tag, run and file name within half a
 * segment). If not, no ring of this segment size can hold it.
 */
static inline bool extent_builder_can_hold(const struct extent_builder *builder,
                                           const struct extent_builder_value *value) {
        return value->tag.size <= builder->tag_bytes_max;
}

/*
 * True if a payload of that value may lie beside its names and metadata in one segment: if not it
 * must be external.
 */
bool extent_builder_can_inline(const struct extent_builder *builder,
                               const struct extent_builder_value *value);

/*
 * Appends a value that can be held. *ret_payload is where its payload_bytes must be written
 * (64-byte aligned, before the next call); NULL if it has none. STAGE_FULL: it does not fit,
 * nothing changed.
 */
int extent_builder_append(struct extent_builder *builder, const struct extent_builder_value *value,
                          uint8_t **ret_payload);

/*
 * Writes size_bytes at `at`, within the payload of the last extent_builder_append(). Large ones may
 * be borrowed until extent_builder_close(), which copies them to where they stay. At most one call
 * for each payload.
 */
void extent_builder_write(struct extent_builder *builder, uint8_t *at, const uint8_t *bytes,
                          uint64_t size_bytes);

/* What only the caller knows of the range. */
struct extent_builder_range {
        uint64_t begin_offset, end_offset;
        uint32_t begin_index, end_index;
        uint32_t skipped_count;
        double min_wall_time; /* +infinity if there is none */
};

/* Finishes the image, CRC included; returns its size. The builder is used up. */
uint64_t extent_builder_close(struct extent_builder *builder,
                              const struct extent_builder_range *range);
