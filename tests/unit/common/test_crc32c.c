/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values: RFC 3720, appendix B.4, and the definition of the CRC, a bit at a time. */
#include "common/crc32c.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/crc32c_short.h"
#include "tests/unit/runner.h"

static uint32_t by_definition(uint32_t crc, const uint8_t *bytes, size_t size) {
        crc = ~crc;
        for (size_t i = 0; i < size; i++) {
                crc ^= bytes[i];
                for (int bit = 0; bit < 8; bit++)
                        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        }
        return ~crc;
}

START_TEST(vectors_of_rfc_3720) {
        uint8_t bytes[32];

        memset(bytes, 0, sizeof(bytes));
        ck_assert_uint_eq(crc32c(bytes, sizeof(bytes)), 0x8a9136aa);
        memset(bytes, 0xff, sizeof(bytes));
        ck_assert_uint_eq(crc32c(bytes, sizeof(bytes)), 0x62a8ab43);
        for (int i = 0; i < 32; i++)
                bytes[i] = (uint8_t)i;
        ck_assert_uint_eq(crc32c(bytes, sizeof(bytes)), 0x46dd794e);
        for (int i = 0; i < 32; i++)
                bytes[i] = (uint8_t)(31 - i);
        ck_assert_uint_eq(crc32c(bytes, sizeof(bytes)), 0x113fdb5c);
        ck_assert_uint_eq(crc32c("123456789", 9), 0xe3069283);
        ck_assert_uint_eq(crc32c("", 0), 0);
}
END_TEST

/* Of TensorFlow's own tests and of a file's first record. */
START_TEST(masked_as_in_tfrecord) {
        static const uint8_t length[8] = { 24 };
        static const uint8_t version[24] = "\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0d"
                                           "brain.Event:2";
        static const uint8_t zeros[8];

        ck_assert_uint_eq(crc32c_mask(crc32c("\x1a\x11"
                                             "CRC test, one two",
                                             19)),
                          0x5794d08a);
        ck_assert_uint_eq(crc32c_mask(crc32c(length, 8)), 0x224b7fa3);
        ck_assert_uint_eq(crc32c_mask(crc32c(version, 24)), 0xab364b12);
        ck_assert_uint_eq(crc32c_mask(crc32c(zeros, 8)), 0x07980329);
}
END_TEST

/* Every length around the places where the way of computing changes, at every alignment. */
START_TEST(every_length_and_alignment) {
        CLEANUP(freep) uint8_t *bytes = malloc(700);

        for (int i = 0; i < 700; i++)
                bytes[i] = (uint8_t)(i * 167 + (i >> 3));
        for (size_t at = 0; at < 9; at++)
                for (size_t size = 0; size <= 600; size++) {
                        uint32_t expected = by_definition(0, bytes + at, size);

                        ck_assert_uint_eq(crc32c(bytes + at, size), expected);
                        ck_assert_uint_eq(~crc32c_table(~0u, bytes + at, size), expected);
                        ck_assert_uint_eq(~crc32c_short(~0u, bytes + at, size), expected);
                }
}
END_TEST

START_TEST(extended_in_any_pieces) {
        CLEANUP(freep) uint8_t *bytes = malloc(3000);
        uint32_t expected;

        for (int i = 0; i < 3000; i++)
                bytes[i] = (uint8_t)(i * 31 + 7);
        expected = by_definition(0, bytes, 3000);
        for (size_t cut = 0; cut <= 3000; cut += 7)
                ck_assert_uint_eq(crc32c_extend(crc32c(bytes, cut), bytes + cut, 3000 - cut),
                                  expected);
}
END_TEST

/* At every place of a buffer, by every means: a length and its masked CRC, and nothing before it. */
START_TEST(length_is_found_by_its_crc) {
        uint8_t bytes[64];
        uint64_t length = 24;
        uint32_t crc = 0x224b7fa3;

        for (uint64_t at = 0; at + 12 <= sizeof(bytes); at++) {
                memset(bytes, 0, sizeof(bytes));
                memcpy(bytes + at, &length, 8);
                memcpy(bytes + at + 8, &crc, 4);
                for (uint64_t end = at; end <= sizeof(bytes); end++) {
                        uint64_t expected = end >= at + 12 ? at : end;

                        ck_assert_uint_eq(crc32c_find_masked(bytes, 0, end), expected);
                        ck_assert_uint_eq(crc32c_table_find(bytes, 0, end), expected);
                }
                ck_assert_uint_eq(crc32c_find_masked(bytes, at, sizeof(bytes)), at);
                ck_assert_uint_eq(crc32c_find_masked(bytes, at + 1, sizeof(bytes)), sizeof(bytes));
        }
}
END_TEST

RUNNER_MAIN("common/crc32c", vectors_of_rfc_3720, masked_as_in_tfrecord, every_length_and_alignment,
            extended_in_any_pieces, length_is_found_by_its_crc)
