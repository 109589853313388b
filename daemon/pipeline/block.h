/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of one file: the ranges that its extents cover, in file order. A block is known once it
 * has been decoded; its extent is resident in a segment of the ring or absent, and can be fetched
 * again exactly. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/cells.h"
#include "daemon/core/list.h"
#include "daemon/pipeline/block_decode.h"

struct job;
struct feed;

struct block {
        struct feed *feed;
        struct block_position begin, end;
        uint64_t bytes_end;       /* end of its last TFRecord in the file: what a read must reach */
        uint64_t serial;          /* of its publication: grows over all files */
        uint64_t refetch_attempt; /* not before the source has had so many listings */
        struct job *job;          /* that fetches it again */
        struct list in_segment;   /* the segment's blocks, or those that just left it */
        uint32_t segment, offset_bytes; /* where, if it is resident */
        uint32_t size_bytes;   /* of its extent; at most that, if it was joined of several */
        uint32_t record_count; /* likewise the exact number */
        uint32_t crc32c;       /* of its extent; not known of a joined one */
        /* In a row. After the first the source is listed: the file may be another one by now. */
        uint8_t refetch_failures;
        bool joined : 1, damaged : 1, late : 1, refetched : 1;
        bool end_is_open : 1; /* block_decode.h */
        bool lost : 1;        /* it can no longer be read as it was */
        bool resident : 1;
};

/* Stays where it is: most files have one block, whose place is in here. */
struct block_index {
        struct block **blocks;
        struct block *first; /* what blocks points at while there is room for one */
        uint32_t count, space;
        uint32_t absent; /* not resident */
};

/* Negative, 0, positive, as a stands before, at or behind b. */
int block_position_compare(struct block_position a, struct block_position b);

/* Appends an empty, absent block, of a cell. -ENOMEM. */
int block_index_append(struct block_index *index, struct cells *cells, struct block **ret_block);

/* Gives all back; none may be resident or have a job. */
void block_index_deinit(struct block_index *index, struct cells *cells);

/*
 * Place of the first block that ends behind the position, that is, which holds it or comes next;
 * count if there is none.
 */
size_t block_index_find(const struct block_index *index, struct block_position position);

/* An absent block and its absent neighbours become one while that fits a segment. */
void block_index_join(struct block_index *index, struct cells *cells, struct block *block,
                      uint64_t segment_bytes);
