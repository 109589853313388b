/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc32c.h"

#include <isa-l.h>

#include "common/crc32c_short.h"

/*
 * Below this the call into isa-l and its folding cost more than the instruction, which has a
 * latency of 3 for 8 bytes.
 */
#define LONG_SPAN_BYTES 256

/* isa-l counts in int; it does not write into the buffer that it wants writable. */
#define SPAN_MAX_BYTES ((size_t)1 << 30)

static uint32_t extend_long(uint32_t state, const uint8_t *bytes, size_t size_bytes) {
        while (size_bytes > 0) {
                size_t span = size_bytes < SPAN_MAX_BYTES ? size_bytes : SPAN_MAX_BYTES;

                state = crc32_iscsi((unsigned char *)bytes, (int)span, state);
                bytes += span;
                size_bytes -= span;
        }
        return state;
}

uint32_t crc32c_extend(uint32_t crc, const void *bytes, size_t size_bytes) {
        if (size_bytes >= LONG_SPAN_BYTES)
                return ~extend_long(~crc, bytes, size_bytes);
        return ~crc32c_short(~crc, bytes, size_bytes);
}

uint64_t crc32c_find_masked(const uint8_t *bytes, uint64_t from, uint64_t end) {
        return crc32c_short_find(bytes, from, end);
}
