/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

int block_position_compare(struct block_position a, struct block_position b) {
        if (a.offset != b.offset)
                return a.offset < b.offset ? -1 : 1;
        return (a.index > b.index) - (a.index < b.index);
}

static int make_room(struct block_index *index) {
        struct block **own = index->blocks == &index->first ? NULL : index->blocks, **bigger;
        uint32_t space = index->space ? 2 * index->space : 1;

        if (index->count < index->space)
                return 0;
        if (space == 0)
                return -ENOMEM;
        bigger = space == 1 ? &index->first : realloc(own, space * sizeof(bigger[0]));
        if (!bigger)
                return -ENOMEM;
        if (space == 2)
                bigger[0] = index->first;
        index->blocks = bigger;
        index->space = space;
        return 0;
}

int block_index_append(struct block_index *index, struct cells *cells, struct block **ret_block) {
        struct block *block;

        if (make_room(index) < 0 || !(block = cells_take(cells, sizeof(*block))))
                return -ENOMEM;
        list_init(&block->in_segment);
        index->blocks[index->count++] = block;
        index->absent++;
        *ret_block = block;
        return 0;
}

void block_index_deinit(struct block_index *index, struct cells *cells) {
        for (size_t i = 0; i < index->count; i++) {
                MUST(!index->blocks[i]->resident && !index->blocks[i]->job);
                cells_give(cells, index->blocks[i], sizeof(*index->blocks[i]));
        }
        if (index->blocks != &index->first)
                free(index->blocks);
        *index = (struct block_index){ 0 };
}

size_t block_index_find(const struct block_index *index, struct block_position position) {
        size_t low = 0, high = index->count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (block_position_compare(index->blocks[middle]->end, position) <= 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/*
 * Takes the block behind `at` into it, if both are absent, idle and touch each other, and the sum
 * fits a segment.
 */
static bool join_next(struct block_index *index, struct cells *cells, size_t at,
                      uint64_t segment_bytes) {
        struct block *block, *next;

        if (at + 1 >= index->count)
                return false;
        block = index->blocks[at];
        next = index->blocks[at + 1];
        if (block->resident || next->resident || block->job || next->job ||
            block->late != next->late || block->lost || next->lost ||
            block_position_compare(block->end, next->begin) != 0 ||
            (uint64_t)block->size_bytes + next->size_bytes > segment_bytes)
                return false;
        block->end = next->end;
        block->bytes_end = next->bytes_end;
        block->size_bytes += next->size_bytes;
        block->record_count += next->record_count;
        block->damaged |= next->damaged;
        block->end_is_open = next->end_is_open;
        block->joined = true;
        list_remove(&next->in_segment);
        cells_give(cells, next, sizeof(*next));
        memmove(index->blocks + at + 1, index->blocks + at + 2,
                (index->count - at - 2) * sizeof(index->blocks[0]));
        index->count--;
        index->absent--;
        return true;
}

void block_index_join(struct block_index *index, struct cells *cells, struct block *block,
                      uint64_t segment_bytes) {
        size_t at = block_index_find(index, block->begin);

        MUST(at < index->count && index->blocks[at] == block);
        while (join_next(index, cells, at, segment_bytes))
                ;
        if (at > 0)
                join_next(index, cells, at - 1, segment_bytes);
}
