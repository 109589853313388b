/* SPDX-License-Identifier: Apache-2.0 */
/* The ring as the daemon uses it, seen through the descriptor that clients get. */
#include "daemon/publish/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define RING_BYTES (4u << 20)
#define SEGMENT_BYTES (64u << 10)

struct view {
        struct ring *ring;
        const uint8_t *memory; /* as a client maps it */
        uint64_t size_bytes;
        const struct ring_super *super;
        const struct ring_segment *table;
};

static void view_init(struct view *view, uint64_t size_bytes) {
        struct stat status;

        ck_assert_int_eq(ring_new(size_bytes, RING_HUGE_OFF, &view->ring, NULL), 0);
        ck_assert_int_eq(fstat(ring_data_fd(view->ring), &status), 0);
        view->size_bytes = (uint64_t)status.st_size;
        view->memory = mmap(NULL, view->size_bytes, PROT_READ, MAP_SHARED, ring_data_fd(view->ring),
                            0);
        ck_assert_ptr_ne(view->memory, MAP_FAILED);
        view->super = (const void *)view->memory;
        view->table = (const void *)(view->memory + view->super->table_offset);
}

static void view_deinit(struct view *view) {
        ring_free(view->ring);
        munmap((void *)(uintptr_t)view->memory, view->size_bytes);
}

static const struct {
        uint64_t ring_bytes, segment_bytes;
        uint32_t segment_count;
} sizes[] = {
        { 0, 64u << 10, 64 },           { 1, 64u << 10, 64 },
        { 4u << 20, 64u << 10, 64 },    { (4u << 20) + 65535, 64u << 10, 64 },
        { 7u << 20, 64u << 10, 112 },   { 8u << 20, 128u << 10, 64 },
        { 16u << 20, 256u << 10, 64 },  { 256u << 20, 1u << 20, 256 },
        { 3ull << 30, 1u << 20, 3072 },
};

START_TEST(sizes_are_those_of_the_document) {
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                struct ring_status status;
                struct view view;

                view_init(&view, sizes[i].ring_bytes);
                ring_status(view.ring, &status);
                ck_assert_uint_eq(status.segment_bytes, sizes[i].segment_bytes);
                ck_assert_uint_eq(status.segment_count, sizes[i].segment_count);
                ck_assert_uint_eq(status.size_bytes,
                                  sizes[i].segment_bytes * sizes[i].segment_count);
                ck_assert_uint_eq(ring_free_count(view.ring), sizes[i].segment_count);
                ck_assert_uint_eq(view.super->segment_bytes, sizes[i].segment_bytes);
                ck_assert_uint_eq(view.super->segment_count, sizes[i].segment_count);
                ck_assert_uint_eq(view.super->size_bytes, view.size_bytes);
                ck_assert_uint_ge(view.super->segments_offset,
                                  4096 + 8ull * sizes[i].segment_count);
                ck_assert_uint_le(view.super->segments_offset + status.size_bytes, view.size_bytes);
                view_deinit(&view);
        }
}
END_TEST

START_TEST(describes_itself) {
        struct view view, other;
        uint64_t now_ns = (uint64_t)time(NULL) * 1000000000u;

        view_init(&view, RING_BYTES);
        view_init(&other, RING_BYTES);
        ck_assert_int_eq(memcmp(view.memory, "!HRRING1", 8), 0);
        ck_assert_uint_eq(view.super->abi_major, 1);
        ck_assert_uint_eq(view.super->features_incompatible, 0);
        ck_assert_uint_eq(view.super->tier, RING_TIER_4K);
        ck_assert_uint_eq(view.super->table_offset, 4096);
        ck_assert_uint_eq(view.super->segments_offset, 2u << 20);
        ck_assert_uint_ne(view.super->instance_id, other.super->instance_id);
        ck_assert_uint_gt(view.super->start_time_ns, now_ns - 86400000000000u);
        ck_assert_uint_eq(view.super->state, RING_STATE_STARTING);
        ring_set_state(view.ring, RING_STATE_SERVING);
        ck_assert_uint_eq(view.super->state, RING_STATE_SERVING);
        view_deinit(&other);
        view_deinit(&view);
}
END_TEST

/* Clients keep what they have mapped, and are told. */
START_TEST(is_gone_when_freed) {
        struct view view;
        uint32_t segment;

        view_init(&view, RING_BYTES);
        segment = ring_take_free(view.ring);
        ck_assert_int_eq(ring_segment_prepare(view.ring, segment), 0);
        memcpy(ring_segment_memory(view.ring, segment), "abc", 3);
        view.ring = ring_free(view.ring);
        ck_assert_ptr_null(view.ring);
        ck_assert_uint_eq(view.super->state, RING_STATE_GONE);
        ck_assert_mem_eq(view.memory + view.super->segments_offset + segment * SEGMENT_BYTES, "abc",
                         3);
        view_deinit(&view);
}
END_TEST

START_TEST(segments_are_taken_closed_and_recycled) {
        struct view view;
        uint32_t first, second;

        view_init(&view, RING_BYTES);
        first = ring_take_free(view.ring);
        second = ring_take_free(view.ring);
        ck_assert_uint_ne(first, second);
        ck_assert_uint_eq(ring_free_count(view.ring), 62);
        ck_assert_uint_eq(view.super->segments_ready, 2);
        ck_assert(!ring_is_closed(view.ring, first));
        ring_close(view.ring, second);
        ring_close(view.ring, first);
        ck_assert(ring_is_closed(view.ring, first) && ring_is_closed(view.ring, second));
        ck_assert_uint_lt(ring_closed_order(view.ring, second),
                          ring_closed_order(view.ring, first));
        ck_assert_uint_eq(ring_segment_generation(view.ring, second), 0);
        ring_recycle(view.ring, second);
        ck_assert(!ring_is_closed(view.ring, second));
        ck_assert_uint_eq(ring_segment_generation(view.ring, second), 1);
        ck_assert_uint_eq(view.table[second].generation, 1);
        ck_assert_uint_eq(view.table[first].generation, 0);
        ring_close(view.ring, second);
        ck_assert_uint_gt(ring_closed_order(view.ring, second),
                          ring_closed_order(view.ring, first));
        ck_assert_uint_eq(view.table[second].generation, 1); /* changes nowhere else */
        view_deinit(&view);
}
END_TEST

START_TEST(all_segments_are_given_once) {
        bool given[64] = { false };
        struct view view;

        view_init(&view, RING_BYTES);
        for (unsigned i = 0; i < 64; i++) {
                uint32_t segment = ring_take_free(view.ring);

                ck_assert_uint_lt(segment, 64);
                ck_assert(!given[segment]);
                given[segment] = true;
                ck_assert_int_eq(ring_segment_prepare(view.ring, segment), 0);
                memset(ring_segment_memory(view.ring, segment), (int)segment, SEGMENT_BYTES);
        }
        ck_assert_uint_eq(ring_take_free(view.ring), RING_SEGMENT_NONE);
        ck_assert_uint_eq(ring_free_count(view.ring), 0);
        for (uint32_t i = 0; i < 64; i++) {
                const uint8_t *memory = view.memory + view.super->segments_offset +
                                        i * SEGMENT_BYTES;

                ck_assert(memory[0] == i && memory[SEGMENT_BYTES - 1] == i);
        }
        view_deinit(&view);
}
END_TEST

START_TEST(pins_are_counted) {
        struct ring_status status;
        struct view view;
        uint32_t segment;

        view_init(&view, RING_BYTES);
        segment = ring_take_free(view.ring);
        ring_close(view.ring, segment);
        ring_pin(view.ring, segment);
        ring_pin(view.ring, segment);
        ck_assert_uint_eq(ring_pins(view.ring, segment), 2);
        ring_status(view.ring, &status);
        ck_assert_uint_eq(status.segments_pinned, 1);
        ring_unpin(view.ring, segment);
        ring_status(view.ring, &status);
        ck_assert_uint_eq(status.segments_pinned, 1);
        ring_unpin(view.ring, segment);
        ring_status(view.ring, &status);
        ck_assert_uint_eq(status.segments_pinned, 0);
        view_deinit(&view);
}
END_TEST

/*
 * Two segments were granted before the first one turned out to have no memory: the second one may
 * have it.
 */
START_TEST(a_ring_without_memory_goes_on_with_what_it_has) {
        struct ring_status status;
        struct view view;
        uint32_t first, second;

        view_init(&view, RING_BYTES);
        first = ring_take_free(view.ring);
        second = ring_take_free(view.ring);
        ring_stop_growing(view.ring, first);
        ck_assert_uint_eq(ring_free_count(view.ring), 0);
        ck_assert_uint_eq(ring_take_free(view.ring), RING_SEGMENT_NONE);
        ck_assert(!ring_is_closed(view.ring, first));
        ring_status(view.ring, &status);
        ck_assert_uint_eq(status.segments_used, 1);
        ck_assert_uint_eq(view.super->segments_ready, 1);
        ring_close(view.ring, second);
        ring_recycle(view.ring, second);
        view_deinit(&view);
}
END_TEST

START_TEST(what_cannot_be_made_says_why) {
        struct ring *ring = NULL;
        char *error = NULL;

        ck_assert_int_lt(ring_new(1ull << 44, RING_HUGE_ON, &ring, &error), 0);
        ck_assert_ptr_null(ring);
        ck_assert_ptr_nonnull(error);
        ck_assert_ptr_nonnull(strstr(error, "sysctl vm.nr_hugepages="));
        free(error);
        error = NULL;
        ck_assert_int_eq(ring_new(1ull << 62, RING_HUGE_OFF, &ring, &error), -EFBIG);
        ck_assert_ptr_nonnull(error);
        free(error);
        ck_assert_int_lt(ring_new(1ull << 44, RING_HUGE_ON, &ring, NULL), 0);
}
END_TEST

START_TEST(smallest_ring_for_a_segment) {
        struct ring_status status;
        struct ring *ring;

        ck_assert_uint_eq(ring_bytes_for_segments(1), 4u << 20);
        ck_assert_uint_eq(ring_bytes_for_segments(64u << 10), 4u << 20);
        ck_assert_uint_eq(ring_bytes_for_segments((64u << 10) + 1), 8u << 20);
        ck_assert_uint_eq(ring_bytes_for_segments(1u << 20), 64u << 20);
        ck_assert_uint_eq(ring_bytes_for_segments((1u << 20) + 1), UINT64_MAX);
        ck_assert_uint_eq(ring_bytes_for_segments(UINT64_MAX), UINT64_MAX);
        for (uint64_t size = 64u << 10; size <= 1u << 20; size *= 2) {
                ck_assert_int_eq(
                        ring_new(ring_bytes_for_segments(size), RING_HUGE_OFF, &ring, NULL), 0);
                ring_status(ring, &status);
                ck_assert_uint_eq(status.segment_bytes, size);
                ring_free(ring);
        }
}
END_TEST

RUNNER_MAIN("publish/ring", sizes_are_those_of_the_document, smallest_ring_for_a_segment,
            describes_itself, is_gone_when_freed, segments_are_taken_closed_and_recycled,
            all_segments_are_given_once, pins_are_counted,
            a_ring_without_memory_goes_on_with_what_it_has, what_cannot_be_made_says_why)
