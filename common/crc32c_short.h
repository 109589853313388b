/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C of short spans, inverted (the state inside of a CRC, not its value). One file of
 * crc32c_x86.c, crc32c_arm.c and crc32c_other.c has what the processor can do; only crc32c.c calls
 * these.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c_short(uint32_t state, const uint8_t *bytes, size_t size_bytes);

/* For processors without the instruction. */
uint32_t crc32c_table(uint32_t state, const uint8_t *bytes, size_t size_bytes);
