/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)

#include "common/crc32c.h"

static uint64_t find_by_instruction(const uint8_t *bytes, uint64_t from, uint64_t end) {
        for (; from < end && end - from >= 12; from++) {
                uint32_t four;

                memcpy(&four, bytes + from + 8, sizeof(four));
                if (crc32c_mask(~(uint32_t)crc32c_eight(UINT32_MAX, bytes + from)) == four)
                        return from;
        }
        return end;
}

uint64_t crc32c_short_find(const uint8_t *bytes, uint64_t from, uint64_t end) {
        if (crc32c_has_instruction())
                return find_by_instruction(bytes, from, end);
        return crc32c_table_find(bytes, from, end);
}

#else
typedef int crc32c_x86_is_empty;
#endif
