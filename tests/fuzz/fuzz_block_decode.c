/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an event file, or (first byte odd) as Events that get right frames around them.
 * Whatever comes out is a right extent, is the same when decoded again from its own bytes into just
 * its own room, and progress is made in every segment.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

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

/*
 * A block that ends at junk, whose end is not known yet, and has damage itself, may be another one
 * when decoded again: nothing in the range tells that what stands behind it was not right.
 */
static bool may_differ(const struct block_output *output, bool ends_open) {
        return ends_open && output->search_offset && output->damage_count > 1;
}

static void check_block(const struct block_input *input, const struct block_output *output,
                        const uint8_t *image, bool ends_open) {
        struct extent_view view;

        MUST(extent_view_init(&view, image, output->extent_bytes) == 0 &&
             extent_view_is_intact(&view));
        MUST(view.size_bytes == output->extent_bytes && view.record_count == output->record_count);
        if (!may_differ(output, ends_open))
                decode_again(input, output, image);
        if (view.record_count > 0)
                decode_value(input, extent_view_record(&view, view.record_count - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(freep) uint8_t *segment = aligned_alloc(64, SEGMENT_BYTES);
        CLEANUP(freep) uint8_t *owned = NULL;
        struct block_output output;
        struct block_input input;
        struct bytes bytes;
        int r = STAGE_FULL;

        if (size == 0 || size > INPUT_MOST)
                return 0;
        bytes = (struct bytes){ (uint8_t *)data + 1, size - 1 };
        if (data[0] & 1)
                bytes = framed(data + 1, size - 1), owned = bytes.at;
        input = input_of(&bytes);
        while (r == STAGE_FULL) {
                r = block_decode(&input, segment, SEGMENT_BYTES, &output);
                MUST(r != STAGE_FULL || output.extent_bytes > 0);
                if (output.extent_bytes > 0)
                        check_block(&input, &output, segment, r == STAGE_MORE);
                input.begin = output.next;
        }
        return 0;
}
