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

#define DOUBTED_LEAST_BYTES 1024u /* shorter payloads are read anyway */

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

static inline bool header_is_right(const uint8_t *header) {
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
        reader->unresolved_damage = DAMAGE_NONE;
        return STAGE_MORE;
}

/* Everything from the reader's place up to next is damaged. */
static int skip(struct tfrecord_reader *reader, uint64_t next_offset, enum damage damage,
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

/* Compressed streams that are named like event files. Deflate has no third type of block. */
static enum damage stream_of(const uint8_t *bytes, uint64_t size) {
        if (size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8)
                return DAMAGE_GZIP;
        if (size >= 3 && bytes[0] == 0x78 && (0x7800 | bytes[1]) % 31 == 0 && (bytes[2] & 6) != 6)
                return DAMAGE_ZLIB;
        return DAMAGE_LENGTH_CRC;
}

/* What is wrong at the reader's place, where no right header stands; a hole as long as zeros go on. */
static enum damage judge(const struct tfrecord_reader *reader, uint64_t at) {
        if (reader->bytes[at] == 0)
                return DAMAGE_ZEROS;
        return reader->offset == 0 ? stream_of(reader->bytes + at, end_of(reader) - at)
                                   : DAMAGE_LENGTH_CRC;
}

/* The same, when [from, to) has been looked at, too. */
static enum damage judge_on(const struct tfrecord_reader *reader, enum damage damage, uint64_t from,
                            uint64_t to) {
        return damage == DAMAGE_ZEROS && from < to && !is_zero(reader->bytes + from, to - from)
                       ? DAMAGE_LENGTH_CRC
                       : damage;
}

/* Searches the right header that ends the damage at the reader's place, from `from` on. */
static int search(struct tfrecord_reader *reader, uint64_t from, enum damage damage,
                  struct tfrecord *ret_record) {
        uint64_t end = end_of(reader);
        uint64_t found = crc32c_find_masked(reader->bytes, from, end);
        /* A header may begin in the last bytes and go on behind them. */
        uint64_t searched = max_u64(from, end - min_u64(end, TFRECORD_HEADER_BYTES - 1));

        if (found < end || is_closed(reader))
                return skip(reader, reader->bytes_offset + found,
                            judge_on(reader, damage, from, found), ret_record);
        reader->search_offset = reader->bytes_offset + searched;
        reader->search_damage = judge_on(reader, damage, from, searched);
        more(reader, 0);
        damage = judge_on(reader, damage, from, end);
        if (reader->last && damage != DAMAGE_ZEROS)
                reader->unresolved_damage = damage;
        return STAGE_MORE;
}

/* Goes on with a search that an earlier piece of the file did not end. */
static int search_on(struct tfrecord_reader *reader, struct tfrecord *ret_record) {
        uint64_t from = max_u64(reader->search_offset, reader->offset + 1);

        if (from < reader->bytes_offset)
                from = reader->bytes_offset;
        return search(reader, from - reader->bytes_offset, reader->search_damage, ret_record);
}

/* Fewer bytes than a header has. */
static int no_header(struct tfrecord_reader *reader, struct tfrecord *ret_record) {
        uint64_t at = reader->offset - reader->bytes_offset;

        if (is_closed(reader) && reader->offset < reader->boundary)
                return skip(reader, reader->boundary,
                            judge_on(reader, judge(reader, at), at, end_of(reader)), ret_record);
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
                              DAMAGE_DATA_CRC, ret_record);
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
        if (next > reader->boundary || (reader->file_bytes && next > reader->file_bytes) ||
            (reader->last && next > reader->bytes_offset + reader->size_bytes))
                return truncated(reader, payload_bytes, ret_record);
        return skip(reader, next, DAMAGE_TOO_LARGE, ret_record);
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

        if (rest == 0 && closed)
                return reader->boundary_is_open ? STAGE_CORRUPT : 0;
        if (rest == 0)
                return reader->last ? 0 : STAGE_MORE;
        if (rest >= TFRECORD_HEADER_BYTES && header_is_right(behind))
                return 0;
        if (is_zero(behind, min_u64(rest, ZERO_RUN_BYTES))) {
                if (rest >= ZERO_RUN_BYTES || (reader->last && !closed))
                        return 0;
                return closed ? STAGE_CORRUPT : STAGE_MORE;
        }
        return rest >= TFRECORD_HEADER_BYTES || closed || reader->last ? STAGE_CORRUPT : STAGE_MORE;
}

bool tfrecord_is_open(const struct tfrecord_reader *reader) {
        if (reader->offset < reader->bytes_offset ||
            reader->offset - reader->bytes_offset > end_of(reader))
                return false;
        return judge_length(reader, reader->offset - reader->bytes_offset) == STAGE_CORRUPT;
}

static int damaged_payload(struct tfrecord_reader *reader, uint64_t at, uint64_t next,
                           struct tfrecord *ret_record) {
        uint64_t next_offset = reader->bytes_offset + next;
        int r = judge_length(reader, next);

        if (r == 0)
                return skip(reader, next_offset, DAMAGE_DATA_CRC, ret_record);
        if (r == STAGE_MORE)
                return more(reader, next - at + ZERO_RUN_BYTES);
        reader->doubt_offset = max_u64(reader->doubt_offset, next_offset);
        return search(reader, at + TFRECORD_HEADER_BYTES, DAMAGE_DATA_CRC, ret_record);
}

/*
 * Inside of a wrong record that did not end where it said, there may be another header every 12
 * bytes that claims as much.
 */
static uint32_t payload_crc(struct tfrecord_reader *reader, uint64_t from, uint64_t size_bytes) {
        if (!reader->prefix || reader->bytes_offset + from >= reader->doubt_offset ||
            size_bytes < DOUBTED_LEAST_BYTES)
                return crc32c(reader->bytes + from, size_bytes);
        if (!reader->has_prefix)
                crc_prefix_init(reader->prefix, reader->bytes, from, reader->size_bytes);
        reader->has_prefix = true;
        return crc_prefix_crc(reader->prefix, from, size_bytes);
}

uint64_t tfrecord_size(const uint8_t *header) {
        uint64_t payload_bytes = load_u64(header);

        return header_is_right(header) && payload_bytes <= UINT64_MAX - TFRECORD_OVERHEAD_BYTES
                       ? payload_bytes + TFRECORD_OVERHEAD_BYTES
                       : 0;
}

uint64_t tfrecord_skip_whole(const uint8_t *bytes, uint64_t at, uint64_t end) {
        while (end - at >= TFRECORD_OVERHEAD_BYTES) {
                uint64_t size_bytes = tfrecord_size(bytes + at);

                if (size_bytes == 0 || size_bytes > end - at)
                        return at;
                at += size_bytes;
        }
        return at;
}

static bool payload_is_right(struct tfrecord_reader *reader, uint64_t from, uint64_t size_bytes) {
        return reader->length_crc_only || crc32c_mask(payload_crc(reader, from, size_bytes)) ==
                                                  load_u32(reader->bytes + from + size_bytes);
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
                return search(reader, at + 1, judge(reader, at), ret_record);
        payload_bytes = load_u64(header);
        left = end - at - TFRECORD_HEADER_BYTES;
        if (payload_bytes > reader->record_max_bytes)
                return too_large(reader, payload_bytes, ret_record);
        if (left < 4 || payload_bytes > left - 4)
                return truncated(reader, payload_bytes, ret_record);
        if (!payload_is_right(reader, at + TFRECORD_HEADER_BYTES, payload_bytes))
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
