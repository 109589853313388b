/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/name.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "common/utf8.h"

/* Bytes of the character at the front of text, 0 if there is none that can be shown. */
static size_t character_size(const char *text, size_t size) {
        size_t length = *text ? utf8_sequence_size((const uint8_t *)text, size) : 0;

        return length == UTF8_INCOMPLETE ? 0 : length;
}

/*
 * The name as it is shown: each byte that belongs to no character becomes U+FFFD. NULL: no memory.
 */
static json_t *shown(const char *bytes, size_t size) {
        CLEANUP(freep) char *text = malloc(3 * size + 1);
        size_t length = 0;

        if (!text)
                return NULL;
        for (size_t at = 0, step; at < size; at += step) {
                step = character_size(bytes + at, size - at);
                if (step) {
                        memcpy(text + length, bytes + at, step);
                        length += step;
                } else {
                        memcpy(text + length, "\xEF\xBF\xBD", 3);
                        length += 3;
                        step = 1;
                }
        }
        return json_stringn(text, length);
}

json_t *name_hex(const void *bytes, size_t size) {
        static const char digits[] = "0123456789abcdef";
        CLEANUP(freep) char *text = malloc(2 * size + 1);

        if (!text)
                return NULL;
        for (size_t i = 0; i < size; i++) {
                text[2 * i] = digits[((const uint8_t *)bytes)[i] >> 4];
                text[2 * i + 1] = digits[((const uint8_t *)bytes)[i] & 15];
        }
        return json_stringn_nocheck(text, 2 * size);
}

int name_set(json_t *object, const char *key, const char *bytes, size_t size) {
        json_t *plain = size && memchr(bytes, 0, size) ? NULL
                                                       : json_stringn(size ? bytes : "", size);
        char hex_key[64];

        if (plain)
                return json_object_set_new(object, key, plain) ? -ENOMEM : 0;
        snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
        if (json_object_set_new(object, key, shown(bytes, size)) ||
            json_object_set_new(object, hex_key, name_hex(bytes, size)))
                return -ENOMEM;
        return 0;
}

static int digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *name_from_hex(const char *hex, size_t hex_size, size_t *ret_size) {
        CLEANUP(freep) char *bytes = hex_size % 2 ? NULL : malloc(hex_size / 2 + 1);

        if (!bytes)
                return NULL;
        for (size_t i = 0; i < hex_size / 2; i++) {
                int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);

                if (high < 0 || low < 0)
                        return NULL;
                bytes[i] = (char)(high << 4 | low);
        }
        bytes[hex_size / 2] = 0;
        *ret_size = hex_size / 2;
        return steal_pointer(&bytes);
}

json_t *name_id(uint64_t id) {
        char text[17];

        snprintf(text, sizeof(text), "%016" PRIx64, id);
        return json_string(text);
}
