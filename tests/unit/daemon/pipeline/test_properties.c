/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds at every place of a file, tried at every place: cut there and read on, ended there and
 * completed, one bit of it flipped. And what holds for every file: no allocation on the way, and no
 * more of the stack than a constant.
 */
#include <check.h>
#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "daemon/pipeline/block_decode.h"
#include "tests/unit/daemon/events.h"
#include "tests/unit/daemon/pipeline/blocks.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

#define FIXTURES "tests/data/fixtures"
#define SEGMENT_BYTES (64u << 10)
#define RECORDS_MOST 4096
#define STACK_BYTES (256u << 10)
#define SMALL_FILE_BYTES 250 /* each of its places is a decode of the whole file */

struct found {
        uint64_t digest[RECORDS_MOST]; /* of all but the place */
        uint64_t offset[RECORDS_MOST]; /* of the TFRecord */
        uint32_t count, skipped;
        uint32_t reported; /* damage that is behind us */
        bool has_tail;     /* the file ended with some, when it was looked at last */
};

static struct block_file the_file;

static uint32_t told(const struct found *found) {
        return found->reported + found->has_tail;
}

/* --- Decoding --- */

static void note(struct found *found, const struct block_image *block) {
        struct extent_view view;

        found->reported += block->output.damage_count;
        found->has_tail = block->output.tail.reason != DAMAGE_NONE;
        if (!block->image)
                return;
        ck_assert_int_eq(extent_view_init(&view, block->image, block->output.extent_bytes), 0);
        ck_assert(extent_view_is_intact(&view));
        found->skipped += view.header->skipped_count;
        for (uint32_t i = 0; i < view.record_count; i++) {
                struct extent_record record = *extent_view_record(&view, i);

                ck_assert_uint_lt(found->count, RECORDS_MOST);
                found->offset[found->count] = record.source_offset;
                record.source_offset = 0;
                found->digest[found->count++] = blocks_record_digest(&view, &record);
        }
}

/*
 * Decodes on with what is there up to `known`, from the first byte that is still needed, in memory
 * of just that size. last: the file ends there for now.
 */
static void decode_up_to(struct block_input *input, const struct bytes *bytes, uint64_t known,
                         bool last, struct found *found) {
        uint64_t from = min_u64(input->begin.offset, known);
        CLEANUP(freep) uint8_t *own = malloc(known - from + 1);
        int r;

        memcpy(own, bytes->at + from, known - from);
        input->bytes = own;
        input->bytes_offset = from;
        input->size_bytes = known - from;
        input->last = last;
        do {
                struct block_image block = blocks_decode_one(input, SEGMENT_BYTES);

                note(found, &block);
                r = block.result;
                ck_assert(r != STAGE_FULL || block.image);
                input->begin = block.output.next;
                input->search_offset = block.output.search_offset;
                input->search_damage = block.output.search_damage;
                free(block.image);
        } while (r == STAGE_FULL);
}

static struct block_input input_of(const struct bytes *bytes) {
        struct block_input input = blocks_input(bytes, &the_file, SEGMENT_BYTES);

        input.record_max_bytes = UINT64_MAX;
        return input;
}

static void decode_whole(const struct bytes *bytes, struct found *ret_found) {
        struct block_input input = input_of(bytes);

        memset(ret_found, 0, sizeof(*ret_found));
        decode_up_to(&input, bytes, bytes->size, true, ret_found);
}

/* Up to each of the two places (the second may be that of the first) and then to the end. */
static void decode_in_three(const struct bytes *bytes, uint64_t first, uint64_t second,
                            bool ends_there, struct found *ret_found) {
        struct block_input input = input_of(bytes);

        memset(ret_found, 0, sizeof(*ret_found));
        decode_up_to(&input, bytes, first, ends_there, ret_found);
        if (second > first)
                decode_up_to(&input, bytes, second, ends_there, ret_found);
        decode_up_to(&input, bytes, bytes->size, true, ret_found);
}

static void check_same_records(const struct found *got, const struct found *expected,
                               const char *what, uint64_t place) {
        ck_assert_msg(got->count == expected->count, "%s %s %llu: %u records, expected %u",
                      the_file.path, what, (unsigned long long)place, got->count, expected->count);
        ck_assert_msg(memcmp(got->digest, expected->digest, got->count * sizeof(got->digest[0])) ==
                              0,
                      "%s %s %llu: other records", the_file.path, what, (unsigned long long)place);
        ck_assert_msg(got->skipped == expected->skipped, "%s %s %llu: skipped %u, expected %u",
                      the_file.path, what, (unsigned long long)place, got->skipped,
                      expected->skipped);
}

static void check_same(const struct found *got, const struct found *expected, const char *what,
                       uint64_t place) {
        check_same_records(got, expected, what, place);
        ck_assert_msg(
                memcmp(got->offset, expected->offset, got->count * sizeof(got->offset[0])) == 0,
                "%s %s %llu: at other places", the_file.path, what, (unsigned long long)place);
}

/* --- Files --- */

static void (*check_bytes)(const struct bytes *bytes);
static uint64_t most_bytes;
static unsigned files_checked;

static int visit(const char *path, const struct stat *status, int type, struct FTW *walk) {
        struct bytes bytes;

        if (type != FTW_F || !strstr(path + walk->base, "tfevents") ||
            (uint64_t)status->st_size > most_bytes)
                return 0;
        the_file = blocks_file(path, "a/run");
        bytes = bytes_of_file(path);
        check_bytes(&bytes);
        free(bytes.at);
        files_checked++;
        return 0;
}

static void for_each_fixture(uint64_t most, void (*check)(const struct bytes *bytes)) {
        check_bytes = check;
        most_bytes = most;
        ck_assert_int_eq(nftw(FIXTURES, visit, 16, FTW_PHYS), 0);
        ck_assert_uint_gt(files_checked, 300);
}

/* Every kind of record that a small file can have: a mark, scalars, a payload, many values. */
static struct events small_file(void) {
        struct events events = { 0 };

        the_file = blocks_file("made/here", "made");
        events_version(&events);
        events_scalar(&events, 1, "a", 0.5f);
        events_string(&events, 2, "text", 40);
        events_scalars(&events, 3, "many", 5);
        events_scalar(&events, 4, "a", 0.25f);
        return events;
}

static struct bytes bytes_of(const struct events *events) {
        return (struct bytes){ events->bytes, events->size };
}

/* --- Cut at every place --- */

static void check_every_cut(const struct bytes *bytes) {
        static struct found expected, got;

        decode_whole(bytes, &expected);
        for (uint64_t cut = 0; cut <= bytes->size; cut++) {
                decode_in_three(bytes, cut, cut, false, &got);
                check_same(&got, &expected, "cut at", cut);
        }
}

START_TEST(cut_in_two_anywhere_gives_the_same_records) {
        for_each_fixture(SMALL_FILE_BYTES, check_every_cut);
}
END_TEST

START_TEST(cut_in_three_anywhere_gives_the_same_records) {
        static struct found expected, got;
        struct events events = small_file();
        struct bytes bytes = bytes_of(&events);

        decode_whole(&bytes, &expected);
        ck_assert_uint_eq(expected.count, 9);
        for (uint64_t first = 0; first < bytes.size; first++)
                for (uint64_t second = first + 1; second <= bytes.size; second += 2 + first % 7) {
                        decode_in_three(&bytes, first, second, false, &got);
                        check_same(&got, &expected, "cut at", first);
                }
        events_free(&events);
}
END_TEST

/* --- Ended at every place, and completed --- */

static void check_every_end(const struct bytes *bytes) {
        static struct found expected, got;

        decode_whole(bytes, &expected);
        if (told(&expected) > 0)
                return; /* with damage the end of the file may say more than its middle */
        for (uint64_t end = 0; end <= bytes->size; end++) {
                decode_in_three(bytes, end, end, true, &got);
                check_same(&got, &expected, "ended at", end);
                ck_assert_msg(told(&got) == 0, "%s ended at %llu: damage", the_file.path,
                              (unsigned long long)end);
        }
}

START_TEST(ended_anywhere_and_completed_loses_and_doubles_nothing) {
        for_each_fixture(SMALL_FILE_BYTES, check_every_end);
}
END_TEST

START_TEST(growing_byte_by_byte_loses_and_doubles_nothing) {
        static struct found expected, got;
        struct events events = small_file();
        struct bytes bytes = bytes_of(&events);
        struct block_input input = input_of(&bytes);

        decode_whole(&bytes, &expected);
        for (uint64_t end = 0; end <= bytes.size; end++)
                decode_up_to(&input, &bytes, end, true, &got);
        check_same(&got, &expected, "grown to", bytes.size);
        ck_assert_uint_eq(told(&got), 0);
        events_free(&events);
}
END_TEST

/* --- One flipped bit --- */

/* Where the TFRecord begins that holds this byte. */
static uint64_t record_of(const struct bytes *bytes, uint64_t place) {
        uint64_t at = 0, length;

        for (;;) {
                memcpy(&length, bytes->at + at, 8);
                if (place < at + length + 16)
                        return at;
                at += length + 16;
        }
}

/* Without the records of the TFRecord there. */
static void remove_record(const struct found *all, uint64_t offset, struct found *ret_rest) {
        memset(ret_rest, 0, sizeof(*ret_rest));
        for (uint32_t i = 0; i < all->count; i++)
                if (all->offset[i] != offset) {
                        ret_rest->offset[ret_rest->count] = all->offset[i];
                        ret_rest->digest[ret_rest->count++] = all->digest[i];
                }
}

static void check_flip(const struct bytes *bytes, uint64_t bit, const struct found *all) {
        static struct found expected, got, pieces;
        uint64_t place = bit / 8, cut = bit * 7919 % (bytes->size + 1);

        remove_record(all, record_of(bytes, place), &expected);
        bytes->at[place] ^= (uint8_t)(1u << bit % 8);
        decode_whole(bytes, &got);
        decode_in_three(bytes, cut, cut, false, &pieces);
        bytes->at[place] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(told(&got) == 1, "bit %llu: damage told %u times", (unsigned long long)bit,
                      told(&got));
        expected.skipped = got.skipped; /* damage at the end is not behind us yet */
        check_same(&got, &expected, "with flipped bit", bit);
        check_same(&pieces, &got, "cut, with flipped bit", bit);
}

START_TEST(flipped_bit_costs_its_record_alone) {
        static struct found all;
        struct events events = small_file();
        struct bytes bytes = bytes_of(&events);

        decode_whole(&bytes, &all);
        for (uint64_t bit = 0; bit < 8 * bytes.size; bit++)
                check_flip(&bytes, bit, &all);
        events_free(&events);
}
END_TEST

/* --- One byte lost or gained --- */

static void check_others_arrive(const struct bytes *damaged, const struct found *expected,
                                const char *what, uint64_t place) {
        static struct found got, pieces;
        uint64_t cut = place * 7919 % (damaged->size + 1);

        decode_whole(damaged, &got);
        decode_in_three(damaged, cut, cut, false, &pieces);
        check_same(&pieces, &got, what, place);
        got.skipped = expected->skipped;
        check_same_records(&got, expected, what, place);
}

START_TEST(lost_byte_costs_its_record_alone) {
        static struct found all, expected;
        struct events events = small_file();
        struct bytes bytes = bytes_of(&events);

        decode_whole(&bytes, &all);
        for (uint64_t place = 0; place < bytes.size; place++) {
                CLEANUP(freep) uint8_t *own = malloc(bytes.size);

                memcpy(own, bytes.at, place);
                memcpy(own + place, bytes.at + place + 1, bytes.size - place - 1);
                remove_record(&all, record_of(&bytes, place), &expected);
                check_others_arrive(&(struct bytes){ own, bytes.size - 1 }, &expected,
                                    "without byte", place);
        }
        events_free(&events);
}
END_TEST

/* Between two records it costs none. */
START_TEST(gained_byte_costs_its_record_alone) {
        static struct found all, expected;
        struct events events = small_file();
        struct bytes bytes = bytes_of(&events);

        decode_whole(&bytes, &all);
        for (uint64_t place = 0; place < bytes.size; place++) {
                CLEANUP(freep) uint8_t *own = malloc(bytes.size + 1);
                uint64_t record = record_of(&bytes, place);

                memcpy(own, bytes.at, place);
                own[place] = 'x';
                memcpy(own + place + 1, bytes.at + place, bytes.size - place);
                remove_record(&all, record == place ? UINT64_MAX : record, &expected);
                check_others_arrive(&(struct bytes){ own, bytes.size + 1 }, &expected,
                                    "with one more byte at", place);
        }
        events_free(&events);
}
END_TEST

/* --- Memory --- */

/* Every file into one segment again and again. */
static void decode_without_keeping(const struct bytes *bytes) {
        static _Alignas(EXTENT_ALIGNMENT) uint8_t segment[SEGMENT_BYTES];
        struct block_input input = blocks_input(bytes, &the_file, SEGMENT_BYTES);
        struct block_output output;

        while (block_decode(&input, segment, SEGMENT_BYTES, &output) == STAGE_FULL)
                input.begin = output.next;
}

static void check_calls(const struct bytes *bytes) {
        fail_begin(1, FAIL_THIS_THREAD);
        decode_without_keeping(bytes);
        ck_assert_msg(!fail_end(), "%s: %s was called", the_file.path, fail_name());
}

/* Neither memory nor a system call, for any of the records (tests/unit/fail.c says which calls). */
START_TEST(decoding_allocates_nothing) {
        void *volatile memory;

        for_each_fixture(UINT64_MAX, check_calls);
        fail_begin(1, FAIL_THIS_THREAD); /* and it would have been seen */
        memory = malloc(1);
        ck_assert(fail_end());
        free(memory);
}
END_TEST

static void *decode_fixtures(void *unused) {
        (void)unused;
        for_each_fixture(UINT64_MAX, decode_without_keeping);
        return NULL;
}

/* As deep as a message can be: tensors in variants in tensors. */
static struct events deep_file(void) {
        struct events events = small_file();
        uint8_t payload[2000], *begin = payload + sizeof(payload);
        uint64_t size = 0;

        for (unsigned depth = 0; depth < 110; depth++) {
                static const uint8_t keys[] = { 0x7a, 0x1a }; /* variant_val (15), tensors (3) */

                if (size >= 0x80)
                        *--begin = (uint8_t)(size >> 7);
                *--begin = (uint8_t)(size >= 0x80 ? size | 0x80 : size);
                *--begin = keys[(depth + 1) % 2];
                size = (uint64_t)(payload + sizeof(payload) - begin);
        }
        events_tensor(&events, 5, "deep", begin, size);
        return events;
}

static void *decode_deep(void *unused) {
        struct events events = deep_file();
        struct bytes bytes = bytes_of(&events);

        decode_without_keeping(&bytes);
        events_free(&events);
        return unused;
}

static void run_on_small_stack(void *(*function)(void *unused)) {
        pthread_attr_t attributes;
        pthread_t thread;

        ck_assert_int_eq(pthread_attr_init(&attributes), 0);
        ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
        ck_assert_int_eq(pthread_create(&thread, &attributes, function, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attributes);
}

START_TEST(decoding_needs_a_small_stack) {
        run_on_small_stack(decode_fixtures);
        run_on_small_stack(decode_deep);
}
END_TEST

RUNNER_MAIN("pipeline/properties", cut_in_two_anywhere_gives_the_same_records,
            cut_in_three_anywhere_gives_the_same_records,
            ended_anywhere_and_completed_loses_and_doubles_nothing,
            growing_byte_by_byte_loses_and_doubles_nothing, flipped_bit_costs_its_record_alone,
            lost_byte_costs_its_record_alone, gained_byte_costs_its_record_alone,
            decoding_allocates_nothing, decoding_needs_a_small_stack)
