/* SPDX-License-Identifier: Apache-2.0 */
/* The crc32c instructions of ARMv8. */
#if defined(__aarch64__)

#include <arm_acle.h>
#include <string.h>
#include <sys/auxv.h>

#include "common/crc32c.h"
#include "common/crc32c_short.h"

#define CAPABILITY_CRC32 (1ul << 7) /* HWCAP_CRC32 */

__attribute__((target("+crc"))) static uint32_t by_instruction(uint32_t state, const uint8_t *bytes,
                                                               size_t size_bytes) {
        uint64_t eight;

        for (; size_bytes >= 8; bytes += 8, size_bytes -= 8) {
                memcpy(&eight, bytes, 8);
                state = __crc32cd(state, eight);
        }
        while (size_bytes-- > 0)
                state = __crc32cb(state, *bytes++);
        return state;
}

uint32_t crc32c_short(uint32_t state, const uint8_t *bytes, size_t size_bytes) {
        if (getauxval(AT_HWCAP) & CAPABILITY_CRC32)
                return by_instruction(state, bytes, size_bytes);
        return crc32c_table(state, bytes, size_bytes);
}

__attribute__((target("+crc"))) static uint64_t find_by_instruction(const uint8_t *bytes,
                                                                    uint64_t from, uint64_t end) {
        for (; from < end && end - from >= 12; from++) {
                uint64_t eight;
                uint32_t four;

                memcpy(&eight, bytes + from, 8);
                memcpy(&four, bytes + from + 8, 4);
                if (crc32c_mask(~__crc32cd(UINT32_MAX, eight)) == four)
                        return from;
        }
        return end;
}

uint64_t crc32c_short_find(const uint8_t *bytes, uint64_t from, uint64_t end) {
        if (getauxval(AT_HWCAP) & CAPABILITY_CRC32)
                return find_by_instruction(bytes, from, end);
        return crc32c_table_find(bytes, from, end);
}

#else
typedef int crc32c_arm_is_empty;
#endif
