/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CRC's state is a polynomial over GF(2), its highest power in the lowest bit. n zero bytes
 * multiply it with x^(8n) modulo the CRC's polynomial, and the bytes themselves are added. So the
 * state that a span begun with all ones leaves behind is that at the span's end, plus what was
 * there at its begin and the ones, both multiplied for the span's size.
 */
#include "daemon/frame/crc_prefix.h"

#include "common/base.h"
#include "common/crc32c.h"

#define POLYNOMIAL 0x82f63b78u
#define ONE 0x80000000u        /* x^0 */
#define ZERO_BYTE 0x00800000u  /* x^8 */
#define PITCH_LEAST_BYTES 512u /* below it there is more work in the multiplications */

static uint32_t multiply(uint32_t a, uint32_t b) {
        uint32_t product = 0;

        for (uint32_t bit = ONE; bit; bit >>= 1) {
                product ^= a & bit ? b : 0;
                b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
        }
        return product;
}

static void make_powers(struct crc_prefix *prefix) {
        uint32_t unit = ZERO_BYTE;

        for (unsigned digit = 0; digit < CRC_PREFIX_DIGITS; digit++) {
                prefix->power[digit][0] = ONE;
                for (unsigned value = 1; value < 16; value++)
                        prefix->power[digit][value] = multiply(prefix->power[digit][value - 1],
                                                               unit);
                unit = multiply(prefix->power[digit][15], unit);
        }
}

void crc_prefix_init(struct crc_prefix *prefix, const uint8_t *bytes, uint64_t begin,
                     uint64_t end) {
        prefix->bytes = bytes;
        prefix->begin = begin;
        prefix->pitch_bytes = max_u64(PITCH_LEAST_BYTES, (end - begin) / (CRC_PREFIX_PLACES - 1));
        prefix->state[0] = 0;
        prefix->count = 1;
        make_powers(prefix);
}

static uint32_t run(const struct crc_prefix *prefix, uint32_t state, uint64_t from, uint64_t size) {
        return ~crc32c_extend(~state, prefix->bytes + from, size);
}

static uint32_t state_at(struct crc_prefix *prefix, uint64_t at) {
        uint64_t place = min_u64((at - prefix->begin) / prefix->pitch_bytes, CRC_PREFIX_PLACES - 1);
        uint64_t place_at = prefix->begin + place * prefix->pitch_bytes;

        for (; prefix->count <= place; prefix->count++)
                prefix->state[prefix->count] = run(prefix, prefix->state[prefix->count - 1],
                                                   prefix->begin + (prefix->count - 1) *
                                                                           prefix->pitch_bytes,
                                                   prefix->pitch_bytes);
        return run(prefix, prefix->state[place], place_at, at - place_at);
}

uint32_t crc_prefix_crc(struct crc_prefix *prefix, uint64_t from, uint64_t size_bytes) {
        uint32_t shifted = state_at(prefix, from) ^ UINT32_MAX;

        MUST(size_bytes >> (4 * CRC_PREFIX_DIGITS) == 0);
        for (unsigned digit = 0; size_bytes >> (4 * digit); digit++) {
                unsigned value = size_bytes >> (4 * digit) & 15;

                if (value)
                        shifted = multiply(prefix->power[digit][value], shifted);
        }
        return ~(state_at(prefix, from + size_bytes) ^ shifted);
}
