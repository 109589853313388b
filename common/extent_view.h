/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading an extent from bytes that need not be right: extent_view_init() refuses what is no
 * extent, and no accessor ever reads outside of the bytes, whatever is in them. What is wrong
 * inside (a string or a payload past the end) reads as absent. The view borrows the bytes. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/extent_format.h"

struct extent_view {
        const uint8_t *bytes;
        const struct extent_header *header;
        const struct extent_record *records;
        const struct extent_series *series;
        uint64_t size_bytes; /* as the header says; at most what was given */
        uint32_t record_count, series_count;
};

/* Bytes inside of an extent; not NUL-terminated. */
struct extent_string {
        const uint8_t *bytes;
        uint64_t size;
};

/*
 * bytes are 64-byte aligned, size_bytes of them can be read. Checks magic, version, size, and that
 * the tables and all strings of header and series lie inside. -EBADMSG: not an extent that this
 * code can read.
 */
int extent_view_init(struct extent_view *view, const void *bytes, uint64_t size_bytes);

/* True if the CRC of the image is right. Reads all of it. */
bool extent_view_is_intact(const struct extent_view *view);

struct extent_string extent_view_run_name(const struct extent_view *view);
struct extent_string extent_view_file_path(const struct extent_view *view);

/* index < record_count */
static inline const struct extent_record *extent_view_record(const struct extent_view *view,
                                                             uint32_t index) {
        return &view->records[index];
}

/* The series of a record; NULL: it has none (an event mark) or names one that is not there. */
static inline const struct extent_series *extent_view_series_of(
        const struct extent_view *view, const struct extent_record *record) {
        uint32_t index = record->series;

        return index < view->series_count ? &view->series[index] : NULL;
}

struct extent_string extent_view_tag(const struct extent_view *view,
                                     const struct extent_series *series);
struct extent_string extent_view_plugin(const struct extent_view *view,
                                        const struct extent_series *series);
struct extent_string extent_view_display_name(const struct extent_view *view,
                                              const struct extent_series *series);
struct extent_string extent_view_description(const struct extent_view *view,
                                             const struct extent_series *series);
struct extent_string extent_view_content(const struct extent_view *view,
                                         const struct extent_series *series);

/* A tensor or blob sequence, in place. */
struct extent_payload_view {
        uint8_t dtype;
        uint8_t rank; /* 0 where it is unknown */
        bool rank_known;
        bool malformed; /* the elements are not those that the shape says */
        bool repeated;  /* one element was written, and stands for all */
        uint32_t element_count;
        uint32_t element_bytes;   /* of fixed-size types; 0: strings */
        const int64_t *dimension; /* rank of them */
        /* fixed-size types: element_count * element_bytes; strings: all their bytes */
        const uint8_t *elements;
        uint64_t elements_size;
        /* of strings, in elements; not checked: use extent_payload_string() */
        const uint64_t *end_offset;
};

/*
 * -ENOENT: the record has no payload here (a scalar, a mark, an external payload). -EBADMSG: it
 * does not lie inside of the extent, or is too short for what its head says.
 */
int extent_view_payload(const struct extent_view *view, const struct extent_record *record,
                        struct extent_payload_view *ret_payload);

/* index < element_count. One string or blob; empty if its ends are not inside of the payload. */
struct extent_string extent_payload_string(const struct extent_payload_view *payload,
                                           uint32_t index);
