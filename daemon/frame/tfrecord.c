/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common path is tfrecord_next() from top to bottom; everything else is about damage. Places
 * are counted from the first byte given. "Closed" means that the bytes reach to a boundary: what
 * stands there needs no looking at.
 */
#include "daemon/frame/tfrecord.h"

#include <string.h>

#include "common/crc32c.h"

/*
 * So many zeros behind a damaged record count as "zeros up to the end": bounds what must be in
 * memory to decide.
 */
#define ZERO_RUN_BYTES 65536

static uint64_t load_u64(const uint8_t *bytes) {
        uint64_t value;

        memcpy(&value, bytes, sizeof(value));
        return value;
}

static uint32_t load_u32(const uint8_t *bytes) {
        uint32_t value;

        memcpy(&value, bytes, sizeof(value));
        return value;
}

static bool header_is_right(const uint8_t *header) {
        return crc32c_mask(crc32c(header, 8)) == load_u32(header + 8);
}

static bool is_zero(const uint8_t *bytes, uint64_t size) {
        return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static bool is_closed(const struct tfrecord_reader *reader) {
        return reader->boundary <= reader->bytes_offset + reader->size_bytes;
}

/* Behind the last byte that may be looked at. */
static uint64_t end_of(const struct tfrecord_reader *reader) {
        return min_u64(reader->size_bytes, reader->boundary - reader->bytes_offset);
}

static int more(struct tfrecord_reader *reader, uint64_t need_bytes) {
        reader->need_bytes = need_bytes;
        return STAGE_MORE;
}

/* Everything from the reader's place up to next is damaged. */
static int skip(struct tfrecord_reader *reader, uint64_t next_offset, enum tfrecord_damage damage,
                struct tfrecord *ret_record) {
        *ret_record = (struct tfrecord){
                .offset = reader->offset,
                .size_bytes = next_offset - reader->offset,
                .damage = damage,
        };
        reader->offset = next_offset;
        reader->search_offset = 0;
        return STAGE_CORRUPT;
}

/* Most of a hole in a file is told by this alone, without a CRC. */
static bool is_blank(const uint8_t *header) {
        return load_u64(header) == 0 && load_u32(header + 8) == 0;
}

/* The first place from `from` on where a right header stands; end if there is none. */
static uint64_t find_header(const uint8_t *bytes, uint64_t from, uint64_t end) {
        for (; from < end && end - from >= TFRECORD_HEADER_BYTES; from++)
                if (!is_blank(bytes + from) && header_is_right(bytes + from))
                        return from;
        return end;
}

/* Searches the right header that ends the damage at the reader's place, from `from` on. */
static int search(struct tfrecord_reader *reader, uint64_t from, enum tfrecord_damage damage,
                  struct tfrecord *ret_record) {
        uint64_t end = end_of(reader);
        uint64_t found = find_header(reader->bytes, from, end);
        uint64_t at = reader->offset - reader->bytes_offset;

        if (found < end || is_closed(reader))
                return skip(reader, reader->bytes_offset + found, damage, ret_record);
        reader->unresolved = reader->last && !reader->search_offset &&
                             !is_zero(reader->bytes + at, end - at);
        reader->unresolved_damage = damage;
        /* A header may begin in the last bytes and go on behind them. */
        reader->search_offset = reader->bytes_offset +
                                max_u64(from, end - min_u64(end, TFRECORD_HEADER_BYTES - 1));
        return more(reader, 0);
}

/* Goes on with a search that an earlier piece of the file did not end. */
static int search_on(struct tfrecord_reader *reader, struct tfrecord *ret_record) {
        enum tfrecord_damage damage = TFRECORD_LENGTH_CRC;
        uint64_t from = max_u64(reader->search_offset, reader->offset + 1);

        if (reader->offset >= reader->bytes_offset) {
                uint64_t at = reader->offset - reader->bytes_offset;

                if (at < reader->size_bytes && reader->size_bytes - at >= TFRECORD_HEADER_BYTES &&
                    header_is_right(reader->bytes + at))
                        damage = TFRECORD_DATA_CRC;
        }
        if (from < reader->bytes_offset)
                from = reader->bytes_offset;
        return search(reader, from - reader->bytes_offset, damage, ret_record);
}

/* Fewer bytes than a header has. */
static int no_header(struct tfrecord_reader *reader, struct tfrecord *ret_record) {
        if (is_closed(reader) && reader->offset < reader->boundary)
                return skip(reader, reader->boundary, TFRECORD_LENGTH_CRC, ret_record);
        return more(reader, TFRECORD_HEADER_BYTES);
}

/*
 * A right header, but the bytes end before the record does. If they end at a boundary, the record
 * was whole and wrong when the boundary was found, and the next right header was searched inside of
 * it.
 */
static int truncated(struct tfrecord_reader *reader, uint64_t payload_bytes,
                     struct tfrecord *ret_record) {
        if (is_closed(reader))
                return search(reader, reader->offset - reader->bytes_offset + TFRECORD_HEADER_BYTES,
                              TFRECORD_DATA_CRC, ret_record);
        if (payload_bytes > UINT64_MAX - TFRECORD_OVERHEAD_BYTES)
                return more(reader, UINT64_MAX);
        return more(reader, payload_bytes + TFRECORD_OVERHEAD_BYTES);
}

/*
 * A right header of a record that nobody wants in memory: only its length is believed, as far as
 * the file goes.
 */
static int too_large(struct tfrecord_reader *reader, uint64_t payload_bytes,
                     struct tfrecord *ret_record) {
        uint64_t next;

        if (payload_bytes > UINT64_MAX - TFRECORD_OVERHEAD_BYTES - reader->offset)
                return truncated(reader, payload_bytes, ret_record);
        next = reader->offset + TFRECORD_OVERHEAD_BYTES + payload_bytes;
        if (next > reader->boundary ||
            (reader->last && next > reader->bytes_offset + reader->size_bytes))
                return truncated(reader, payload_bytes, ret_record);
        return skip(reader, next, TFRECORD_TOO_LARGE, ret_record);
}

/*
 * A complete record at `at` with a wrong payload CRC; by its length the next one is at `next`. Is
 * that to be believed? Yes, if it is the end, if a right header is there, or if only zeros are (0
 * then); else the next right header is searched (STAGE_CORRUPT). STAGE_MORE: what is there cannot
 * be told yet.
 */
static int judge_length(const struct tfrecord_reader *reader, uint64_t next) {
        const uint8_t *behind = reader->bytes + next;
        uint64_t rest = end_of(reader) - next;
        bool closed = is_closed(reader);

        if (rest == 0)
                return closed || reader->last ? 0 : STAGE_MORE;
        if (rest >= TFRECORD_HEADER_BYTES && header_is_right(behind))
                return 0;
        if (is_zero(behind, min_u64(rest, ZERO_RUN_BYTES))) {
                if (rest >= ZERO_RUN_BYTES || (reader->last && !closed))
                        return 0;
                return closed ? STAGE_CORRUPT : STAGE_MORE;
        }
        return rest >= TFRECORD_HEADER_BYTES || closed || reader->last ? STAGE_CORRUPT : STAGE_MORE;
}

static int damaged_payload(struct tfrecord_reader *reader, uint64_t at, uint64_t next,
                           struct tfrecord *ret_record) {
        uint64_t next_offset = reader->bytes_offset + next;
        int r = judge_length(reader, next);

        if (r == 0)
                return skip(reader, next_offset, TFRECORD_DATA_CRC, ret_record);
        if (r == STAGE_MORE)
                return more(reader, next - at + ZERO_RUN_BYTES);
        return search(reader, at + TFRECORD_HEADER_BYTES, TFRECORD_DATA_CRC, ret_record);
}

int tfrecord_next(struct tfrecord_reader *reader, struct tfrecord *ret_record) {
        uint64_t at, end, payload_bytes, left;
        const uint8_t *header;

        if (reader->search_offset)
                return search_on(reader, ret_record);
        at = reader->offset - reader->bytes_offset;
        end = end_of(reader);
        if (at > end || end - at < TFRECORD_HEADER_BYTES)
                return no_header(reader, ret_record);
        header = reader->bytes + at;
        if (!header_is_right(header))
                return search(reader, at + 1, TFRECORD_LENGTH_CRC, ret_record);
        payload_bytes = load_u64(header);
        left = end - at - TFRECORD_HEADER_BYTES;
        if (payload_bytes > reader->record_max_bytes)
                return too_large(reader, payload_bytes, ret_record);
        if (left < 4 || payload_bytes > left - 4)
                return truncated(reader, payload_bytes, ret_record);
        if (crc32c_mask(crc32c(header + 12, payload_bytes)) !=
            load_u32(header + 12 + payload_bytes))
                return damaged_payload(reader, at, at + TFRECORD_OVERHEAD_BYTES + payload_bytes,
                                       ret_record);
        *ret_record = (struct tfrecord){
                .offset = reader->offset,
                .size_bytes = payload_bytes + TFRECORD_OVERHEAD_BYTES,
                .payload = header + TFRECORD_HEADER_BYTES,
                .payload_bytes = payload_bytes,
        };
        reader->offset += ret_record->size_bytes;
        return 0;
}
