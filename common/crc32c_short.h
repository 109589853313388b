/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C of short spans, inverted (the state inside of a CRC, not its value). One file of
 * crc32c_x86.c, crc32c_arm.c and crc32c_other.c has what the processor can do. For crc32c.h only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* For processors without the instruction. */
uint32_t crc32c_table(uint32_t state, const uint8_t *bytes, size_t size_bytes);
uint64_t crc32c_table_find(const uint8_t *bytes, uint64_t from, uint64_t end);

/* crc32c_find_masked(): a CRC of eight bytes for each place. */
uint64_t crc32c_short_find(const uint8_t *bytes, uint64_t from, uint64_t end);

/* On the common path of every record: without a call where it is an instruction or two. */
#if defined(__x86_64__)
#include "common/crc32c_x86.h"
#else
uint32_t crc32c_short(uint32_t state, const uint8_t *bytes, size_t size_bytes);
#endif
