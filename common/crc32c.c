/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc32c.h"

#include <isa-l.h>

/* isa-l counts in int; it does not write into the buffer that it wants writable. */
#define SPAN_MAX_BYTES ((size_t)1 << 30)

uint32_t crc32c_extend_long(uint32_t crc, const void *bytes, size_t size_bytes) {
        const uint8_t *at = bytes;
        uint32_t state = ~crc;

        while (size_bytes > 0) {
                size_t span = size_bytes < SPAN_MAX_BYTES ? size_bytes : SPAN_MAX_BYTES;

                state = crc32_iscsi((unsigned char *)at, (int)span, state);
                at += span;
                size_bytes -= span;
        }
        return ~state;
}

uint64_t crc32c_find_masked(const uint8_t *bytes, uint64_t from, uint64_t end) {
        return crc32c_short_find(bytes, from, end);
}
