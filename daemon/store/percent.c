/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/percent.h"

#include <ctype.h>
#include <stdbool.h>

static int digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char)tolower((unsigned char)c);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t decode(char *text, size_t size, bool plus_is_space) {
        char *out = text;

        for (size_t i = 0; i < size; i++) {
                int high = text[i] == '%' && i + 2 < size ? digit(text[i + 1]) : -1;
                int low = high >= 0 ? digit(text[i + 2]) : -1;

                if (low >= 0) {
                        *out++ = (char)(high * 16 + low);
                        i += 2;
                } else {
                        *out++ = plus_is_space && text[i] == '+' ? ' ' : text[i];
                }
        }
        if (out < text + size)
                *out = '\0';
        return (size_t)(out - text);
}

size_t percent_decode(char *text, size_t size) {
        return decode(text, size, false);
}

size_t percent_decode_form(char *text, size_t size) {
        return decode(text, size, true);
}

static bool is_unreserved(unsigned char c) {
        return isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static void encode(FILE *out, const char *text, size_t size, bool slashes_stay) {
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)text[i];

                if (is_unreserved(c) || (c == '/' && slashes_stay))
                        fputc(c, out);
                else
                        fprintf(out, "%%%02X", c);
        }
}

void percent_write(FILE *out, const char *text, size_t size) {
        encode(out, text, size, false);
}

void percent_write_path(FILE *out, const char *text, size_t size) {
        encode(out, text, size, true);
}
