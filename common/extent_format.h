/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extent: the decoded image of a range of bytes of one event file, the same in memory, on disk
 * and on the wire. docs/EXTENT.md describes it; this header is its layout. Little-endian, 64-byte
 * aligned, offsets from its first byte.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "extents are read in place and are little-endian"
#endif

#define EXTENT_MAGIC 0x31585248u /* "HRX1" */
#define EXTENT_VERSION 1
#define EXTENT_ALIGNMENT 64
#define EXTENT_SERIES_NONE UINT32_MAX /* series of an event mark */
#define EXTENT_RANK_UNKNOWN 255

enum extent_flag {
        EXTENT_DAMAGED = 1, /* some bytes of the range could not be decoded */
};

struct extent_header {
        uint32_t magic;
        uint16_t version;
        uint16_t flags;
        uint64_t size_bytes;
        uint32_t crc32c; /* of the image with this field as zero */
        uint32_t record_count;
        uint32_t series_count;
        uint32_t skipped_count; /* damaged records in the range */
        uint64_t source_id;
        uint64_t run_id;
        uint64_t file_id;
        uint64_t file_version;
        uint64_t begin_offset;
        uint64_t end_offset;
        /* smallest finite wall time of all Events in the range; +infinity if none */
        double min_wall_time;
        uint32_t records_offset;
        uint32_t series_offset;
        uint32_t run_name_offset;
        uint32_t run_name_size;
        uint32_t file_path_offset;
        uint32_t file_path_size;
        uint64_t payload_offset;
        uint32_t begin_index;
        uint32_t end_index; /* 0: the last TFRecord is here whole */
};

static_assert(sizeof(struct extent_header) == 128, "layout");
static_assert(offsetof(struct extent_header, crc32c) == 16, "layout");
static_assert(offsetof(struct extent_header, source_id) == 32, "layout");
static_assert(offsetof(struct extent_header, begin_offset) == 64, "layout");
static_assert(offsetof(struct extent_header, min_wall_time) == 80, "layout");
static_assert(offsetof(struct extent_header, run_name_offset) == 96, "layout");
static_assert(offsetof(struct extent_header, payload_offset) == 112, "layout");
static_assert(offsetof(struct extent_header, begin_index) == 120, "layout");

enum extent_kind {
        EXTENT_KIND_SCALAR = 1, /* a simple_value */
        EXTENT_KIND_TENSOR = 2,
        EXTENT_KIND_BLOBS = 3,
        EXTENT_KIND_MARK = 4, /* of an Event, not of a series; dtype is an extent_mark */
};

enum extent_mark {
        EXTENT_MARK_FILE_VERSION = 1,
        EXTENT_MARK_SESSION_START = 2,
        EXTENT_MARK_SESSION_STOP = 3,
        EXTENT_MARK_SESSION_CHECKPOINT = 4,
};

enum extent_record_flag {
        EXTENT_RECORD_EXTERNAL = 1,  /* the payload is not here: ask for it */
        EXTENT_RECORD_CONVERTED = 2, /* from a legacy value: its modern form */
        EXTENT_RECORD_MALFORMED = 4, /* a tensor that does not fit its own shape */
        /* a legacy value without modern form, as written: one blob with the bytes of its field */
        EXTENT_RECORD_CARRIED = 8,
        EXTENT_RECORD_NUMBER = 16, /* a tensor that is one real number: `value` */
};

struct extent_record {
        int64_t step;
        double wall_time; /* seconds since 1970, as written */
        double value;     /* of a one-element number, else 0 */
        uint32_t series;
        uint8_t kind;
        uint8_t dtype;
        uint16_t flags;
        uint64_t payload_offset; /* of a scalar: the bits as written, zero-extended */
        uint64_t payload_size;
        uint64_t source_offset; /* of the TFRecord in its file */
        uint32_t source_size;   /* framing included; saturates */
        uint32_t value_index;
};

static_assert(sizeof(struct extent_record) == 64, "layout");
static_assert(offsetof(struct extent_record, series) == 24, "layout");
static_assert(offsetof(struct extent_record, payload_offset) == 32, "layout");
static_assert(offsetof(struct extent_record, value_index) == 60, "layout");

enum extent_class {
        EXTENT_CLASS_UNKNOWN = 0,
        EXTENT_CLASS_SCALAR = 1,
        EXTENT_CLASS_TENSOR = 2,
        EXTENT_CLASS_BLOBS = 3,
};

enum extent_series_flag {
        EXTENT_SERIES_METADATA = 1, /* metadata stands in this range */
        /* some of it is too long to be here: ask for the payload of the row's first record */
        EXTENT_SERIES_LEFT_OUT = 2,
        /* the tag has a row before this one: its values say more from here on */
        EXTENT_SERIES_AGAIN = 4,
};

/*
 * What a value was written as: the class of a series without one depends on it. A row of the series
 * is from the first value that has it: docs/EXTENT.md, "Series".
 */
enum extent_written_as {
        EXTENT_WRITTEN_NONE = 0, /* a value with nothing in it */
        EXTENT_WRITTEN_SIMPLE_VALUE = 1,
        EXTENT_WRITTEN_TENSOR = 2,
        EXTENT_WRITTEN_IMAGE = 3,
        EXTENT_WRITTEN_HISTOGRAM = 4,
        EXTENT_WRITTEN_AUDIO = 5,
        EXTENT_WRITTEN_OLD_HISTOGRAM = 6,
        EXTENT_WRITTEN_GRAPH = 7,
        EXTENT_WRITTEN_RUN_METADATA = 8,
};

struct extent_series {
        uint64_t series_id;
        uint32_t tag_offset, tag_size;
        uint32_t plugin_offset, plugin_size;
        uint32_t display_name_offset, display_name_size;
        uint32_t description_offset, description_size;
        uint32_t content_offset, content_size;
        uint8_t data_class;
        uint8_t flags;
        uint8_t written_as;
        uint8_t reserved[13];
};

static_assert(sizeof(struct extent_series) == 64, "layout");
static_assert(offsetof(struct extent_series, data_class) == 48, "layout");

enum extent_payload_flag {
        EXTENT_PAYLOAD_MALFORMED = 4, /* the elements are not those that the shape says */
        EXTENT_PAYLOAD_REPEATED = 32, /* one element was written, and stands for all */
};

/*
 * Head of a payload. Elements (fixed-size types) or u64 end_offset[element_count] and the bytes
 * (strings) follow.
 */
struct extent_payload {
        uint8_t dtype;
        uint8_t rank;   /* EXTENT_RANK_UNKNOWN: none */
        uint16_t flags; /* enum extent_payload_flag */
        uint32_t element_count;
        int64_t dimension[];
};

static_assert(sizeof(struct extent_payload) == 8, "layout");

/* Where the elements of a fixed-size type, or the end offsets of strings, begin in a payload. */
static inline uint64_t extent_payload_data_offset(uint8_t rank) {
        uint64_t dimensions = rank == EXTENT_RANK_UNKNOWN ? 0 : rank;

        return (sizeof(struct extent_payload) + 8 * dimensions + EXTENT_ALIGNMENT - 1) &
               ~(uint64_t)(EXTENT_ALIGNMENT - 1);
}
