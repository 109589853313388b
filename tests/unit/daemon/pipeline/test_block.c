/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/block.h"

#include "common/base.h"
#include "tests/unit/runner.h"

#define SEGMENT_BYTES 1000u

static struct block_index blocks;
static struct cells cells;

static struct block_position at(uint64_t offset, uint32_t index) {
        return (struct block_position){ .offset = offset, .index = index };
}

/* The next block, from where the last one ended. */
static struct block *add(struct block_position end, uint32_t size_bytes, uint32_t record_count) {
        struct block_position begin = blocks.count ? blocks.blocks[blocks.count - 1]->end
                                                   : at(0, 0);
        struct block *block;

        if (blocks.count == 0)
                cells_init(&cells);
        ck_assert_int_eq(block_index_append(&blocks, &cells, &block), 0);
        block->begin = begin;
        block->end = end;
        block->bytes_end = end.offset;
        block->size_bytes = size_bytes;
        block->record_count = record_count;
        return block;
}

static void set_resident(struct block *block) {
        block->resident = true;
        blocks.absent--;
}

static void end(void) {
        for (size_t i = 0; i < blocks.count; i++)
                blocks.blocks[i]->resident = false;
        block_index_deinit(&blocks, &cells);
        cells_deinit(&cells);
        ck_assert_uint_eq(blocks.count, 0);
}

START_TEST(positions_are_ordered) {
        ck_assert_int_lt(block_position_compare(at(1, 9), at(2, 0)), 0);
        ck_assert_int_gt(block_position_compare(at(2, 0), at(1, 9)), 0);
        ck_assert_int_lt(block_position_compare(at(2, 0), at(2, 1)), 0);
        ck_assert_int_gt(block_position_compare(at(2, 4), at(2, 1)), 0);
        ck_assert_int_eq(block_position_compare(at(2, 1), at(2, 1)), 0);
        ck_assert_int_lt(block_position_compare(at(1, 0), at(UINT64_MAX, 0)), 0);
}
END_TEST

START_TEST(finds_what_holds_a_position_or_comes_next) {
        ck_assert_uint_eq(block_index_find(&blocks, at(0, 0)), 0);
        add(at(100, 0), 10, 1);
        add(at(200, 3), 10, 1);               /* ends inside of the TFRecord at 200 */
        blocks.blocks[1]->begin = at(120, 0); /* 100 to 120 were skipped */
        add(at(300, 0), 10, 1);
        ck_assert_uint_eq(block_index_find(&blocks, at(0, 0)), 0);
        ck_assert_uint_eq(block_index_find(&blocks, at(99, 7)), 0);
        ck_assert_uint_eq(block_index_find(&blocks, at(100, 0)), 1);
        ck_assert_uint_eq(block_index_find(&blocks, at(110, 0)), 1);
        ck_assert_uint_eq(block_index_find(&blocks, at(200, 2)), 1);
        ck_assert_uint_eq(block_index_find(&blocks, at(200, 3)), 2);
        ck_assert_uint_eq(block_index_find(&blocks, at(299, 0)), 2);
        ck_assert_uint_eq(block_index_find(&blocks, at(300, 0)), 3);
        ck_assert_uint_eq(block_index_find(&blocks, at(5000, 0)), 3);
        end();
}
END_TEST

START_TEST(absent_neighbours_are_joined_while_they_fit) {
        add(at(100, 0), 400, 4);
        add(at(200, 0), 400, 5)->damaged = true;
        add(at(300, 0), 200, 6);
        add(at(400, 0), 1, 7); /* the sum would pass the segment */
        block_index_join(&blocks, &cells, blocks.blocks[0], SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 2);
        ck_assert_uint_eq(blocks.absent, 2);
        ck_assert_uint_eq(blocks.blocks[0]->end.offset, 300);
        ck_assert_uint_eq(blocks.blocks[0]->bytes_end, 300);
        ck_assert_uint_eq(blocks.blocks[0]->size_bytes, 1000);
        ck_assert_uint_eq(blocks.blocks[0]->record_count, 15);
        ck_assert(blocks.blocks[0]->joined && blocks.blocks[0]->damaged);
        ck_assert_uint_eq(blocks.blocks[1]->begin.offset, 300);
        ck_assert(!blocks.blocks[1]->joined);
        end();
}
END_TEST

START_TEST(a_block_is_joined_with_the_one_before_it) {
        add(at(100, 0), 10, 1);
        add(at(200, 0), 10, 1);
        set_resident(add(at(300, 0), 10, 1));
        block_index_join(&blocks, &cells, blocks.blocks[1], SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 2);
        ck_assert_uint_eq(blocks.blocks[0]->end.offset, 200);
        ck_assert_uint_eq(blocks.absent, 1);
        end();
}
END_TEST

START_TEST(what_differs_is_not_joined) {
        struct job *const some_job = (struct job *)&blocks;
        struct block *block = add(at(100, 0), 10, 1);
        struct block *next = add(at(200, 0), 10, 1);

        next->late = true;
        block_index_join(&blocks, &cells, block, SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 2);
        next->late = false;
        next->lost = true;
        block_index_join(&blocks, &cells, block, SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 2);
        next->lost = false;
        next->job = some_job;
        block_index_join(&blocks, &cells, block, SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 2);
        next->job = NULL;
        next->begin.offset = 101; /* damage between them was skipped, in neither's range */
        block_index_join(&blocks, &cells, block, SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 2);
        next->begin.offset = 100;
        block_index_join(&blocks, &cells, block, SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 1);
        end();
}
END_TEST

/*
 * A segment's blocks are taken out one after the other while those that come later are still in its
 * list.
 */
START_TEST(what_was_joined_leaves_its_list) {
        struct list evicted;
        struct block *first = add(at(100, 0), 10, 1), *second = add(at(200, 0), 10, 1);

        list_init(&evicted);
        list_append(&evicted, &first->in_segment);
        list_append(&evicted, &second->in_segment);
        list_remove(&first->in_segment);
        block_index_join(&blocks, &cells, first, SEGMENT_BYTES);
        ck_assert_uint_eq(blocks.count, 1);
        ck_assert(list_is_empty(&evicted));
        end();
}
END_TEST

RUNNER_MAIN("pipeline/block", positions_are_ordered, finds_what_holds_a_position_or_comes_next,
            absent_neighbours_are_joined_while_they_fit, a_block_is_joined_with_the_one_before_it,
            what_differs_is_not_joined, what_was_joined_leaves_its_list)
