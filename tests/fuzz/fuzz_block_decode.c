/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an event file, or (first byte odd) as Events that get right frames around them.
 * Whatever comes out is a right extent, goes on where the one before it ended, and is the same when
 * decoded again from its own bytes into just its own room; progress is made in every segment; and
 * the records are those that come out when the file arrives in pieces (the rest of the first byte
 * says how long).
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base.h"
#include "common/crc32c.h"
#include "common/extent_view.h"
#include "daemon/pipeline/block_decode.h"

#define INPUT_MOST 65536
#define SEGMENT_BYTES 4096

static const struct block_file file = {
        .source_url = "file:///x",
        .run_name = "run",
        .run_name_size = 3,
        .path = "run/file",
        .path_size = 8,
};

struct bytes {
        uint8_t *at;
        size_t size;
};

static void put_frame(struct bytes *to, const uint8_t *payload, uint64_t size) {
        uint8_t *at = to->at + to->size;
        uint32_t crc;

        memcpy(at, &size, 8);
        crc = crc32c_mask(crc32c(at, 8));
        memcpy(at + 8, &crc, 4);
        memcpy(at + 12, payload, size);
        crc = crc32c_mask(crc32c(payload, size));
        memcpy(at + 12 + size, &crc, 4);
        to->size += size + 16;
}

/* Pieces with a byte of size before each, the last one with what is left. */
static struct bytes framed(const uint8_t *data, size_t size) {
        struct bytes framed = { malloc(17 * size + 64), 0 };

        while (size > 0) {
                size_t piece = *data < 0xff ? (size_t)min_u64(*data, size - 1) : size - 1;

                put_frame(&framed, data + 1, piece);
                data += piece + 1;
                size -= piece + 1;
        }
        return framed;
}

static struct block_input input_of(const struct bytes *bytes) {
        return (struct block_input){
                .file = &file,
                .bytes = bytes->at,
                .size_bytes = bytes->size,
                .last = true,
                .record_max_bytes = 1u << 20,
                .payload_inline_max_bytes = SEGMENT_BYTES / 2,
                .segment_bytes = SEGMENT_BYTES,
        };
}

/* In memory of its own: nothing before or behind the range may be looked at. */
static void decode_again(const struct block_input *whole, const struct block_output *first,
                         const uint8_t *image) {
        const struct extent_header *header = (const void *)image;
        uint64_t size = min_u64(header->end_offset, whole->size_bytes) - header->begin_offset;
        CLEANUP(freep) uint8_t *own = malloc(size + 1);
        CLEANUP(freep) uint8_t *room = aligned_alloc(64, first->extent_bytes);
        struct block_input input = *whole;
        struct block_output output;

        memcpy(own, whole->bytes + header->begin_offset, size);
        input.bytes = own;
        input.bytes_offset = header->begin_offset;
        input.size_bytes = size;
        input.begin = first->begin;
        input.end = first->end;
        input.end_is_open = first->end_is_open;
        input.last = false;
        MUST(block_decode(&input, room, first->extent_bytes, &output) == 0);
        MUST(output.extent_bytes == first->extent_bytes &&
             memcmp(room, image, output.extent_bytes) == 0);
}

static void decode_value(const struct block_input *whole, const struct extent_record *record) {
        struct block_input input = *whole;
        struct extent_view view;
        void *memory = NULL;
        uint64_t size;

        if (record->kind == EXTENT_KIND_MARK || record->payload_size > 1u << 20)
                return;
        input.begin = (struct block_position){ record->source_offset, record->value_index };
        MUST(block_decode_value(&input, &memory, &size) == 0);
        MUST(extent_view_init(&view, memory, size) == 0 && extent_view_is_intact(&view) &&
             view.record_count == 1);
        MUST(view.records[0].payload_size == record->payload_size);
        free(memory);
}

/* All records of a file, whatever extents they are in. */
struct digest {
        uint64_t records, skipped, value;
};

static void digest_record(const struct extent_view *view, const struct extent_record *record,
                          struct digest *digest) {
        const struct extent_series *series = extent_view_series_of(view, record);
        struct extent_record bare = *record;
        struct extent_payload_view payload;
        struct extent_string tag = { NULL, 0 };

        if (series)
                tag = extent_view_tag(view, series);
        bare.series = 0;
        if (record->payload_size)
                bare.payload_offset = 0;
        digest->value = XXH3_64bits_withSeed(&bare, sizeof(bare), digest->value);
        digest->value = XXH3_64bits_withSeed(tag.bytes, tag.size, digest->value);
        if (extent_view_payload(view, record, &payload) == 0)
                digest->value = XXH3_64bits_withSeed(view->bytes + record->payload_offset,
                                                     record->payload_size, digest->value);
        digest->records++;
}

static void digest_extent(const struct extent_view *view, struct digest *digest) {
        for (uint32_t i = 0; i < view->record_count; i++)
                digest_record(view, extent_view_record(view, i), digest);
        digest->skipped += view->header->skipped_count;
}

/* Goes on where the extent before it ended. */
static void check_range(const struct block_input *input, const struct block_output *output,
                        const struct extent_header *header) {
        MUST(output->begin.offset == input->begin.offset &&
             output->begin.index == input->begin.index);
        MUST(header->begin_offset == output->begin.offset &&
             header->begin_index == output->begin.index);
        MUST(header->end_index == output->end.index &&
             (header->end_index ? header->end_offset > output->end.offset
                                : header->end_offset == output->end.offset));
        MUST(output->next.offset == output->end.offset && output->next.index == output->end.index);
        MUST(output->end.offset > output->begin.offset || output->end.index > output->begin.index);
}

static void check_block(const struct block_input *input, const struct block_output *output,
                        const uint8_t *image, struct digest *digest) {
        struct extent_view view;

        MUST(extent_view_init(&view, image, output->extent_bytes) == 0 &&
             extent_view_is_intact(&view));
        MUST(view.size_bytes == output->extent_bytes && view.record_count == output->record_count);
        check_range(input, output, view.header);
        digest_extent(&view, digest);
        decode_again(input, output, image);
        if (view.record_count > 0)
                decode_value(input, extent_view_record(&view, view.record_count - 1));
}

static struct digest decode_whole(struct block_input input, uint8_t *segment) {
        struct digest digest = { 0 };
        struct block_output output;
        int r = STAGE_FULL;

        while (r == STAGE_FULL) {
                r = block_decode(&input, segment, SEGMENT_BYTES, &output);
                MUST(r != STAGE_FULL || output.extent_bytes > 0);
                if (output.extent_bytes > 0)
                        check_block(&input, &output, segment, &digest);
                input.begin = output.next;
        }
        return digest;
}

/* The first `known` bytes of the file, of which what is not decoded yet is given again. */
static int decode_up_to(struct block_input *input, const struct block_input *whole, uint64_t known,
                        uint8_t *segment, struct digest *digest) {
        uint64_t from = min_u64(input->begin.offset, known);
        struct block_output output;
        struct extent_view view;
        int r;

        input->bytes = whole->bytes + from;
        input->bytes_offset = from;
        input->size_bytes = known - from;
        input->last = known == whole->size_bytes;
        r = block_decode(input, segment, SEGMENT_BYTES, &output);
        if (output.extent_bytes > 0) {
                MUST(extent_view_init(&view, segment, output.extent_bytes) == 0);
                digest_extent(&view, digest);
        }
        input->begin = output.next;
        input->search_offset = output.search_offset;
        input->search_damage = output.search_damage;
        input->resume = output.resume; /* the bytes stay the same if it is STAGE_FULL */
        MUST(r == STAGE_FULL || input->resume.payload_bytes == 0);
        return r;
}

static struct digest decode_pieces(const struct block_input *whole, uint64_t piece,
                                   uint8_t *segment) {
        struct block_input input = *whole;
        struct digest digest = { 0 };
        uint64_t known = 0;

        /* "too large" is told before it is known whether the file is that long */
        input.record_max_bytes = UINT64_MAX;
        do {
                known = min_u64(known + piece, whole->size_bytes);
                while (decode_up_to(&input, whole, known, segment, &digest) == STAGE_FULL)
                        ;
        } while (known < whole->size_bytes);
        return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(freep) uint8_t *segment = aligned_alloc(64, SEGMENT_BYTES);
        CLEANUP(freep) uint8_t *owned = NULL;
        struct digest whole, pieces;
        struct block_input input;
        struct bytes bytes;

        if (size == 0 || size > INPUT_MOST)
                return 0;
        bytes = (struct bytes){ (uint8_t *)data + 1, size - 1 };
        if (data[0] & 1)
                bytes = framed(data + 1, size - 1), owned = bytes.at;
        input = input_of(&bytes);
        whole = decode_whole(input, segment);
        pieces = decode_pieces(&input, 1 + bytes.size / (1 + (data[0] >> 1) % 16), segment);
        MUST(memcmp(&whole, &pieces, sizeof(whole)) == 0);
        return 0;
}
