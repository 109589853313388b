/* SPDX-License-Identifier: Apache-2.0 */
/* The crc32 instruction of SSE 4.2. */
#if defined(__x86_64__)

#include <nmmintrin.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/crc32c_short.h"

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t state,
                                                                 const uint8_t *bytes,
                                                                 size_t size_bytes) {
        uint64_t wide = state;
        uint64_t eight;
        uint32_t four;
        uint16_t two;

        for (; size_bytes >= 8; bytes += 8, size_bytes -= 8) {
                memcpy(&eight, bytes, 8);
                wide = _mm_crc32_u64(wide, eight);
        }
        state = (uint32_t)wide;
        if (size_bytes & 4) {
                memcpy(&four, bytes, 4);
                state = _mm_crc32_u32(state, four);
                bytes += 4;
        }
        if (size_bytes & 2) {
                memcpy(&two, bytes, 2);
                state = _mm_crc32_u16(state, two);
                bytes += 2;
        }
        if (size_bytes & 1)
                state = _mm_crc32_u8(state, *bytes);
        return state;
}

uint32_t crc32c_short(uint32_t state, const uint8_t *bytes, size_t size_bytes) {
        if (__builtin_cpu_supports("sse4.2"))
                return by_instruction(state, bytes, size_bytes);
        return crc32c_table(state, bytes, size_bytes);
}

__attribute__((target("sse4.2"))) static uint64_t find_by_instruction(const uint8_t *bytes,
                                                                      uint64_t from, uint64_t end) {
        for (; from < end && end - from >= 12; from++) {
                uint64_t eight;
                uint32_t four;

                memcpy(&eight, bytes + from, 8);
                memcpy(&four, bytes + from + 8, 4);
                if (crc32c_mask(~(uint32_t)_mm_crc32_u64(UINT32_MAX, eight)) == four)
                        return from;
        }
        return end;
}

uint64_t crc32c_short_find(const uint8_t *bytes, uint64_t from, uint64_t end) {
        if (__builtin_cpu_supports("sse4.2"))
                return find_by_instruction(bytes, from, end);
        return crc32c_table_find(bytes, from, end);
}

#else
typedef int crc32c_x86_is_empty;
#endif
