/* SPDX-License-Identifier: Apache-2.0 */
/* Whole event files decoded into lists of blocks, for tests. */
#pragma once

#include <stdint.h>

#include "common/extent_view.h"
#include "daemon/pipeline/block_decode.h"

#define BLOCKS_URL "file:///fixtures"

struct bytes {
        uint8_t *at;
        uint64_t size;
};

struct bytes bytes_of_file(const char *path);

/* A decoded block; the image is its own allocation of exactly its size. */
struct block_image {
        void *image;
        struct block_output output;
        int result;
};

struct blocks {
        struct block_image *list;
        size_t count;
};

/* The input for a file whose name is path: all bytes, to the end. */
struct block_input blocks_input(const struct bytes *bytes, const struct block_file *file,
                                uint64_t segment_bytes);
struct block_file blocks_file(const char *path, const char *run);

/* Decodes the whole file into segments of input->segment_bytes. */
struct blocks blocks_decode(const struct block_input *input);

/* Decodes one block into a segment's room; image NULL if nothing was written. */
struct block_image blocks_decode_one(const struct block_input *input, uint64_t room_bytes);

void blocks_append(struct blocks *blocks, struct block_image image);
void blocks_free(struct blocks *blocks);

/*
 * A hash of everything of a record that does not depend on its extent: of its bits, tag and
 * payload.
 */
uint64_t blocks_record_digest(const struct extent_view *view, const struct extent_record *record);
