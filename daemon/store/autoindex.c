/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three steps: bytes become UTF-8 (clean_*), the array is cut into its elements (frame), and
 * jansson parses each element. Cutting needs to know only where strings and nesting are; whether an
 * element is right is jansson's to say.
 */
#include "daemon/store/autoindex.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base.h"
#include "common/utf8.h"

enum place {
        PLACE_BEFORE,  /* the array */
        PLACE_FIRST,   /* element, or the array's end */
        PLACE_ELEMENT, /* inside of one, or before it behind a comma */
        PLACE_AFTER,   /* the array */
};

void autoindex_init(struct autoindex *index,
                    bool (*on_entry)(void *userdata, const struct autoindex_entry *entry),
                    void *userdata) {
        *index = (struct autoindex){ .on_entry = on_entry,
                                     .userdata = userdata,
                                     .place = PLACE_BEFORE };
}

void autoindex_deinit(struct autoindex *index) {
        free(index->text);
        *index = (struct autoindex){ 0 };
}

/* ---- Private code points ---- */

/* F4 8F BC 80 ... F4 8F BF BF */
static bool is_private(const uint8_t *sequence, size_t size) {
        return size == 4 && sequence[0] == 0xf4 && sequence[1] == 0x8f && sequence[2] >= 0xbc;
}

static void put_private(uint8_t byte, uint8_t ret_sequence[4]) {
        ret_sequence[0] = 0xf4;
        ret_sequence[1] = 0x8f;
        ret_sequence[2] = (uint8_t)(0xbc + (byte >> 6));
        ret_sequence[3] = (uint8_t)(0x80 | (byte & 0x3f));
}

/* Turns private code points into the bytes they stand for, in place; returns the new size. */
static size_t restore_bytes(char *text, size_t size) {
        const uint8_t *in = (uint8_t *)text;
        size_t out = 0;

        for (size_t at = 0; at < size;) {
                if (is_private(in + at, min_u64(size - at, 4))) {
                        text[out++] = (char)((in[at + 2] - 0xbc) << 6 | (in[at + 3] & 0x3f));
                        at += 4;
                } else {
                        text[out++] = text[at++];
                }
        }
        return out;
}

/* ---- Entries ---- */

static int64_t read_mtime(const json_t *value) {
        time_t seconds;

        if (json_is_number(value)) {
                double number = json_number_value(value);

                return number > -9e9 && number < 9e9 ? (int64_t)floor(number * 1e3) * 1000000
                                                     : INT64_MIN;
        }
        if (!json_is_string(value))
                return INT64_MIN;
        seconds = curl_getdate(json_string_value(value), NULL);
        return seconds == -1 || seconds > INT64_C(9000000000) || seconds < -INT64_C(9000000000)
                       ? INT64_MIN
                       : (int64_t)seconds * 1000000000;
}

static uint64_t read_size(const json_t *value) {
        return json_is_integer(value) && json_integer_value(value) >= 0
                       ? (uint64_t)json_integer_value(value)
                       : UINT64_MAX;
}

/*
 * An object that is neither a file nor a directory, or has a name that no file can have, is passed
 * over.
 */
static int tell_entry(struct autoindex *index, const json_t *object) {
        const json_t *name = json_object_get(object, "name"),
                     *type = json_object_get(object, "type");
        const char *type_name = json_is_string(type) ? json_string_value(type) : "file";
        CLEANUP(freep) char *copy = NULL;
        struct autoindex_entry entry = { 0 };
        size_t size;

        if (!json_is_object(object) || !json_is_string(name) || (type && !json_is_string(type)))
                return AUTOINDEX_E_DAMAGED;
        entry.is_directory = strcmp(type_name, "directory") == 0;
        if (!entry.is_directory && strcmp(type_name, "file") != 0)
                return 0;
        size = json_string_length(name);
        copy = malloc(size + 1);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, json_string_value(name), size);
        size = restore_bytes(copy, size);
        copy[size] = '\0';
        if (memchr(copy, '\0', size))
                return 0;
        entry.name = copy;
        entry.name_size = size;
        entry.size_bytes = read_size(json_object_get(object, "size"));
        entry.mtime_ns = read_mtime(json_object_get(object, "mtime"));
        index->stopped = !index->on_entry(index->userdata, &entry);
        return 0;
}

static int end_element(struct autoindex *index) {
        json_t *object = json_loadb(index->text, index->text_size, JSON_ALLOW_NUL, NULL);
        int r = object ? tell_entry(index, object) : AUTOINDEX_E_DAMAGED;

        json_decref(object);
        index->text_size = 0;
        return r;
}

/* ---- Elements ---- */

static int gather(struct autoindex *index, const uint8_t *bytes, size_t size) {
        if (index->text_size + size > AUTOINDEX_ENTRY_MOST_BYTES)
                return AUTOINDEX_E_TOO_LARGE;
        if (index->text_space - index->text_size < size) {
                size_t space = max_u64(index->text_space * 2, 1024);
                char *text = realloc(index->text, space);

                if (!text)
                        return -ENOMEM;
                index->text = text;
                index->text_space = space;
        }
        memcpy(index->text + index->text_size, bytes, size);
        index->text_size += size;
        return 0;
}

static bool is_space(uint8_t c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Outside of the elements. *ret_inside: the character belongs to an element. */
static int frame_outside(struct autoindex *index, uint8_t c, bool *ret_inside) {
        if (is_space(c))
                return 0;
        if (index->place == PLACE_BEFORE) {
                if (c != '[')
                        return AUTOINDEX_E_NO_LISTING;
                index->place = PLACE_FIRST;
                return 0;
        }
        if (index->place == PLACE_AFTER)
                return AUTOINDEX_E_DAMAGED;
        if (c == ']') {
                index->place = PLACE_AFTER;
                return 0;
        }
        index->place = PLACE_ELEMENT;
        *ret_inside = true;
        return 0;
}

static void frame_string(struct autoindex *index, uint8_t c) {
        if (index->escaped)
                index->escaped = false;
        else if (c == '\\')
                index->escaped = true;
        else if (c == '"')
                index->in_string = false;
}

/* One character, all of its bytes. */
static int frame(struct autoindex *index, const uint8_t *character, size_t size) {
        bool inside = index->place == PLACE_ELEMENT;
        uint8_t c = character[0];
        int r;

        if (!inside) {
                r = frame_outside(index, c, &inside);
                if (r || !inside)
                        return r;
        }
        if (index->in_string) {
                frame_string(index, c);
        } else if (index->depth == 0 && (c == ',' || c == ']')) {
                index->place = c == ',' ? PLACE_ELEMENT : PLACE_AFTER;
                return end_element(index);
        } else if (c == '"') {
                index->in_string = true;
        } else if (c == '{' || c == '[') {
                index->depth++;
        } else if (c == '}' || c == ']') {
                if (index->depth-- == 0)
                        return AUTOINDEX_E_DAMAGED;
        }
        return gather(index, character, size);
}

/* ---- Characters ---- */

static int frame_private(struct autoindex *index, const uint8_t *bytes, size_t size) {
        int r = 0;

        for (size_t i = 0; i < size && r == 0; i++) {
                uint8_t sequence[4];

                put_private(bytes[i], sequence);
                r = frame(index, sequence, sizeof(sequence));
        }
        return r;
}

/*
 * Does the text go on as a pattern in which an x stands for a hexadecimal digit? 0 if not, else the
 * pattern's size, or UTF8_INCOMPLETE.
 */
static size_t match(const uint8_t *bytes, size_t size, const char *pattern) {
        for (size_t i = 0; pattern[i]; i++) {
                if (i == size)
                        return UTF8_INCOMPLETE;
                if (pattern[i] == 'x' ? !isxdigit(bytes[i]) : tolower(bytes[i]) != pattern[i])
                        return 0;
        }
        return strlen(pattern);
}

static unsigned hex_value(uint8_t c) {
        return (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
}

/*
 * Text that begins with a backslash: an escape of two characters, or a whole escaped code point of
 * the private range, which jansson would make look like one of ours. 0: handled as *ret_size bytes;
 * 1: incomplete.
 */
static int take_escape(struct autoindex *index, const uint8_t *bytes, size_t size,
                       size_t *ret_size) {
        size_t genuine = match(bytes, size, "\\udbff\\udfxx"), sequence;
        int r;

        if (genuine == UTF8_INCOMPLETE)
                return -EAGAIN;
        if (genuine) {
                uint8_t code_point[4];

                put_private((uint8_t)(hex_value(bytes[10]) << 4 | hex_value(bytes[11])),
                            code_point);
                *ret_size = genuine;
                return frame_private(index, code_point, sizeof(code_point));
        }
        if (size < 2)
                return -EAGAIN;
        sequence = utf8_sequence_size(bytes + 1, size - 1);
        r = frame(index, bytes, 1);
        *ret_size = 1;
        if (r == 0 && sequence == 1) {
                r = frame(index, bytes + 1, 1);
                *ret_size = 2;
        }
        return r;
}

/* One character of what came from the server. -EAGAIN: it is not all there. */
static int take_character(struct autoindex *index, const uint8_t *bytes, size_t size,
                          size_t *ret_size) {
        size_t sequence;

        if (bytes[0] == '\\')
                return take_escape(index, bytes, size, ret_size);
        sequence = utf8_sequence_size(bytes, size);
        if (sequence == UTF8_INCOMPLETE)
                return -EAGAIN;
        *ret_size = sequence ? sequence : 1;
        if (sequence == 0 || is_private(bytes, sequence))
                return frame_private(index, bytes, *ret_size);
        return frame(index, bytes, sequence);
}

static int take_all(struct autoindex *index, const uint8_t *bytes, size_t size, size_t *ret_taken) {
        size_t taken = 0;
        int r = 0;

        while (taken < size && r == 0 && !index->stopped) {
                size_t step = 0;

                r = take_character(index, bytes + taken, size - taken, &step);
                taken += r == -EAGAIN ? 0 : step;
        }
        *ret_taken = taken;
        return r == -EAGAIN ? 0 : r;
}

/* Finishes the character that the last piece ended in, one byte at a time. */
static int take_held(struct autoindex *index, const uint8_t **bytes, size_t *size) {
        while (index->held_size > 0 && *size > 0) {
                size_t taken;
                int r;

                MUST(index->held_size < sizeof(index->held));
                index->held[index->held_size++] = *(*bytes)++;
                (*size)--;
                r = take_all(index, index->held, index->held_size, &taken);
                if (r)
                        return r;
                memmove(index->held, index->held + taken, index->held_size - taken);
                index->held_size -= taken;
        }
        return 0;
}

int autoindex_feed(struct autoindex *index, const uint8_t *bytes, size_t size) {
        size_t taken;
        int r = take_held(index, &bytes, &size);

        if (r || index->stopped || size == 0)
                return r;
        r = take_all(index, bytes, size, &taken);
        if (r || index->stopped)
                return r;
        memcpy(index->held, bytes + taken, size - taken);
        index->held_size = size - taken;
        return 0;
}

int autoindex_finish(struct autoindex *index) {
        if (index->stopped)
                return 0;
        return index->place == PLACE_AFTER && index->held_size == 0 ? 0 : AUTOINDEX_E_DAMAGED;
}
