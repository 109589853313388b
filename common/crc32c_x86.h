/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crc32 instruction of SSE 4.2, written out so that it may stand inside of functions that are
 * compiled for any processor, behind a question for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool crc32c_has_instruction(void) {
        return __builtin_cpu_supports("sse4.2");
}

static inline uint64_t crc32c_eight(uint64_t state, const uint8_t *bytes) {
        uint64_t eight;

        memcpy(&eight, bytes, sizeof(eight));
        __asm__("crc32q %1, %0" : "+r"(state) : "rm"(eight));
        return state;
}

static inline uint32_t crc32c_by_instruction(uint32_t state, const uint8_t *bytes,
                                             size_t size_bytes) {
        uint64_t wide = state;
        uint32_t four;
        uint16_t two;

        for (; size_bytes >= 8; bytes += 8, size_bytes -= 8)
                wide = crc32c_eight(wide, bytes);
        state = (uint32_t)wide;
        if (size_bytes & 4) {
                memcpy(&four, bytes, sizeof(four));
                __asm__("crc32l %1, %0" : "+r"(state) : "rm"(four));
                bytes += sizeof(four);
        }
        if (size_bytes & 2) {
                memcpy(&two, bytes, sizeof(two));
                __asm__("crc32w %1, %0" : "+r"(state) : "rm"(two));
                bytes += sizeof(two);
        }
        if (size_bytes & 1)
                __asm__("crc32b %1, %0" : "+r"(state) : "rm"(*bytes));
        return state;
}

/* Declared in crc32c_short.h for the others. */
static inline uint32_t crc32c_short(uint32_t state, const uint8_t *bytes, size_t size_bytes) {
        return crc32c_has_instruction() ? crc32c_by_instruction(state, bytes, size_bytes)
                                        : crc32c_table(state, bytes, size_bytes);
}
