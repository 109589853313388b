/* SPDX-License-Identifier: Apache-2.0 */
/* Every span against the definition of the CRC, a bit at a time. */
#include "daemon/frame/crc_prefix.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

static uint32_t by_definition(const uint8_t *bytes, size_t size) {
        uint32_t crc = ~0u;

        for (size_t i = 0; i < size; i++) {
                crc ^= bytes[i];
                for (int bit = 0; bit < 8; bit++)
                        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        }
        return ~crc;
}

/* In an allocation of its own, so that a read past its end is seen. */
static uint8_t *bytes_new(size_t size) {
        uint8_t *bytes = malloc(size);

        for (size_t i = 0; i < size; i++)
                bytes[i] = (uint8_t)(i * 193 + (i >> 5));
        return bytes;
}

START_TEST(spans_around_the_places) {
        const size_t size = 3000;
        CLEANUP(freep) uint8_t *bytes = bytes_new(size);
        CLEANUP(freep) struct crc_prefix *prefix = malloc(sizeof(*prefix));

        crc_prefix_init(prefix, bytes, 5, size);
        for (uint64_t from = 5; from < size; from += 37)
                for (uint64_t to = from; to <= size; to += 61)
                        ck_assert_uint_eq(crc_prefix_crc(prefix, from, to - from),
                                          by_definition(bytes + from, to - from));
        ck_assert_uint_eq(crc_prefix_crc(prefix, 5, size - 5), by_definition(bytes + 5, size - 5));
        ck_assert_uint_eq(crc_prefix_crc(prefix, size, 0), 0);
}
END_TEST

/* More bytes than places of the least pitch: the last place is the last one there is room for. */
START_TEST(large_piece) {
        const size_t size = 5u << 20;
        CLEANUP(freep) uint8_t *bytes = bytes_new(size);
        CLEANUP(freep) struct crc_prefix *prefix = malloc(sizeof(*prefix));

        crc_prefix_init(prefix, bytes, 0, size);
        ck_assert_uint_eq(crc_prefix_crc(prefix, 1, size - 1), by_definition(bytes + 1, size - 1));
        ck_assert_uint_eq(crc_prefix_crc(prefix, 777777, 3333333),
                          by_definition(bytes + 777777, 3333333));
        ck_assert_uint_eq(crc_prefix_crc(prefix, size - 3, 3), by_definition(bytes + size - 3, 3));
        ck_assert_uint_le(prefix->count, CRC_PREFIX_PLACES);
}
END_TEST

RUNNER_MAIN("frame/crc_prefix", spans_around_the_places, large_piece)
