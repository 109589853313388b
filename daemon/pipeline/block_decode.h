/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of an event file in, one extent out: the data path (frame, verify, decode, publish) as one
 * pure function. It does not allocate from the heap on its way, log, or look at a clock; it may run
 * on any thread. The bytes are a contiguous piece of the file; the extent is written into memory
 * that the caller owns (a segment of the ring).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"
#include "daemon/decode/event.h"
#include "daemon/discover/file_damage.h"

/* Who the extent is of. The strings are borrowed; the ids are those of extent_format.h. */
struct block_file {
        uint64_t source_id, run_id, file_id, file_version;
        const char *source_url; /* NUL-terminated, for series ids */
        const char *run_name;
        uint32_t run_name_size;
        const char *path;
        uint32_t path_size;
};

/* A place in a file: a TFRecord and the first of its values that is meant. */
struct block_position {
        uint64_t offset;
        uint32_t index;
};

/*
 * Where decoding goes on inside of a TFRecord that has been looked at already. payload_bytes 0: not
 * known, it is looked at again from its first byte.
 */
struct block_resume {
        uint64_t payload_bytes;
        struct event_place place;
};

struct block_input {
        const struct block_file *file;
        const uint8_t *bytes; /* of the file from bytes_offset on */
        uint64_t bytes_offset;
        uint64_t size_bytes;
        struct block_position begin; /* where to go on; bytes_offset <= begin.offset */
        /*
         * 0, or: no right record is at begin.offset, and no right header behind it before this
         * offset. Then search_damage is what is wrong there (tfrecord.h).
         */
        uint64_t search_offset;
        enum damage search_damage;
        /* of the output that `begin` is from, if the bytes are the same as then */
        struct block_resume resume;
        /* {0, 0}: to the end of the bytes; else stop exactly here (a block fetched again) */
        struct block_position end;
        bool end_is_open; /* as the output said when the block was read first */
        /*
         * the bytes reach to the end of the file as it is known: what is incomplete is not yet
         * written
         */
        bool last;
        /*
         * Stop in front of bytes that look damaged (STAGE_DOUBT), unless they begin before
         * believed_offset. Not where right CRCs say that the bytes are as they were written.
         */
        bool doubts;
        uint64_t believed_offset;
        uint64_t file_bytes;       /* how large the file is as it is known; 0: it is not */
        bool length_crc_only;      /* the CRC of a payload is not checked */
        uint64_t record_max_bytes; /* longer payloads are skipped as too large */
        /* larger payloads are external; 256 KiB and at most half a segment */
        uint32_t payload_inline_max_bytes;
        /* of the ring: extents are never larger, and the image depends on it */
        uint64_t segment_bytes;
        /*
         * NULL; or room for every damaged place: when it is full, that counts as STAGE_FULL. At
         * least one.
         */
        struct damaged_place *places;
        uint32_t place_space;
};

#define BLOCK_DAMAGE_MOST 16 /* places named for each extent; damage_count counts all */

struct block_output {
        uint64_t extent_bytes;            /* 0: nothing was written */
        struct block_position begin, end; /* the range that the extent covers */
        /* what stands at its end decides about damage in it: for whoever reads the range again */
        bool end_is_open;
        uint32_t record_count;
        /* where to go on; equals end but where bytes are still being searched */
        struct block_position next;
        uint64_t search_offset; /* as in the input, for the next call */
        enum damage search_damage;
        /* where it stopped inside of a TFRecord: likewise, while the bytes stay the same */
        struct block_resume resume;
        /*
         * of STAGE_MORE: bytes from next.offset (or search_offset) on that the item needs; 0
         * unknown. Of STAGE_FULL inside of a TFRecord: that TFRecord's
         */
        uint64_t need_bytes;
        /* largest step of a value; valid if record_count of values is not 0 */
        int64_t last_step;
        bool has_last_step;
        uint32_t damage_count;
        struct damaged_place
                damage[BLOCK_DAMAGE_MOST]; /* the first ones; all are in input->places */
        uint32_t damage_by_reason[DAMAGE_COUNT];
        /*
         * Of STAGE_MORE, with input->last: from next.offset up to the end of the file no record is
         * found, and it is not just unwritten. Not in damage[] nor in the extent: the search goes on
         * when the file has grown. reason DAMAGE_NONE: there is none.
         */
        struct damaged_place tail;
        enum damage doubted; /* of STAGE_DOUBT: what it looks like */
};

/*
 * Decodes as many records as the bytes and the room hold and writes one finished extent (header and
 * CRC included) at memory, which is 64-byte aligned.
 *
 * 0            all complete records up to the end are in the extent (or there were none:
 *              extent_bytes is 0)
 * STAGE_MORE   likewise, and the bytes end inside an item: come again with bytes from next.offset
 *              on (next.offset may be far behind the bytes given, where a too large record is
 *              skipped). With input->last this is "not yet written".
 * STAGE_FULL   the room (or that for damaged places) is used up; go on at next with new memory. extent_bytes 0: nothing fitted
 *              into this room at all; given a whole segment, it always makes progress
 * STAGE_DOUBT  with input->doubts: bytes from next on look damaged
 */
int block_decode(const struct block_input *input, void *memory, uint64_t room_bytes,
                 struct block_output *ret_output);

/*
 * The one value at position, as a one-record extent of any size with its payload inline (the answer
 * to `payload`). The bytes hold that TFRecord whole. Allocates; *ret_memory is the caller's to
 * free. -ENOMEM; STAGE_CORRUPT if no such value is there.
 */
int block_decode_value(const struct block_input *input, void **ret_memory,
                       uint64_t *ret_size_bytes);
