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
                         enum damage damage) {
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
        ck_assert_int_eq(reader.unresolved_damage, DAMAGE_NONE);
}
END_TEST

START_TEST(wrong_data_costs_that_record) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24), two = put_record(file, 'b', 7);
        struct tfrecord_reader reader = reader_of(file);

        file->bytes[one + 20] ^= 1;
        check_damage(&reader, one, 40, DAMAGE_DATA_CRC);
        check_right(&reader, two, 'b', 7);
}
END_TEST

/* With length_crc_only it is a record like any other; a wrong length is still damage. */
START_TEST(wrong_data_is_right_if_nobody_looks) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24), two = put_record(file, 'b', 7),
                 three = put_record(file, 'c', 7);
        struct tfrecord_reader reader = reader_of(file);
        struct tfrecord record;

        reader.length_crc_only = true;
        file->bytes[one + 20] ^= 1;
        ck_assert_int_eq(tfrecord_next(&reader, &record), 0);
        ck_assert_uint_eq(record.offset, one);
        ck_assert_uint_eq(record.payload_bytes, 24);
        file->bytes[two + 1] ^= 1;
        check_damage(&reader, two, three - two, DAMAGE_LENGTH_CRC);
        check_right(&reader, three, 'c', 7);
}
END_TEST

START_TEST(record_that_lost_bytes) {
        CLEANUP(freep) struct file *file = file_new();
        struct tfrecord_reader reader;

        put_record(file, 'a', 24);
        file->size -= 9; /* the next one stands where its end was */
        put_record(file, 'b', 7);
        reader = reader_of(file);
        check_damage(&reader, 0, 31, DAMAGE_DATA_CRC);
        check_right(&reader, 31, 'b', 7);
}
END_TEST

START_TEST(wrong_data_at_the_end) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24);
        struct tfrecord_reader reader = reader_of(file);

        file->bytes[20] ^= 1;
        check_damage(&reader, one, 40, DAMAGE_DATA_CRC);
        check_more(&reader, 40);
        /* Not the end for sure: what stands behind it decides. */
        reader = reader_of(file);
        reader.last = false;
        check_more(&reader, 0);
        ck_assert_uint_gt(reader.need_bytes, 40);
        put_zeros(file, 30);
        reader = reader_of(file);
        check_damage(&reader, one, 40, DAMAGE_DATA_CRC);
        check_more(&reader, 40);
        ck_assert_int_eq(reader.unresolved_damage, DAMAGE_NONE);
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
        ck_assert_int_eq(reader.unresolved_damage, DAMAGE_DATA_CRC);
        file->size = 80;
        reader.size_bytes = file->size;
        check_damage(&reader, 0, 40, DAMAGE_DATA_CRC);
        check_right(&reader, 40, 'b', 24);
}
END_TEST

START_TEST(wrong_length_is_searched_past) {
        CLEANUP(freep) struct file *file = file_new();
        uint64_t one = put_record(file, 'a', 24), two = put_record(file, 'b', 7);
        struct tfrecord_reader reader = reader_of(file);

        file->bytes[one + 8] ^= 1;
        check_damage(&reader, one, 40, DAMAGE_LENGTH_CRC);
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
                check_damage(&reader, 0, two, DAMAGE_LENGTH_CRC);
                ck_assert_uint_eq(reader.search_offset, 0);
                check_right(&reader, two, 'b', 7);
        }
}
END_TEST

START_TEST(junk_to_the_end_is_unresolved) {
        CLEANUP(freep) struct file *file = file_new();
        struct tfrecord_reader reader;

        memset(file->bytes, 'x', 100);
        file->size = 100;
        reader = reader_of(file);
        check_more(&reader, 0);
        ck_assert_int_eq(reader.unresolved_damage, DAMAGE_LENGTH_CRC);
        ck_assert_uint_eq(reader.search_offset, 89);
        check_more(&reader, 0);
        ck_assert_int_eq(reader.unresolved_damage, DAMAGE_LENGTH_CRC);
        reader.last = false;
        check_more(&reader, 0);
        ck_assert_int_eq(reader.unresolved_damage, DAMAGE_NONE);
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
                ck_assert_int_eq(reader.unresolved_damage, DAMAGE_NONE);
                two = put_record(file, 'b', 7);
                reader.size_bytes = file->size;
                check_damage(&reader, 40, zeros, DAMAGE_ZEROS);
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
        check_damage(&reader, 0, 40, DAMAGE_DATA_CRC);
}
END_TEST

/* Gives the file in pieces that end before and behind each byte; the bytes before are gone. */
static void check_in_pieces(const struct file *file, uint64_t offset, uint64_t size,
                            enum damage damage) {
        unsigned searches = 0;

        for (uint64_t known = offset + 12; known < file->size; known++) {
                struct tfrecord_reader reader = reader_of(file), before;
                struct tfrecord record;

                reader.offset = offset;
                reader.size_bytes = known;
                reader.last = false;
                before = reader;
                if (tfrecord_next(&reader, &record) == STAGE_CORRUPT) {
                        check_damage(&before, offset, size, damage);
                        continue;
                }
                ck_assert_uint_eq(reader.offset, offset);
                if (!reader.search_offset)
                        continue; /* nothing was searched yet: it begins anew */
                searches++;
                reader.bytes += reader.search_offset;
                reader.bytes_offset = reader.search_offset;
                reader.size_bytes = file->size - reader.search_offset;
                check_damage(&reader, offset, size, damage);
        }
        ck_assert_uint_gt(searches, 10);
}

/* What is wrong does not depend on the pieces. */
START_TEST(reasons_in_pieces) {
        CLEANUP(freep) struct file *file = file_new();

        put_record(file, 'a', 24);
        put_zeros(file, 50);
        put_record(file, 'b', 7);
        check_in_pieces(file, 40, 50, DAMAGE_ZEROS);
        file->bytes[89] = 1; /* the last byte of the hole */
        check_in_pieces(file, 40, 50, DAMAGE_LENGTH_CRC);
        file->bytes[89] = 0;
        file->bytes[60] = 1;
        check_in_pieces(file, 40, 50, DAMAGE_LENGTH_CRC);
        memset(file->bytes, 'x', 90);
        check_in_pieces(file, 0, 90, DAMAGE_LENGTH_CRC);
        memcpy(file->bytes, "\x1f\x8b\x08", 3);
        check_in_pieces(file, 0, 90, DAMAGE_GZIP);
        /* A right header, a wrong payload, and no header where it should end. */
        file->size = 0;
        put_record(file, 'a', 90);
        memset(file->bytes + 60, 'x', 100);
        file->size = 160;
        put_record(file, 'b', 70);
        check_in_pieces(file, 0, 160, DAMAGE_DATA_CRC);
}
END_TEST

/* Only the first bytes of a file tell that it is another kind of file. */
START_TEST(compressed_streams) {
        static const struct {
                uint8_t begin[4];
                enum damage damage;
        } cases[] = {
                { { 0x1f, 0x8b, 8, 0 }, DAMAGE_GZIP },
                { { 0x1f, 0x8b, 7, 0 }, DAMAGE_LENGTH_CRC },
                { { 0x78, 0x9c, 1, 0 }, DAMAGE_ZLIB },
                { { 0x78, 0x01, 3, 0 }, DAMAGE_ZLIB },
                { { 0x78, 0x5e, 5, 0 }, DAMAGE_ZLIB },
                { { 0x78, 0xda, 0, 0 }, DAMAGE_ZLIB },
                { { 0x78, 0x9d, 1, 0 }, DAMAGE_LENGTH_CRC },
                { { 0x78, 0x9c, 7, 0 }, DAMAGE_LENGTH_CRC },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(freep) struct file *file = file_new();
                struct tfrecord_reader reader;

                memset(file->bytes, 'x', 100);
                memcpy(file->bytes, cases[i].begin, 4);
                file->size = 100;
                reader = reader_of(file);
                check_more(&reader, 0);
                ck_assert_int_eq(reader.unresolved_damage, cases[i].damage);
                put_record(file, 'a', 3);
                memcpy(file->bytes + file->size, cases[i].begin, 4);
                file->size += 20;
                put_record(file, 'b', 3);
                reader = reader_of(file);
                check_damage(&reader, 0, 100, cases[i].damage);
                check_right(&reader, 100, 'a', 3);
                check_damage(&reader, 119, 20, DAMAGE_LENGTH_CRC);
        }
}
END_TEST

/*
 * Headers that claim to reach far and do not lie, all in each other: with and without memory for it
 * the same is found, and an intact record that ends in the middle of nowhere is among it.
 */
START_TEST(headers_in_each_other) {
        CLEANUP(freep) struct file *file = file_new();
        struct crc_prefix *prefix = malloc(sizeof(*prefix));
        struct tfrecord_reader plain, fast;
        struct tfrecord expected, got;
        unsigned right = 0, wrong = 0;
        int r;

        for (uint64_t i = 0; i < 300; i++)
                put_header(file, 20000 + 7 * i % 30000);
        put_record(file, 'i', 5000);
        for (uint64_t i = 0; i < 60000; i++)
                file->bytes[file->size++] = (uint8_t)(i * 167 + (i >> 7));
        memset(prefix, 0xaa, sizeof(*prefix));
        plain = fast = reader_of(file);
        fast.prefix = prefix;
        do {
                r = tfrecord_next(&plain, &expected);
                ck_assert_int_eq(tfrecord_next(&fast, &got), r);
                ck_assert_uint_eq(fast.offset, plain.offset);
                ck_assert_uint_eq(fast.search_offset, plain.search_offset);
                if (r == STAGE_MORE)
                        break;
                ck_assert_uint_eq(got.offset, expected.offset);
                ck_assert_uint_eq(got.size_bytes, expected.size_bytes);
                ck_assert_int_eq(got.damage, expected.damage);
                right += r == 0;
                wrong += r == STAGE_CORRUPT;
        } while (true);
        ck_assert_uint_eq(right, 1);
        ck_assert_uint_eq(wrong, 300);
        ck_assert(fast.has_prefix);
        free(prefix);
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
        check_damage(&reader, two, 3016, DAMAGE_TOO_LARGE);
        check_right(&reader, three, 'c', 3);
        /* Of its bytes only the header is here: the next place is behind what was given. */
        reader = reader_of(file);
        reader.record_max_bytes = 2999;
        reader.size_bytes = two + 12;
        reader.last = false;
        check_right(&reader, 0, 'a', 3);
        check_damage(&reader, two, 3016, DAMAGE_TOO_LARGE);
        check_more(&reader, three);
        /* As far as is known the file is not that long. */
        reader.offset = two;
        reader.file_bytes = three - 1;
        check_more(&reader, two);
        reader.file_bytes = three;
        check_damage(&reader, two, 3016, DAMAGE_TOO_LARGE);
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
                check_damage(&reader, 0, end, DAMAGE_DATA_CRC);
        }
        /* A right record inside of the wrong one, and a boundary before the end of that. */
        file->size = 20;
        put_record(file, 'i', 2);
        reader = reader_of(file);
        reader.size_bytes = reader.boundary = 38;
        reader.last = false;
        check_damage(&reader, 0, 20, DAMAGE_DATA_CRC);
        check_right(&reader, 20, 'i', 2);
        memset(file->bytes, 'x', 60);
        for (uint64_t end = 1; end <= 40; end++) {
                reader = reader_of(file);
                reader.size_bytes = end;
                reader.boundary = end;
                reader.last = false;
                check_damage(&reader, 0, end, DAMAGE_LENGTH_CRC);
        }
}
END_TEST

RUNNER_MAIN("frame/tfrecord", right_records, wrong_data_costs_that_record,
            wrong_data_is_right_if_nobody_looks, record_that_lost_bytes, wrong_data_at_the_end,
            header_being_written_behind_wrong_data, wrong_length_is_searched_past, search_in_pieces,
            junk_to_the_end_is_unresolved, zeros_to_the_end_are_nothing,
            zero_run_bounds_what_is_needed, reasons_in_pieces, compressed_streams,
            headers_in_each_other, absurd_lengths_cost_nothing, too_large_is_skipped_by_its_length,
            boundary_ends_damage)
