/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds for every file whatever is in it: a block decoded again is the same to the byte,
 * wherever it lies; neighbours decoded together are no larger; and the records that come out do not
 * depend on the pieces in which the file came in.
 */
#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/crc32c.h"
#include "common/extent_view.h"
#include "daemon/pipeline/block_decode.h"
#include "tests/unit/daemon/pipeline/blocks.h"
#include "tests/unit/runner.h"

#define FIXTURES "tests/data/fixtures"
#define SMALL_SEGMENT_BYTES (64u << 10)
#define TINY_SEGMENT_BYTES (4u << 10) /* smaller than any ring's: more blocks */

/* --- Every fixture --- */

static void (*check_fixture)(const struct bytes *bytes, const struct block_file *file);
static unsigned fixtures_checked;

static int visit(const char *path, const struct stat *status, int type, struct FTW *walk) {
        struct block_file file = blocks_file(path, "a/run");
        struct bytes bytes;

        (void)status;
        if (type != FTW_F || !strstr(path + walk->base, "tfevents"))
                return 0;
        bytes = bytes_of_file(path);
        check_fixture(&bytes, &file);
        free(bytes.at);
        fixtures_checked++;
        return 0;
}

static void for_each_fixture(void (*check)(const struct bytes *bytes,
                                           const struct block_file *file)) {
        check_fixture = check;
        ck_assert_int_eq(nftw(FIXTURES, visit, 16, FTW_PHYS), 0);
        ck_assert_uint_gt(fixtures_checked, 350);
}

static struct extent_view view_of(const struct block_image *block) {
        struct extent_view view;

        ck_assert_int_eq(extent_view_init(&view, block->image, block->output.extent_bytes), 0);
        ck_assert(extent_view_is_intact(&view));
        ck_assert_uint_eq(view.size_bytes, block->output.extent_bytes);
        ck_assert_uint_eq(view.record_count, block->output.record_count);
        return view;
}

/*
 * What a block fetched again is decoded from: its own bytes and no more. Owned: a byte beyond would
 * be seen.
 */
static struct bytes own_bytes(const struct block_input *input, const struct extent_header *header) {
        struct bytes own = { malloc(header->end_offset - header->begin_offset + 1),
                             header->end_offset - header->begin_offset };
        uint64_t known = min_u64(own.size, input->size_bytes - header->begin_offset);

        memcpy(own.at, input->bytes + header->begin_offset, known);
        own.size = known;
        return own;
}

static struct block_image decode_range(const struct block_input *whole, struct block_position begin,
                                       const struct block_output *last, const struct bytes *own,
                                       uint64_t room) {
        struct block_input input = *whole;

        input.bytes = own->at;
        input.bytes_offset = begin.offset;
        input.size_bytes = own->size;
        input.begin = begin;
        input.end = last->end;
        input.end_is_open = last->end_is_open;
        input.last = false;
        return blocks_decode_one(&input, room);
}

static void check_same_again(const struct block_input *input, const struct block_image *block) {
        const struct extent_header *header = block->image;
        CLEANUP(freep) uint8_t *freed = NULL;
        uint64_t size = block->output.extent_bytes;
        struct bytes own = own_bytes(input, header);
        /* Exactly as much room as the image needs, and more. */
        struct block_image tight = decode_range(input, block->output.begin, &block->output, &own,
                                                size);
        struct block_image roomy = decode_range(input, block->output.begin, &block->output, &own,
                                                input->segment_bytes);

        freed = own.at;
        ck_assert_int_eq(tight.result, 0);
        ck_assert_int_eq(roomy.result, 0);
        ck_assert_uint_eq(tight.output.extent_bytes, size);
        ck_assert_uint_eq(roomy.output.extent_bytes, size);
        ck_assert_mem_eq(tight.image, block->image, size);
        ck_assert_mem_eq(roomy.image, block->image, size);
        ck_assert_uint_eq(tight.output.next.offset, block->output.next.offset);
        ck_assert_uint_eq(tight.output.next.index, block->output.next.index);
        free(tight.image);
        free(roomy.image);
}

static void check_joined(const struct block_input *input, const struct block_image *one,
                         const struct block_image *two) {
        struct extent_header both = *(const struct extent_header *)one->image;
        CLEANUP(freep) uint8_t *freed = NULL;
        struct block_image joined;
        struct bytes own;

        both.end_offset = ((const struct extent_header *)two->image)->end_offset;
        own = own_bytes(input, &both);
        freed = own.at;
        joined = decode_range(input, one->output.begin, &two->output, &own,
                              2 * input->segment_bytes);
        ck_assert(joined.result == 0 ||
                  one->output.extent_bytes + two->output.extent_bytes > input->segment_bytes);
        if (joined.result == 0) {
                ck_assert_uint_le(joined.output.extent_bytes,
                                  one->output.extent_bytes + two->output.extent_bytes);
                ck_assert_uint_eq(joined.output.record_count,
                                  one->output.record_count + two->output.record_count);
                check_same_again(input, &joined);
        }
        free(joined.image);
}

static void check_blocks_again(const struct bytes *bytes, const struct block_file *file,
                               uint64_t segment_bytes, uint64_t room) {
        struct block_input input = blocks_input(bytes, file, segment_bytes);
        struct block_input next = input;
        struct block_image before = { 0 }, block;

        do {
                block = blocks_decode_one(&next, room);
                if (block.image) {
                        view_of(&block);
                        check_same_again(&input, &block);
                }
                if (block.image && before.image)
                        check_joined(&input, &before, &block);
                ck_assert(block.result != STAGE_FULL || block.image || room < segment_bytes);
                next.begin = block.output.next;
                room = block.image ? room : segment_bytes;
                free(before.image);
                before = block;
        } while (block.result == STAGE_FULL);
        free(before.image);
}

static void check_again(const struct bytes *bytes, const struct block_file *file) {
        check_blocks_again(bytes, file, 1u << 20, 1u << 20);
        check_blocks_again(bytes, file, SMALL_SEGMENT_BYTES, SMALL_SEGMENT_BYTES);
        check_blocks_again(bytes, file, SMALL_SEGMENT_BYTES, 1000);
        check_blocks_again(bytes, file, TINY_SEGMENT_BYTES, TINY_SEGMENT_BYTES);
}

START_TEST(block_decoded_again_is_the_same) {
        for_each_fixture(check_again);
}
END_TEST

/* --- Pieces --- */

struct digests {
        uint64_t *list;
        size_t count;
        uint64_t skipped;
        struct damaged_place *places;
        size_t place_count;
        struct damaged_place tail;
};

#define PLACES 1000u /* room for more than most fixtures have */

static void digests_free(struct digests *digests) {
        free(digests->list);
        free(digests->places);
}

static void note_damage(struct digests *digests, const struct block_input *input,
                        const struct block_output *output) {
        uint32_t count = 0;

        digests->places = realloc(digests->places, (digests->place_count + output->damage_count +
                                                    1) * sizeof(digests->places[0]));
        memcpy(digests->places + digests->place_count, input->places,
               output->damage_count * sizeof(input->places[0]));
        digests->place_count += output->damage_count;
        digests->tail = output->tail;
        for (uint32_t i = 0; i < min_u64(output->damage_count, BLOCK_DAMAGE_MOST); i++) {
                ck_assert_uint_eq(input->places[i].offset, output->damage[i].offset);
                ck_assert_uint_eq(input->places[i].size_bytes, output->damage[i].size_bytes);
                ck_assert_int_eq(input->places[i].reason, output->damage[i].reason);
        }
        for (size_t i = 0; i < DAMAGE_COUNT; i++)
                count += output->damage_by_reason[i];
        ck_assert_uint_eq(count, output->damage_count);
        ck_assert_uint_eq(output->damage_by_reason[DAMAGE_NONE], 0);
}

static void check_same_damage(const struct digests *got, const struct digests *expected,
                              const char *path) {
        ck_assert_msg(got->place_count == expected->place_count, "%s: %zu places, expected %zu",
                      path, got->place_count, expected->place_count);
        for (size_t i = 0; i < got->place_count; i++) {
                const struct damaged_place *a = &got->places[i], *b = &expected->places[i];

                ck_assert_msg(a->offset == b->offset && a->size_bytes == b->size_bytes &&
                                      a->reason == b->reason,
                              "%s: %llu bytes at %llu (%s), expected %llu at %llu (%s)", path,
                              (unsigned long long)a->size_bytes, (unsigned long long)a->offset,
                              damage_name(a->reason), (unsigned long long)b->size_bytes,
                              (unsigned long long)b->offset, damage_name(b->reason));
        }
        ck_assert_msg(got->tail.offset == expected->tail.offset &&
                              got->tail.size_bytes == expected->tail.size_bytes &&
                              got->tail.reason == expected->tail.reason,
                      "%s: a tail of %llu bytes (%s), expected %llu (%s)", path,
                      (unsigned long long)got->tail.size_bytes, damage_name(got->tail.reason),
                      (unsigned long long)expected->tail.size_bytes,
                      damage_name(expected->tail.reason));
}

static void note_block(struct digests *digests, const struct block_input *input,
                       const struct block_image *block) {
        struct extent_view view;

        note_damage(digests, input, &block->output);
        if (!block->image)
                return;
        view = view_of(block);
        digests->skipped += view.header->skipped_count;
        digests->list = realloc(digests->list,
                                (digests->count + view.record_count + 1) * sizeof(uint64_t));
        for (uint32_t i = 0; i < view.record_count; i++)
                digests->list[digests->count++] = blocks_record_digest(
                        &view, extent_view_record(&view, i));
}

static uint64_t chance_state;

/* 1 to most; the same in every run. */
static uint64_t chance(uint64_t most) {
        chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
        return 1 + (chance_state >> 33) % most;
}

/*
 * Reads the file as a pipeline does: a piece, what is left of it and more, into rooms of any size.
 */
static struct digests decode_in_pieces(const struct bytes *bytes, const struct block_file *file,
                                       uint64_t piece_most, uint64_t record_max_bytes) {
        struct block_input input = blocks_input(bytes, file, SMALL_SEGMENT_BYTES);
        uint64_t known = min_u64(chance(piece_most), bytes->size);
        struct digests digests = { 0 };

        for (;;) {
                uint64_t from = min_u64(input.begin.offset, known);
                /* In an allocation of its own, so that a read past its end is seen. */
                struct bytes piece = { memcpy(malloc(known - from + 1), bytes->at + from,
                                              known - from),
                                       known - from };
                struct block_image block;
                struct damaged_place places[3]; /* a room that is small for them, too */
                bool whole_room = chance(2) == 1;

                input.bytes = piece.at;
                input.bytes_offset = from;
                input.size_bytes = piece.size;
                input.last = known == bytes->size;
                input.file_bytes = bytes->size;
                input.record_max_bytes = record_max_bytes;
                input.places = places;
                input.place_space = ARRAY_SIZE(places);
                block = blocks_decode_one(&input, whole_room ? SMALL_SEGMENT_BYTES : chance(4000));
                note_block(&digests, &input, &block);
                ck_assert(!whole_room || block.result != STAGE_FULL || block.image ||
                          block.output.damage_count == ARRAY_SIZE(places));
                input.begin = block.output.next;
                input.search_offset = block.output.search_offset;
                input.search_damage = block.output.search_damage;
                free(block.image);
                free(piece.at);
                if (block.result == STAGE_FULL)
                        continue;
                if (input.last)
                        return digests;
                known = min_u64(bytes->size, known + chance(piece_most));
        }
}

/* The whole file at once, room after room. */
static struct digests decode_whole(const struct bytes *bytes, const struct block_file *file,
                                   uint64_t record_max_bytes) {
        struct block_input input = blocks_input(bytes, file, SMALL_SEGMENT_BYTES);
        CLEANUP(freep) struct damaged_place *places = calloc(PLACES, sizeof(places[0]));
        struct digests digests = { 0 };
        struct block_image block;

        input.places = places;
        input.place_space = PLACES;
        input.record_max_bytes = record_max_bytes;
        do {
                block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
                note_block(&digests, &input, &block);
                free(block.image);
                input.begin = block.output.next;
        } while (block.result == STAGE_FULL);
        return digests;
}

static void check_pieces_of(const struct bytes *bytes, const struct block_file *file,
                            uint64_t piece_most, uint64_t record_max_bytes) {
        struct digests expected = decode_whole(bytes, file, record_max_bytes);
        struct digests got = decode_in_pieces(bytes, file, piece_most, record_max_bytes);

        ck_assert_msg(got.count == expected.count,
                      "%s in pieces of %llu: %zu records, expected %zu", file->path,
                      (unsigned long long)piece_most, got.count, expected.count);
        for (size_t i = 0; i < got.count; i++)
                ck_assert_msg(got.list[i] == expected.list[i], "%s: record %zu differs", file->path,
                              i);
        ck_assert_msg(got.skipped == expected.skipped, "%s: skipped %llu, expected %llu",
                      file->path, (unsigned long long)got.skipped,
                      (unsigned long long)expected.skipped);
        check_same_damage(&got, &expected, file->path);
        digests_free(&expected);
        digests_free(&got);
}

static void check_pieces(const struct bytes *bytes, const struct block_file *file) {
        check_pieces_of(bytes, file, bytes->size / 4 + 40, 1u << 30);
        check_pieces_of(bytes, file, bytes->size / 50 + 40, 1u << 30);
        check_pieces_of(bytes, file, bytes->size / 10 + 40, 60);
}

START_TEST(pieces_do_not_matter) {
        chance_state = 1;
        for_each_fixture(check_pieces);
}
END_TEST

/* --- Records that are made here --- */

struct writer {
        uint8_t *bytes;
        uint64_t size;
};

static void write_record(struct writer *writer, const uint8_t *payload, uint64_t size) {
        uint8_t *at;
        uint32_t crc;

        writer->bytes = realloc(writer->bytes, writer->size + size + 16);
        at = writer->bytes + writer->size;
        memcpy(at, &size, 8);
        crc = crc32c_mask(crc32c(at, 8));
        memcpy(at + 8, &crc, 4);
        memcpy(at + 12, payload, size);
        crc = crc32c_mask(crc32c(payload, size));
        memcpy(at + 12 + size, &crc, 4);
        writer->size += size + 16;
}

static uint8_t *put_varint(uint8_t *at, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                *at++ = (uint8_t)(value | 0x80);
        *at++ = (uint8_t)value;
        return at;
}

static uint64_t varint_size(uint64_t value) {
        uint8_t bytes[10];

        return (uint64_t)(put_varint(bytes, value) - bytes);
}

/* One simple_value with a tag of that many bytes. */
static void write_scalar(struct writer *writer, uint64_t tag_size) {
        uint64_t value_size = 1 + varint_size(tag_size) + tag_size + 5;
        uint64_t summary_size = 1 + varint_size(value_size) + value_size;
        uint8_t *payload = malloc(summary_size + 32);
        uint8_t *at = payload;

        *at++ = 0x10;
        *at++ = 7;
        *at++ = 0x2a;
        at = put_varint(at, summary_size);
        *at++ = 0x0a;
        at = put_varint(at, value_size);
        *at++ = 0x0a;
        at = put_varint(at, tag_size);
        memset(at, 't', tag_size);
        at += tag_size;
        memcpy(at, "\x15\x00\x00\x80\x3f", 5);
        write_record(writer, payload, (uint64_t)(at + 5 - payload));
        free(payload);
}

START_TEST(too_long_names_are_skipped_and_reported) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        /* with the names of run and file: half a segment */
        uint64_t most = SMALL_SEGMENT_BYTES / 2 - 2;
        struct block_image block;
        struct block_input input;
        struct bytes bytes;

        write_scalar(&writer, most + 1);
        write_scalar(&writer, 3);
        bytes = (struct bytes){ writer.bytes, writer.size };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, 0);
        ck_assert_uint_eq(block.output.record_count, 1);
        ck_assert_uint_eq(block.output.damage_count, 1);
        ck_assert_int_eq(block.output.damage[0].reason, DAMAGE_TOO_LARGE);
        ck_assert_uint_eq(block.output.damage[0].ring_bytes, 64 * 2 * SMALL_SEGMENT_BYTES);
        ck_assert_str_eq(damage_name(block.output.damage[0].reason), "too large");
        ck_assert_uint_eq(view_of(&block).header->skipped_count, 1);
        ck_assert_uint_eq(view_of(&block).header->flags, EXTENT_DAMAGED);
        free(block.image);
        free(writer.bytes);
}
END_TEST

START_TEST(longest_name_makes_progress) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        struct block_image block;
        struct block_input input;
        struct bytes bytes;

        write_scalar(&writer, SMALL_SEGMENT_BYTES / 2 - 2);
        bytes = (struct bytes){ writer.bytes, writer.size };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, 0);
        ck_assert_uint_eq(block.output.record_count, 1);
        ck_assert_int_eq(block.output.last_step, 7);
        free(block.image);
        free(writer.bytes);
}
END_TEST

START_TEST(record_above_the_limit_is_skipped_by_its_length) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        uint64_t large;
        struct block_image block;
        struct block_input input;
        struct bytes bytes;

        write_scalar(&writer, 3);
        large = writer.size;
        write_scalar(&writer, 5000);
        bytes = (struct bytes){ writer.bytes, large + 100 };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        input.record_max_bytes = 4000;
        input.last = false;
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, STAGE_MORE);
        ck_assert_uint_eq(block.output.next.offset, writer.size); /* behind what was given */
        ck_assert_int_eq(block.output.damage[0].reason, DAMAGE_TOO_LARGE);
        ck_assert_uint_eq(block.output.damage[0].offset, large);
        check_same_again(&input, &block);
        free(block.image);
        /* The file ends inside of it: not written yet. */
        input.last = true;
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, STAGE_MORE);
        ck_assert_uint_eq(block.output.next.offset, large);
        ck_assert_uint_eq(block.output.damage_count, 0);
        free(block.image);
        free(writer.bytes);
}
END_TEST

START_TEST(unfinished_record_says_what_it_needs) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        struct block_input input;
        struct block_image block;
        struct bytes bytes;

        write_scalar(&writer, 3);
        bytes = (struct bytes){ writer.bytes, writer.size - 1 };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        input.last = false;
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, STAGE_MORE);
        ck_assert_uint_eq(block.output.need_bytes, writer.size);
        ck_assert_ptr_null(block.image);
        input.size_bytes = 5;
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_uint_eq(block.output.need_bytes, 12);
        free(writer.bytes);
}
END_TEST

START_TEST(value_that_is_not_there) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        struct block_input input;
        struct bytes bytes;
        void *memory = NULL;
        uint64_t size;

        write_scalar(&writer, 3);
        bytes = (struct bytes){ writer.bytes, writer.size };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block_decode_value(&input, &memory, &size), 0);
        free(memory);
        input.begin.index = 1;
        ck_assert_int_eq(block_decode_value(&input, &memory, &size), STAGE_CORRUPT);
        input.begin.index = 0;
        writer.bytes[20] ^= 1;
        ck_assert_int_eq(block_decode_value(&input, &memory, &size), STAGE_CORRUPT);
        input.size_bytes = 0;
        ck_assert_int_eq(block_decode_value(&input, &memory, &size), STAGE_CORRUPT);
        free(writer.bytes);
}
END_TEST

/* An Event of that many Summaries, each with as many Values, with a step behind them. */
static void write_values(struct writer *writer, unsigned summaries, unsigned values) {
        /* Value { tag "t", simple_value 1 } */
        static const uint8_t value[] = { 0x0a, 8, 0x0a, 1, 't', 0x15, 0, 0, 0x80, 0x3f };
        uint8_t *payload = malloc(summaries * (8 + values * sizeof(value)) + 16), *at = payload;

        for (unsigned i = 0; i < summaries; i++) {
                *at++ = 0x2a;
                at = put_varint(at, values * sizeof(value));
                for (unsigned j = 0; j < values; j++, at += sizeof(value))
                        memcpy(at, value, sizeof(value));
        }
        *at++ = 0x10;
        *at++ = 7;
        write_record(writer, payload, (uint64_t)(at - payload));
        free(payload);
}

/* All that stands before the rest of the Event, and its CRC, become another thing. */
static uint8_t *spoilt(const struct bytes *bytes, const struct block_input *input) {
        const struct event_place *place = &input->resume.place;
        uint64_t payload = input->begin.offset + 12;
        uint8_t *spoilt = malloc(bytes->size);

        memcpy(spoilt, bytes->at, bytes->size);
        memset(spoilt, 0xff, payload + min_u64(place->value_at, place->summaries_at));
        memset(spoilt + payload + input->resume.payload_bytes, 0xff, 4);
        return spoilt;
}

/* Decodes on from what the output says, in bytes of which only the rest is right. */
static unsigned check_read_once(unsigned summaries, unsigned values) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        struct block_input input, rest;
        struct block_image block, again;
        struct bytes bytes;
        unsigned resumed = 0;

        write_values(&writer, summaries, values);
        write_scalar(&writer, 3);
        bytes = (struct bytes){ writer.bytes, writer.size };
        rest = input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        do {
                CLEANUP(freep) uint8_t *spoilt_bytes = NULL;

                if (rest.resume.payload_bytes > 0)
                        rest.bytes = spoilt_bytes = spoilt(&bytes, &rest);
                again = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
                block = blocks_decode_one(&rest, SMALL_SEGMENT_BYTES);
                ck_assert_int_eq(block.result, again.result);
                ck_assert_uint_eq(block.output.extent_bytes, again.output.extent_bytes);
                ck_assert_mem_eq(block.image, again.image, block.output.extent_bytes);
                input.begin = again.output.next;
                rest.begin = block.output.next;
                rest.resume = block.output.resume;
                resumed += rest.resume.payload_bytes > 0;
                rest.bytes = bytes.at;
                free(block.image);
                free(again.image);
        } while (block.result == STAGE_FULL);
        free(writer.bytes);
        return resumed;
}

/* So the time for a value does not depend on how many there are. */
START_TEST(event_in_many_extents_is_read_once) {
        ck_assert_uint_ge(check_read_once(1, 20000), 15);
        ck_assert_uint_ge(check_read_once(20000, 1), 15);
        ck_assert_uint_ge(check_read_once(3000, 7), 15);
        ck_assert_uint_eq(check_read_once(1, 3), 0);
}
END_TEST

/*
 * Some zeros behind the records, then more zeros, then a record: a hole; before that, not written
 * yet.
 */
START_TEST(zeros_are_not_written_yet) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        struct block_input input;
        struct block_image block;
        uint8_t zeros[100] = { 0 };
        uint64_t first;
        struct bytes bytes;

        write_scalar(&writer, 3);
        first = writer.size;
        writer.bytes = realloc(writer.bytes, first + sizeof(zeros));
        memcpy(writer.bytes + first, zeros, sizeof(zeros));
        writer.size += sizeof(zeros);
        bytes = (struct bytes){ writer.bytes, writer.size };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, STAGE_MORE);
        ck_assert_uint_eq(block.output.damage_count, 0);
        ck_assert_uint_eq(block.output.next.offset, first);
        ck_assert_uint_gt(block.output.search_offset, first);
        free(block.image);
        write_scalar(&writer, 4);
        bytes = (struct bytes){ writer.bytes, writer.size };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        input.begin = block.output.next;
        input.search_offset = block.output.search_offset;
        input.search_damage = block.output.search_damage;
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, 0);
        ck_assert_uint_eq(block.output.record_count, 1);
        ck_assert_uint_eq(block.output.damage_count, 1);
        ck_assert_uint_eq(block.output.damage[0].offset, first);
        ck_assert_uint_eq(block.output.damage[0].size_bytes, sizeof(zeros));
        ck_assert_int_eq(block.output.damage[0].reason, DAMAGE_ZEROS);
        free(block.image);
        free(writer.bytes);
}
END_TEST

/*
 * A record that lost bytes claims to end just where junk stands, and an intact one lies in it: read
 * alone, the block would look as if the wrong record were all that is there.
 */
START_TEST(junk_behind_a_block_is_remembered) {
        struct writer writer = { 0 };
        struct block_file file = blocks_file("f", "r");
        struct block_input input;
        struct block_image block;
        uint64_t length;
        uint32_t crc;
        struct bytes bytes;

        write_record(&writer, (const uint8_t *)"0123456789", 10);
        writer.size -= 9; /* the rest of it, and its CRC */
        write_scalar(&writer, 3);
        length = writer.size - 16;
        memcpy(writer.bytes, &length, 8);
        crc = crc32c_mask(crc32c(writer.bytes, 8));
        memcpy(writer.bytes + 8, &crc, 4);
        writer.bytes = realloc(writer.bytes, writer.size + 40);
        memset(writer.bytes + writer.size, 'x', 40);
        bytes = (struct bytes){ writer.bytes, writer.size + 40 };
        input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.result, STAGE_MORE);
        ck_assert_uint_eq(block.output.record_count, 1);
        ck_assert_uint_eq(block.output.damage_count, 1);
        ck_assert_uint_eq(block.output.end.offset, writer.size);
        ck_assert(block.output.end_is_open);
        check_same_again(&input, &block);
        free(block.image);
        free(writer.bytes);
}
END_TEST

/*
 * Damage whose end is not known is no damage of a block: it is what the file ends with, as long as
 * that is so.
 */
START_TEST(damage_up_to_the_end_is_the_tail) {
        struct block_file file = blocks_file("f", "r");
        uint8_t junk[200];
        struct bytes bytes = { junk, sizeof(junk) };
        struct block_input input = blocks_input(&bytes, &file, SMALL_SEGMENT_BYTES);
        struct block_image block;

        memset(junk, 'x', sizeof(junk));
        for (int again = 0; again < 2; again++) {
                block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
                ck_assert_int_eq(block.result, STAGE_MORE);
                ck_assert_ptr_null(block.image);
                ck_assert_uint_eq(block.output.damage_count, 0);
                ck_assert_uint_eq(block.output.tail.offset, 0);
                ck_assert_uint_eq(block.output.tail.size_bytes, sizeof(junk));
                ck_assert_int_eq(block.output.tail.reason, DAMAGE_LENGTH_CRC);
                ck_assert_uint_eq(block.output.next.offset, 0);
                input.search_offset = block.output.search_offset;
                input.search_damage = block.output.search_damage;
        }
        input.last = false;
        block = blocks_decode_one(&input, SMALL_SEGMENT_BYTES);
        ck_assert_int_eq(block.output.tail.reason, DAMAGE_NONE);
}
END_TEST

RUNNER_MAIN("pipeline/block_decode", block_decoded_again_is_the_same, pieces_do_not_matter,
            too_long_names_are_skipped_and_reported, longest_name_makes_progress,
            record_above_the_limit_is_skipped_by_its_length, unfinished_record_says_what_it_needs,
            value_that_is_not_there, event_in_many_extents_is_read_once, zeros_are_not_written_yet,
            junk_behind_a_block_is_remembered, damage_up_to_the_end_is_the_tail)
