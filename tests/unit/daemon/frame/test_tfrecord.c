/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each rule about damage alone; whole files: pipeline/test_goldens. Frames are made with a CRC of a
 * bit at a time.
 */
#include "daemon/frame/tfrecord.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner.h"

struct file {
        uint8_t bytes[1 << 18];
        uint64_t size;
};

static uint32_t masked(const uint8_t *bytes, uint64_t size) {
        uint32_t crc = ~0u;

        for (uint64_t i = 0; i < size; i++) {
                crc ^= bytes[i];
                for (int bit = 0; bit < 8; bit++)
                        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        }
        crc = ~crc;
        return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_header(struct file *file, uint64_t length) {
        uint8_t *at = file->bytes + file->size;
        uint32_t crc;

        memcpy(at, &length, 8);
        crc = masked(at, 8);
        memcpy(at + 8, &crc, 4);
        file->size += 12;
}

/* A record of `length` bytes of that sign; returns where it begins. */
static uint64_t put_record(struct file *file, char sign, uint64_t length) {
        uint64_t at = file->size;
        uint32_t crc;

        put_header(file, length);
        memset(file->bytes + file->size, sign, length);
        crc = masked(file->bytes + file->size, length);
        memcpy(file->bytes + file->size + length, &crc, 4);
        file->size += length + 4;
        return at;
}

static void put_zeros(struct file *file, uint64_t size) {
        memset(file->bytes + file->size, 0, size);
        file->size += size;
}

static struct tfrecord_reader reader_of(const struct file *file) {
        return (struct tfrecord_reader){
                .bytes = file->bytes,
                .size_bytes = file->size,
                .boundary = UINT64_MAX,
                .record_max_bytes = 1u << 20,
                .last = true,
        };
}

static void check_right(struct tfrecord_reader *reader, uint64_t offset, char sign,
                        uint64_t length) {
        struct tfrecord record;

        ck_assert_int_eq(tfrecord_next(reader, &record), 0);
        ck_assert_uint_eq(record.offset, offset);
        ck_assert_uint_eq(record.payload_bytes, length);
        ck_assert_uint_eq(record.size_bytes, length + 16);
        ck_assert(length == 0 || record.payload[length - 1] == sign);
}

static void check_damage(struct tfrecord_reader *reader, uint64_t offset, uint64_t size,
                         enum tfrecord_damage damage) {
        struct tfrecord record;

        ck_assert_int_eq(tfrecord_next(reader, &record), STAGE_CORRUPT);
        ck_assert_uint_eq(record.offset, offset);
        ck_assert_uint_eq(record.size_bytes, size);
        ck_assert_int_eq(record.damage, damage);
        ck_assert_uint_eq(reader->offset, offset + size);
}

static void check_more(struct tfrecord_reader *reader, uint64_t offset) {
        struct tfrecord record;

        ck_assert_int_eq(tfrecord_next(reader, &record), STAGE_MORE);
        ck_assert_uint_eq(reader->offset, offset);
}

static struct file *file_new(void) {
        return calloc(1, sizeof(struct file));
}

START_TEST(right_records) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24), two = put_record(file, 'b', 0),
                 three = put_record(file, 'c', 5000);
        struct tfrecord_reader reader = reader_of(file);

        check_right(&reader, one, 'a', 24);
        check_right(&reader, two, 'b', 0);
        check_right(&reader, three, 'c', 5000);
        check_more(&reader, file->size);
        ck_assert_uint_eq(reader.need_bytes, 12);
        ck_assert(!reader.unresolved);
}
END_TEST

START_TEST(wrong_data_costs_that_record) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24), two = put_record(file, 'b', 7);
        struct tfrecord_reader reader = reader_of(file);

        file->bytes[one + 20] ^= 1;
        check_damage(&reader, one, 40, TFRECORD_DATA_CRC);
        check_right(&reader, two, 'b', 7);
}
END_TEST

START_TEST(record_that_lost_bytes) {
        CLEANUP(freep) struct file *file = file_new();
        struct tfrecord_reader reader;

        put_record(file, 'a', 24);
        file->size -= 9; /* the next one stands where its end was */
        put_record(file, 'b', 7);
        reader = reader_of(file);
        check_damage(&reader, 0, 31, TFRECORD_DATA_CRC);
        check_right(&reader, 31, 'b', 7);
}
END_TEST

START_TEST(wrong_data_at_the_end) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24);
        struct tfrecord_reader reader = reader_of(file);

        file->bytes[20] ^= 1;
        check_damage(&reader, one, 40, TFRECORD_DATA_CRC);
        check_more(&reader, 40);
        /* Not the end for sure: what stands behind it decides. */
        reader = reader_of(file);
        reader.last = false;
        check_more(&reader, 0);
        ck_assert_uint_gt(reader.need_bytes, 40);
        put_zeros(file, 30);
        reader = reader_of(file);
        check_damage(&reader, one, 40, TFRECORD_DATA_CRC);
        check_more(&reader, 40);
        ck_assert(!reader.unresolved);
}
END_TEST

START_TEST(header_being_written_behind_wrong_data) {
        CLEANUP(freep) struct file *file = file_new();
        struct tfrecord_reader reader;

        put_record(file, 'a', 24);
        file->bytes[20] ^= 1;
        put_record(file, 'b', 24);
        file->size = 40 + 11;
        reader = reader_of(file);
        check_more(&reader, 0);
        ck_assert(reader.unresolved);
        ck_assert_int_eq(reader.unresolved_damage, TFRECORD_DATA_CRC);
        file->size = 80;
        reader.size_bytes = file->size;
        check_damage(&reader, 0, 40, TFRECORD_DATA_CRC);
        check_right(&reader, 40, 'b', 24);
}
END_TEST

START_TEST(wrong_length_is_searched_past) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24), two = put_record(file, 'b', 7);
        struct tfrecord_reader reader = reader_of(file);

        file->bytes[one + 8] ^= 1;
        check_damage(&reader, one, 40, TFRECORD_LENGTH_CRC);
        check_right(&reader, two, 'b', 7);
}
END_TEST

/*
 * The search goes on where it stopped, also when the bytes before it are gone, and finds a header
 * that was cut.
 */
START_TEST(search_in_pieces) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t two;

        memset(file->bytes, 'x', 1000);
        file->size = 1000;
        two = put_record(file, 'b', 7);
        for (uint64_t known = 12; known < two + 12; known++) {
                struct tfrecord_reader reader = reader_of(file);

                reader.size_bytes = known;
                reader.last = false;
                check_more(&reader, 0);
                ck_assert_uint_le(reader.search_offset, two);
                reader.bytes += reader.search_offset;
                reader.bytes_offset = reader.search_offset;
                reader.size_bytes = file->size - reader.search_offset;
                check_damage(&reader, 0, two, TFRECORD_LENGTH_CRC);
                ck_assert_uint_eq(reader.search_offset, 0);
                check_right(&reader, two, 'b', 7);
        }
}
END_TEST

START_TEST(junk_to_the_end_is_unresolved_once) {
        CLEANUP(freep) struct file *file = file_new();
        struct tfrecord_reader reader;

        memset(file->bytes, 'x', 100);
        file->size = 100;
        reader = reader_of(file);
        check_more(&reader, 0);
        ck_assert(reader.unresolved);
        ck_assert_int_eq(reader.unresolved_damage, TFRECORD_LENGTH_CRC);
        ck_assert_uint_eq(reader.search_offset, 89);
        check_more(&reader, 0);
        ck_assert(!reader.unresolved);
}
END_TEST

START_TEST(zeros_to_the_end_are_nothing) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t two;

        for (uint64_t zeros = 1; zeros < 40; zeros++) {
                struct tfrecord_reader reader;

                file->size = 0;
                put_record(file, 'a', 24);
                put_zeros(file, zeros);
                reader = reader_of(file);
                check_right(&reader, 0, 'a', 24);
                check_more(&reader, 40);
                ck_assert(!reader.unresolved);
                two = put_record(file, 'b', 7);
                reader.size_bytes = file->size;
                check_damage(&reader, 40, zeros, TFRECORD_LENGTH_CRC);
                check_right(&reader, two, 'b', 7);
        }
}
END_TEST

/*
 * Many zeros behind a damaged record are believed to be the end; what is in the record is not
 * looked at then.
 */
START_TEST(zero_run_bounds_what_is_needed) {
        CLEANUP(freep) struct file *file = file_new();
        struct tfrecord_reader reader;

        put_record(file, 'a', 24);
        file->bytes[20] ^= 1;
        put_zeros(file, 65535);
        reader = reader_of(file);
        reader.last = false;
        check_more(&reader, 0);
        ck_assert_uint_eq(reader.need_bytes, 40 + 65536);
        put_zeros(file, 1);
        reader = reader_of(file);
        reader.last = false;
        check_damage(&reader, 0, 40, TFRECORD_DATA_CRC);
}
END_TEST

START_TEST(absurd_lengths_cost_nothing) {
        static const uint64_t lengths[] = { 1u << 31,        1ull << 40,      1ull << 63,
                                            UINT64_MAX - 28, UINT64_MAX - 16, UINT64_MAX - 3,
                                            UINT64_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                CLEANUP(freep) struct file *file = file_new();
                struct tfrecord_reader reader;

                put_record(file, 'a', 3);
                put_header(file, lengths[i]);
                put_record(file, 'b', 3);
                reader = reader_of(file);
                check_right(&reader, 0, 'a', 3);
                check_more(&reader, 19);
                reader = reader_of(file);
                reader.record_max_bytes = UINT64_MAX;
                check_right(&reader, 0, 'a', 3);
                check_more(&reader, 19);
                ck_assert_uint_gt(reader.need_bytes,
                                  lengths[i] < UINT64_MAX - 16 ? lengths[i] : UINT64_MAX - 1);
        }
}
END_TEST

START_TEST(too_large_is_skipped_by_its_length) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t two, three;
        struct tfrecord_reader reader;

        put_record(file, 'a', 3);
        two = put_record(file, 'b', 3000);
        three = put_record(file, 'c', 3);
        reader = reader_of(file);
        reader.record_max_bytes = 2999;
        check_right(&reader, 0, 'a', 3);
        check_damage(&reader, two, 3016, TFRECORD_TOO_LARGE);
        check_right(&reader, three, 'c', 3);
        /* Of its bytes only the header is here: the next place is behind what was given. */
        reader = reader_of(file);
        reader.record_max_bytes = 2999;
        reader.size_bytes = two + 12;
        reader.last = false;
        check_right(&reader, 0, 'a', 3);
        check_damage(&reader, two, 3016, TFRECORD_TOO_LARGE);
        check_more(&reader, three);
}
END_TEST

/* Decoded again up to a boundary: what made the damage end there is not among the bytes. */
START_TEST(boundary_ends_damage) {
        CLEANUP(freep) struct file *file = file_new();
        struct tfrecord_reader reader;

        put_record(file, 'a', 24);
        file->bytes[20] ^= 1;
        for (uint64_t end = 13; end <= 40; end++) {
                reader = reader_of(file);
                reader.size_bytes = end;
                reader.boundary = end;
                reader.last = false;
                check_damage(&reader, 0, end, TFRECORD_DATA_CRC);
        }
        /* A right record inside of the wrong one, and a boundary before the end of that. */
        file->size = 20;
        put_record(file, 'i', 2);
        reader = reader_of(file);
        reader.size_bytes = reader.boundary = 38;
        reader.last = false;
        check_damage(&reader, 0, 20, TFRECORD_DATA_CRC);
        check_right(&reader, 20, 'i', 2);
        memset(file->bytes, 'x', 60);
        for (uint64_t end = 1; end <= 40; end++) {
                reader = reader_of(file);
                reader.size_bytes = end;
                reader.boundary = end;
                reader.last = false;
                check_damage(&reader, 0, end, TFRECORD_LENGTH_CRC);
        }
}
END_TEST

RUNNER_MAIN("frame/tfrecord", right_records, wrong_data_costs_that_record, record_that_lost_bytes,
            wrong_data_at_the_end, header_being_written_behind_wrong_data,
            wrong_length_is_searched_past, search_in_pieces, junk_to_the_end_is_unresolved_once,
            zeros_to_the_end_are_nothing, zero_run_bounds_what_is_needed,
            absurd_lengths_cost_nothing, too_large_is_skipped_by_its_length, boundary_ends_damage)
