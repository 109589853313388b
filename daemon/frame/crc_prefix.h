/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CRC-32C of any span of a piece of memory without reading all of it: the CRC's state at
 * regular places is kept, and the state is linear. Where many damaged records lie in each other,
 * each of them costs a few hundred bytes of reading then, whatever length it claims. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CRC_PREFIX_PLACES 4096u
#define CRC_PREFIX_DIGITS 12u /* of four bits, of a span's size */

struct crc_prefix {
        const uint8_t *bytes;
        uint64_t begin, pitch_bytes;
        uint32_t count;                    /* of the states that are known */
        uint32_t state[CRC_PREFIX_PLACES]; /* at begin + i * pitch_bytes; from 0, not inverted */
        /* what the state is multiplied with by digit * 16^i zero bytes */
        uint32_t power[CRC_PREFIX_DIGITS][16];
};

/* Spans of bytes[begin, end) may be asked for; the bytes are borrowed. They are read when needed. */
void crc_prefix_init(struct crc_prefix *prefix, const uint8_t *bytes, uint64_t begin, uint64_t end);

/* What crc32c() says of bytes[from, from + size_bytes). */
uint32_t crc_prefix_crc(struct crc_prefix *prefix, uint64_t from, uint64_t size_bytes);
