/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (Castagnoli, as in RFC 3720), by the fastest means the processor has: folding for long
 * spans (isa-l), the processor's own instruction for short ones, a table where it has neither. Any
 * thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/crc32c_short.h"

/*
 * Below this the call into isa-l and its folding cost more than the instruction, which has a
 * latency of 3 for 8 bytes.
 */
#define CRC32C_LONG_SPAN_BYTES 256

/* crc32c_extend() of many bytes. */
uint32_t crc32c_extend_long(uint32_t crc, const void *bytes, size_t size_bytes);

/* The CRC of what crc is the CRC of, and then these bytes. crc 0: of these bytes alone. */
static inline uint32_t crc32c_extend(uint32_t crc, const void *bytes, size_t size_bytes) {
        return size_bytes >= CRC32C_LONG_SPAN_BYTES ? crc32c_extend_long(crc, bytes, size_bytes)
                                                    : ~crc32c_short(~crc, bytes, size_bytes);
}

static inline uint32_t crc32c(const void *bytes, size_t size_bytes) {
        return crc32c_extend(0, bytes, size_bytes);
}

/*
 * As TFRecord stores it: rotated and moved, so that the CRC of data which holds its own CRC stays
 * meaningful.
 */
static inline uint32_t crc32c_mask(uint32_t crc) {
        return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/*
 * The first place in [from, end) at which eight bytes stand with their masked CRC in the four
 * behind them, all before end: what a TFRecord's header is told by. end: there is none.
 */
uint64_t crc32c_find_masked(const uint8_t *bytes, uint64_t from, uint64_t end);
