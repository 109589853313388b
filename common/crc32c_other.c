/* SPDX-License-Identifier: Apache-2.0 */
/* Processors whose instructions we do not use. */
#if !defined(__x86_64__) && !defined(__aarch64__)

#include "common/crc32c_short.h"

uint32_t crc32c_short(uint32_t state, const uint8_t *bytes, size_t size_bytes) {
        return crc32c_table(state, bytes, size_bytes);
}

uint64_t crc32c_short_find(const uint8_t *bytes, uint64_t from, uint64_t end) {
        return crc32c_table_find(bytes, from, end);
}

#else
typedef int crc32c_other_is_empty;
#endif
