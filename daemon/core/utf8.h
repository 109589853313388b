/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where text is UTF-8 and where it is only bytes: names in storage may be either.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UTF8_INCOMPLETE SIZE_MAX

/*
 * Size of the well-formed sequence (RFC 3629: shortest form, no surrogates, at most U+10FFFF) at the start of size > 0 bytes;
 * 0 if there is none; UTF8_INCOMPLETE if the bytes end before that is known.
 */
static inline size_t utf8_sequence_size(const uint8_t *bytes, size_t size) {
        uint8_t lead = bytes[0], low = 0x80, high = 0xbf;
        size_t want;

        if (lead < 0x80)
                return 1;
        if (lead < 0xc2 || lead > 0xf4)
                return 0;
        want = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        if (lead == 0xe0)
                low = 0xa0; /* shorter forms */
        else if (lead == 0xed)
                high = 0x9f; /* surrogates */
        else if (lead == 0xf0)
                low = 0x90;
        else if (lead == 0xf4)
                high = 0x8f; /* behind U+10FFFF */
        for (size_t i = 1; i < want; i++) {
                if (i == size)
                        return UTF8_INCOMPLETE;
                if (bytes[i] < low || bytes[i] > high)
                        return 0;
                low = 0x80;
                high = 0xbf;
        }
        return want;
}
