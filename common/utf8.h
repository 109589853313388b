/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where text is UTF-8 and where it is only bytes: names in storage may be either.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UTF8_INCOMPLETE SIZE_MAX

/*
 * How many of size > 0 bytes belong to one sequence that is well-formed as far as it goes (RFC
 * 3629: shortest form, no surrogates, at most U+10FFFF), and at least 1. It is whole if that is
 * *ret_want; else it is what one U+FFFD stands for (the Unicode Standard, 3.9, "maximal subpart").
 */
static inline size_t utf8_part(const uint8_t *bytes, size_t size, size_t *ret_want) {
        uint8_t lead = bytes[0], low = 0x80, high = 0xbf;
        size_t part = 1;

        *ret_want = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        if (lead < 0xc2 || lead > 0xf4)
                return 1;
        if (lead == 0xe0)
                low = 0xa0; /* shorter forms */
        else if (lead == 0xed)
                high = 0x9f; /* surrogates */
        else if (lead == 0xf0)
                low = 0x90;
        else if (lead == 0xf4)
                high = 0x8f; /* behind U+10FFFF */
        for (; part < *ret_want && part < size && bytes[part] >= low && bytes[part] <= high;
             part++) {
                low = 0x80;
                high = 0xbf;
        }
        return part;
}

/*
 * Size of the whole sequence at the start of size > 0 bytes; 0 if there is none; UTF8_INCOMPLETE if
 * the bytes end before that is known.
 */
static inline size_t utf8_sequence_size(const uint8_t *bytes, size_t size) {
        size_t want, part = utf8_part(bytes, size, &want);

        if (part == want)
                return want;
        return part == size && bytes[0] >= 0xc2 && bytes[0] <= 0xf4 ? UTF8_INCOMPLETE : 0;
}

/*
 * Replaces what a terminal or a reader of lines could take for a command, and what is no UTF-8
 * (also a sequence that is cut), by question marks: C0, DEL, and C1 (U+0080 to U+009F), of which
 * U+009B begins an escape sequence.
 */
static inline void utf8_make_printable(char *text, size_t size) {
        uint8_t *bytes = (uint8_t *)text;
        size_t sequence;

        for (size_t at = 0; at < size; at += sequence) {
                sequence = utf8_sequence_size(bytes + at, size - at);
                if (sequence == 0 || sequence == UTF8_INCOMPLETE || bytes[at] < ' ' ||
                    bytes[at] == 0x7f) {
                        bytes[at] = '?';
                        sequence = 1;
                } else if (bytes[at] == 0xc2 && bytes[at + 1] < 0xa0) {
                        bytes[at] = bytes[at + 1] = '?';
                }
        }
}
