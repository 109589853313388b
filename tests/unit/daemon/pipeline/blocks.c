/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/pipeline/blocks.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base.h"
#include "common/name_id.h"

struct bytes bytes_of_file(const char *path) {
        FILE *file = fopen(path, "rbe");
        struct bytes bytes = { NULL, 0 };
        long size;

        ck_assert_msg(file != NULL, "cannot open %s", path);
        ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
        size = ftell(file);
        ck_assert_int_ge(size, 0);
        rewind(file);
        bytes.at = malloc((size_t)size + 1);
        bytes.size = (uint64_t)size;
        ck_assert_uint_eq(fread(bytes.at, 1, (size_t)size, file), (size_t)size);
        fclose(file);
        return bytes;
}

struct block_file blocks_file(const char *path, const char *run) {
        return (struct block_file){
                .source_id = name_id_source(BLOCKS_URL),
                .run_id = name_id_run(BLOCKS_URL, run, strlen(run)),
                .file_id = name_id_file(BLOCKS_URL, path, strlen(path)),
                .file_version = 1,
                .source_url = BLOCKS_URL,
                .run_name = run,
                .run_name_size = (uint32_t)strlen(run),
                .path = path,
                .path_size = (uint32_t)strlen(path),
        };
}

struct block_input blocks_input(const struct bytes *bytes, const struct block_file *file,
                                uint64_t segment_bytes) {
        return (struct block_input){
                .file = file,
                .bytes = bytes->at,
                .size_bytes = bytes->size,
                .last = true,
                .record_max_bytes = 256u << 20,
                .payload_inline_max_bytes = (uint32_t)min_u64(256u << 10, segment_bytes / 2),
                .segment_bytes = segment_bytes,
        };
}

struct block_image blocks_decode_one(const struct block_input *input, uint64_t room_bytes) {
        CLEANUP(freep)
        void *memory = aligned_alloc(EXTENT_ALIGNMENT,
                                     align_up(max_u64(room_bytes, 1), EXTENT_ALIGNMENT));
        struct block_image block = { 0 };

        ck_assert_ptr_nonnull(memory);
        memset(memory, 0xa5, room_bytes);
        block.result = block_decode(input, memory, room_bytes, &block.output);
        ck_assert_uint_le(block.output.extent_bytes, room_bytes);
        if (block.output.extent_bytes == 0)
                return block;
        block.image = aligned_alloc(EXTENT_ALIGNMENT, block.output.extent_bytes);
        ck_assert_ptr_nonnull(block.image);
        memcpy(block.image, memory, block.output.extent_bytes);
        return block;
}

void blocks_append(struct blocks *blocks, struct block_image image) {
        blocks->list = realloc(blocks->list, (blocks->count + 1) * sizeof(image));
        ck_assert_ptr_nonnull(blocks->list);
        blocks->list[blocks->count++] = image;
}

struct blocks blocks_decode(const struct block_input *input) {
        struct block_input next = *input;
        struct blocks blocks = { NULL, 0 };
        struct block_image block;

        do {
                block = blocks_decode_one(&next, next.segment_bytes);
                blocks_append(&blocks, block);
                ck_assert(block.result != STAGE_FULL || block.image);
                next.begin = block.output.next;
        } while (block.result == STAGE_FULL);
        return blocks;
}

void blocks_free(struct blocks *blocks) {
        for (size_t i = 0; i < blocks->count; i++)
                free(blocks->list[i].image);
        free(blocks->list);
        *blocks = (struct blocks){ NULL, 0 };
}

uint64_t blocks_record_digest(const struct extent_view *view, const struct extent_record *record) {
        const struct extent_series *series = extent_view_series_of(view, record);
        struct extent_record bare = *record;
        struct extent_string tag = { NULL, 0 };
        struct extent_payload_view payload;
        uint64_t digest;

        if (series)
                tag = extent_view_tag(view, series);
        bare.series = 0;
        if (record->kind != EXTENT_KIND_SCALAR)
                bare.payload_offset = 0;
        digest = XXH3_64bits_withSeed(tag.bytes, tag.size, XXH3_64bits(&bare, sizeof(bare)));
        if (extent_view_payload(view, record, &payload) == 0)
                digest = XXH3_64bits_withSeed(view->bytes + record->payload_offset,
                                              record->payload_size, digest);
        return digest;
}
