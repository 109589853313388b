/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TFRecord framing: u64 length, masked CRC of it, payload, masked CRC of the payload; no other
 * marks in the file. A pull machine over a contiguous piece of a file that gets past damage and
 * holds nothing but a place. Pure, any thread.
 *
 * A wrong payload CRC costs that record only: the next one is where the length says, if a right
 * header, only zeros or the end is there; else (the record has lost or gained bytes) it is the next
 * right header behind this one. Where no right header stands, the next one is searched byte by
 * byte. Zeros up to the end are not yet written, and so is a record that goes on behind the end;
 * zeros with a record behind them are a hole. What is found, and why, does not depend on the pieces
 * in which the bytes come. Work is bounded for each byte.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"
#include "common/damage.h"
#include "daemon/frame/crc_prefix.h"

#define TFRECORD_HEADER_BYTES 12
#define TFRECORD_OVERHEAD_BYTES 16

/* A TFRecord, or of STAGE_CORRUPT the bytes that are skipped instead. */
struct tfrecord {
        uint64_t offset;
        uint64_t size_bytes; /* framing included */
        const uint8_t *payload;
        uint64_t payload_bytes;
        enum damage damage;
};

struct tfrecord_reader {
        const uint8_t *bytes; /* of the file, from bytes_offset on */
        uint64_t bytes_offset, size_bytes;
        uint64_t offset; /* where the next record begins; the caller may read it */
        /* 0, or: offset has no right record, and no right header begins behind it before this */
        uint64_t search_offset;
        /* then: what is wrong there; DAMAGE_ZEROS as long as nothing else was seen */
        enum damage search_damage;
        /* UINT64_MAX, or a place where a record is known to begin or the range to end */
        uint64_t boundary;
        /* what stands at the boundary is nothing that a damaged record may be believed to end at */
        bool boundary_is_open;
        uint64_t record_max_bytes; /* of a payload */
        bool length_crc_only;      /* any payload is right */
        uint64_t file_bytes;       /* the file's size as far as is known; 0: it is not */
        /* after STAGE_MORE: from offset (or search_offset) on; 0 unknown, UINT64_MAX absurd */
        uint64_t need_bytes;
        bool last; /* the file ends with these bytes, as far as is known */
        /* after STAGE_MORE: what is wrong from offset up to the end of the file; DAMAGE_NONE */
        enum damage unresolved_damage;
        /*
         * Memory for what makes many wrong records in each other cheap, or NULL; the caller's, need
         * not be initialized. What is found does not depend on it.
         */
        struct crc_prefix *prefix;
        uint64_t doubt_offset; /* the damage before it may hold many headers; 0 at first */
        bool has_prefix;       /* and it is in use */
};

/* Of a header of TFRECORD_HEADER_BYTES: the record's size, framing included; 0: it is not right. */
uint64_t tfrecord_size(const uint8_t *header);

/*
 * Goes from header to header without a look at payloads, from the record at `at` on. Returns where
 * the first one begins that does not end up to `end`, or whose header is not right.
 */
uint64_t tfrecord_skip_whole(const uint8_t *bytes, uint64_t at, uint64_t end);

/*
 * The next record with both CRCs right; the reader then stands behind it (tfrecord_reader.offset,
 * maybe behind the bytes). STAGE_CORRUPT: a damaged one, likewise. STAGE_MORE: the bytes end before
 * the next record does (or there is none). Only ret_record's fields of a found item are valid.
 */
int tfrecord_next(struct tfrecord_reader *reader, struct tfrecord *ret_record);

/*
 * True if a damaged record is not believed to end where the reader stands: whoever reads up to here
 * again must be told (boundary_is_open), as it will not see what stands behind.
 */
bool tfrecord_is_open(const struct tfrecord_reader *reader);
