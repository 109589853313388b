/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every record of every fixture against what TensorBoard's own message classes and data server make
 * of it (tests/data/README.md). One test for each tree.
 */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "common/metadata.h"
#include "common/tensor_type.h"
#include "daemon/pipeline/block_decode.h"
#include "tests/unit/daemon/pipeline/blocks.h"
#include "tests/unit/runner.h"

#define DATA "tests/data/"
#define SEGMENT_BYTES (1u << 20)

static const char *const trees[] = {
        "damage",   "huge_length", "keras",       "large_record", "lightning",
        "metadata", "mutations",   "names",       "numbers",      "odd_files",
        "rust",     "steps",       "tags",        "tensorboardx", "tensors",
        "tf2",      "torch",       "truncations", "wire",
};

/* --- Goldens: all lines of one kind of a tree, in file order --- */

static json_t *load_lines(const char *tree, const char *name) {
        char path[256];
        json_t *lines = json_array();
        char *line = NULL;
        size_t space = 0;
        FILE *file;

        snprintf(path, sizeof(path), DATA "goldens/%s/%s", tree, name);
        file = fopen(path, "re");
        ck_assert_msg(file != NULL, "cannot open %s", path);
        while (getline(&line, &space, file) > 0) {
                json_error_t error;
                json_t *parsed = json_loads(line, JSON_ALLOW_NUL, &error);

                if (!parsed) /* an unsigned integer of 64 bits, as the value of a tensor */
                        parsed = json_loads(line, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
                ck_assert_msg(parsed != NULL, "%s: %s", path, error.text);
                json_array_append_new(lines, parsed);
        }
        free(line);
        fclose(file);
        return lines;
}

static const char *text(const json_t *line, const char *member) {
        const char *value = json_string_value(json_object_get(line, member));

        return value ? value : "";
}

static int64_t integer(const json_t *value) {
        return json_is_real(value) ? (int64_t)json_real_value(value) : json_integer_value(value);
}

static uint64_t whole(const json_t *line, const char *member) {
        return (uint64_t)integer(json_object_get(line, member));
}

static double number(const json_t *value) {
        const char *word = json_string_value(value);

        if (!word)
                return json_number_value(value);
        if (strcmp(word, "NaN") == 0)
                return NAN;
        return strcmp(word, "Infinity") == 0 ? INFINITY : -INFINITY;
}

/* --- Hashes and hex --- */

static void hex_of(const uint8_t *bytes, size_t size, char *ret_hex) {
        for (size_t i = 0; i < size; i++)
                sprintf(ret_hex + 2 * i, "%02x", bytes[i]);
        ret_hex[2 * size] = '\0';
}

static void check_sha256(const uint8_t *bytes, size_t size, const char *expected,
                         const char *what) {
        uint8_t digest[SHA256_DIGEST_LENGTH];
        char hex[2 * SHA256_DIGEST_LENGTH + 1];

        SHA256(bytes, size, digest);
        hex_of(digest, sizeof(digest), hex);
        ck_assert_msg(strcmp(hex, expected) == 0, "%s: hash %s, expected %s (%zu bytes)", what, hex,
                      expected, size);
}

/* Bits as the goldens have them: most significant digit first. */
static void check_bits(uint64_t bits, const char *expected, const char *what) {
        char hex[24];

        snprintf(hex, sizeof(hex), "%0*llx", (int)strlen(expected), (unsigned long long)bits);
        ck_assert_msg(strcmp(hex, expected) == 0, "%s: bits %s, expected %s", what, hex, expected);
}

/*
 * A text of the goldens: bytes that are no UTF-8 are U+FFFD there, long ones are told by size and
 * hash.
 */
static void check_text(struct extent_string got, const json_t *expected, const char *what) {
        const char *wanted = expected ? json_string_value(expected) : "";
        size_t size = expected ? json_string_length(expected) : 0;

        if (json_is_object(expected)) {
                ck_assert_uint_eq(got.size, whole(expected, "bytes"));
                check_sha256(got.bytes, got.size, text(expected, "sha256"), what);
        } else if (!strstr(wanted, "\xef\xbf\xbd")) {
                ck_assert_msg(got.size == size && memcmp(got.bytes, wanted, size) == 0,
                              "%s: '%.*s', expected '%s'", what, (int)got.size,
                              (const char *)got.bytes, wanted);
        }
}

/* --- Values --- */

static const struct {
        const char *name;
        uint8_t dtype;
} dtypes[] = {
        { "DT_FLOAT", 1 },   { "DT_DOUBLE", 2 },      { "DT_INT32", 3 },   { "DT_UINT8", 4 },
        { "DT_INT16", 5 },   { "DT_INT8", 6 },        { "DT_STRING", 7 },  { "DT_COMPLEX64", 8 },
        { "DT_INT64", 9 },   { "DT_BOOL", 10 },       { "DT_QINT8", 11 },  { "DT_QUINT8", 12 },
        { "DT_QINT32", 13 }, { "DT_BFLOAT16", 14 },   { "DT_QINT16", 15 }, { "DT_QUINT16", 16 },
        { "DT_UINT16", 17 }, { "DT_COMPLEX128", 18 }, { "DT_HALF", 19 },   { "DT_UINT32", 22 },
        { "DT_UINT64", 23 },
};

static uint8_t dtype_of(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
                if (strcmp(dtypes[i].name, name) == 0)
                        return dtypes[i].dtype;
        return (uint8_t)atoi(name + strlen("DT_"));
}

/* The elements as the goldens hash them: strings each with its size before it. */
static struct bytes canonical_elements(const struct extent_payload_view *payload) {
        struct bytes out = { malloc(payload->elements_size + payload->element_count * 8 + 1), 0 };

        if (payload->element_bytes) {
                memcpy(out.at, payload->elements, payload->elements_size);
                out.size = payload->elements_size;
        }
        for (uint32_t i = 0; payload->end_offset && i < payload->element_count; i++) {
                struct extent_string string = extent_payload_string(payload, i);

                memcpy(out.at + out.size, &string.size, 8);
                memcpy(out.at + out.size + 8, string.bytes, string.size);
                out.size += 8 + string.size;
        }
        return out;
}

static uint64_t only_element(const struct extent_payload_view *payload) {
        uint64_t bits = 0;

        ck_assert_uint_eq(payload->element_count, 1);
        ck_assert_uint_le(payload->element_bytes, 8);
        memcpy(&bits, payload->elements, payload->element_bytes);
        return bits;
}

/* A signalling NaN comes out of Python as a quiet one; here it stays as it was written. */
#define QUIET 0x00400000u

static void check_scalar(const struct extent_record *record,
                         const struct extent_payload_view *payload, const json_t *line,
                         const char *what) {
        float expected = (float)number(json_object_get(line, "value"));
        float got = (float)record->value;
        uint32_t bits;

        memcpy(&bits, &got, sizeof(bits));
        if (isnan(got))
                bits = QUIET |
                       (uint32_t)(record->kind == EXTENT_KIND_SCALAR ? record->payload_offset
                                                                     : only_element(payload));
        else if (record->kind == EXTENT_KIND_SCALAR)
                ck_assert_uint_eq(record->payload_offset, bits);
        ck_assert_msg(isnan(got) == isnan(expected), "%s: %g", what, record->value);
        check_bits(bits, text(line, "bits"), what);
}

static void check_shape(const struct extent_payload_view *payload, const json_t *shape,
                        const char *what) {
        ck_assert_msg(payload->rank == json_array_size(shape), "%s: rank %u", what, payload->rank);
        for (size_t i = 0; i < payload->rank; i++)
                ck_assert_int_eq(payload->dimension[i], integer(json_array_get(shape, i)));
}

static void check_tensor(const struct extent_record *record,
                         const struct extent_payload_view *payload, const json_t *line,
                         const char *what) {
        CLEANUP(freep) uint8_t *freed = NULL;
        struct bytes elements;

        ck_assert_msg(record->dtype == dtype_of(text(line, "dtype")), "%s: dtype %u", what,
                      record->dtype);
        if (payload->rank_known)
                check_shape(payload, json_object_get(line, "shape"), what);
        else
                ck_assert_msg(json_is_true(json_object_get(line, "unknown_rank")), "%s: rank",
                              what);
        if (record->dtype == DT_RESOURCE)
                return; /* malformed in the goldens, carried here: decode/test_event */
        ck_assert_msg(payload->malformed == json_is_true(json_object_get(line, "malformed")),
                      "%s: malformed", what);
        if (payload->malformed)
                return;
        ck_assert_uint_eq(payload->element_count, whole(line, "elements"));
        if (json_object_get(line, "bits")) {
                check_bits(only_element(payload), text(line, "bits"), what);
                return;
        }
        elements = canonical_elements(payload);
        freed = elements.at;
        check_sha256(elements.at, elements.size, text(line, "sha256"), what);
}

/* Of an audio tensor the second column is labels: the data server leaves it out. */
static void check_blobs(const struct extent_payload_view *payload, const json_t *line,
                        const char *what) {
        const json_t *blobs = json_object_get(line, "blobs");
        uint32_t columns = payload->rank == 2 ? 2 : 1;

        ck_assert_uint_eq(payload->element_count, columns * json_array_size(blobs));
        for (uint32_t i = 0; i < json_array_size(blobs); i++) {
                struct extent_string got = extent_payload_string(payload, i * columns);
                const json_t *blob = json_array_get(blobs, i);

                ck_assert_uint_eq(got.size, whole(blob, "bytes"));
                check_sha256(got.bytes, got.size, text(blob, "sha256"), what);
        }
}

/* An external payload is decoded again, alone. */
static void with_payload(const struct block_input *input, const struct extent_record *record,
                         const json_t *line, const char *what) {
        struct block_input again = *input;
        struct extent_payload_view payload;
        struct extent_view view;
        uint64_t size;
        void *memory;

        again.begin = (struct block_position){ record->source_offset, record->value_index };
        ck_assert_int_eq(block_decode_value(&again, &memory, &size), 0);
        ck_assert_int_eq(extent_view_init(&view, memory, size), 0);
        ck_assert(extent_view_is_intact(&view));
        ck_assert_uint_eq(view.record_count, 1);
        ck_assert_int_eq(extent_view_payload(&view, extent_view_record(&view, 0), &payload), 0);
        ck_assert_uint_eq(view.records[0].payload_size, record->payload_size);
        if (strcmp(text(line, "kind"), "tensor") == 0)
                check_tensor(record, &payload, line, what);
        else
                check_blobs(&payload, line, what);
        free(memory);
}

static void check_value(const struct block_input *input, const struct extent_view *view,
                        const struct extent_record *record, const json_t *line, const char *what) {
        const char *kind = text(line, "kind");
        struct extent_payload_view payload = { 0 };
        int r = extent_view_payload(view, record, &payload);

        if (record->flags & EXTENT_RECORD_EXTERNAL) {
                with_payload(input, record, line, what);
                return;
        }
        ck_assert_msg(r == 0 || record->kind == EXTENT_KIND_SCALAR, "%s: no payload", what);
        if (strcmp(kind, "scalar") == 0)
                check_scalar(record, &payload, line, what);
        else if (strcmp(kind, "tensor") == 0)
                check_tensor(record, &payload, line, what);
        else
                check_blobs(&payload, line, what);
}

/* --- Series --- */

struct known_series {
        char *run;
        char *tag; /* with its size: tags hold anything */
        uint64_t tag_size;
        struct metadata metadata;
        void *kept[32]; /* the strings of metadata, old ones too */
        size_t kept_count;
};

struct known {
        struct known_series *list;
        size_t count;
};

static struct known_series *find_known(struct known *known, const char *run,
                                       struct extent_string tag) {
        for (size_t i = 0; i < known->count; i++)
                if (strcmp(known->list[i].run, run) == 0 && known->list[i].tag_size == tag.size &&
                    memcmp(known->list[i].tag, tag.bytes, tag.size) == 0)
                        return &known->list[i];
        known->list = realloc(known->list, (known->count + 1) * sizeof(*known->list));
        known->list[known->count] = (struct known_series){
                .run = strdup(run),
                .tag = memcpy(malloc(tag.size + 1), tag.bytes, tag.size),
                .tag_size = tag.size,
        };
        return &known->list[known->count++];
}

static void known_free(struct known *known) {
        for (size_t i = 0; i < known->count; i++) {
                free(known->list[i].run);
                free(known->list[i].tag);
                for (size_t k = 0; k < known->list[i].kept_count; k++)
                        free(known->list[i].kept[k]);
        }
        free(known->list);
}

static struct extent_string kept(struct known_series *series, struct extent_string string) {
        uint8_t *copy = memcpy(malloc(string.size + 1), string.bytes, string.size);

        ck_assert_uint_lt(series->kept_count, sizeof(series->kept) / sizeof(series->kept[0]));
        series->kept[series->kept_count++] = copy;
        return (struct extent_string){ copy, string.size };
}

static void learn(struct known *known, const char *run, const struct extent_view *view) {
        for (uint32_t i = 0; i < view->series_count; i++) {
                struct known_series *series = find_known(known, run,
                                                         extent_view_tag(view, &view->series[i]));

                if (!metadata_update(&series->metadata, view, &view->series[i]))
                        continue;
                series->metadata.plugin = kept(series, series->metadata.plugin);
                series->metadata.content = kept(series, series->metadata.content);
                series->metadata.display_name = kept(series, series->metadata.display_name);
                series->metadata.description = kept(series, series->metadata.description);
        }
}

static const char *const class_names[] = { "", "SCALAR", "TENSOR", "BLOB_SEQUENCE" };

static void check_series(const struct metadata *metadata, const json_t *line, const char *what) {
        char hex[8193];

        if (json_object_get(line, "dropped"))
                return; /* a class that only a later value says counts here */
        ck_assert_msg(strcmp(class_names[metadata->data_class], text(line, "data_class")) == 0,
                      "%s: class %u", what, metadata->data_class);
        check_text(metadata->plugin, json_object_get(line, "plugin"), what);
        if (json_is_object(json_object_get(line, "content"))) {
                check_sha256(metadata->content.bytes, metadata->content.size,
                             text(json_object_get(line, "content"), "sha256"), what);
        } else {
                ck_assert_uint_le(metadata->content.size, 4096);
                hex_of(metadata->content.bytes, metadata->content.size, hex);
                ck_assert_str_eq(hex, text(line, "content"));
        }
        if (json_object_get(line, "display_name"))
                check_text(metadata->display_name, json_object_get(line, "display_name"), what);
        if (json_object_get(line, "description"))
                check_text(metadata->description, json_object_get(line, "description"), what);
}

/* --- A file --- */

/* Where the next lines of the goldens are. */
struct goldens {
        json_t *wire, *raw;
        size_t at_wire, at_raw;
};

static bool is_of_file(const json_t *line, const char *file) {
        return line && strcmp(text(line, "file"), file) == 0;
}

static void check_record(const struct block_input *input, const struct extent_view *view,
                         const struct extent_record *record, const json_t *line,
                         struct known *known) {
        struct extent_string tag = extent_view_tag(view, extent_view_series_of(view, record));
        double wall_time = number(json_object_get(line, "wall_time"));
        char what[300];

        snprintf(what, sizeof(what), "%s at %llu, %u", text(line, "file"),
                 (unsigned long long)record->source_offset, record->value_index);
        ck_assert_msg(record->source_offset == whole(line, "offset") &&
                              record->value_index == whole(line, "index"),
                      "%s: expected %llu, %llu", what, (unsigned long long)whole(line, "offset"),
                      (unsigned long long)whole(line, "index"));
        ck_assert_uint_eq(record->source_size, whole(line, "size"));
        ck_assert_int_eq(record->step, integer(json_object_get(line, "step")));
        ck_assert_msg(record->wall_time == wall_time ||
                              (isnan(wall_time) && isnan(record->wall_time)),
                      "%s: wall time", what);
        check_text(tag, json_object_get(line, "tag"), what);
        if (!json_object_get(line, "dropped"))
                check_value(input, view, record, line, what);
        check_series(&find_known(known, text(line, "run"), tag)->metadata, line, what);
}

static uint8_t mark_of(const json_t *line) {
        static const uint8_t sessions[] = { 0, EXTENT_MARK_SESSION_START, EXTENT_MARK_SESSION_STOP,
                                            EXTENT_MARK_SESSION_CHECKPOINT };
        uint64_t status = whole(line, "status");

        if (strcmp(text(line, "kind"), "file_version") == 0)
                return EXTENT_MARK_FILE_VERSION;
        return strcmp(text(line, "kind"), "session_log") == 0 && status < ARRAY_SIZE(sessions)
                       ? sessions[status]
                       : 0;
}

static void check_mark(const struct extent_record *record, const char *file, const json_t *raw,
                       size_t at) {
        while (is_of_file(json_array_get(raw, at), file) &&
               (whole(json_array_get(raw, at), "offset") != record->source_offset ||
                !mark_of(json_array_get(raw, at))))
                at++;
        ck_assert_msg(is_of_file(json_array_get(raw, at), file), "%s: a mark at %llu that is none",
                      file, (unsigned long long)record->source_offset);
        ck_assert_uint_eq(record->dtype, mark_of(json_array_get(raw, at)));
        ck_assert_int_eq(record->step, integer(json_object_get(json_array_get(raw, at), "step")));
}

/* Cases whose bytes say more than that a length is wrong; what they are is in their making. */
static const struct {
        const char *run;
        enum damage reason;
} special[] = {
        { "zeros_between", DAMAGE_ZEROS },
        { "zeros_between_page", DAMAGE_ZEROS },
        { "gzip_named_plain", DAMAGE_GZIP },
        { "zlib_stream", DAMAGE_ZLIB },
};

static enum damage length_damage_of(const json_t *line) {
        for (size_t i = 0; i < ARRAY_SIZE(special); i++)
                if (strcmp(text(line, "run"), special[i].run) == 0)
                        return special[i].reason;
        return DAMAGE_LENGTH_CRC;
}

/* The reason for which a line of the goldens is damage; DAMAGE_NONE: none that is counted. */
static enum damage damage_of(const json_t *line) {
        if (strcmp(text(line, "kind"), "undecodable") == 0)
                return DAMAGE_NOT_AN_EVENT;
        if (strcmp(text(line, "state"), "data_crc") == 0)
                return DAMAGE_DATA_CRC;
        return strcmp(text(line, "state"), "length_crc") == 0 ? length_damage_of(line)
                                                              : DAMAGE_NONE;
}

/* All places of a file: those of its blocks, and what it ends with. */
static struct damaged_place *places_of(const struct blocks *blocks, size_t *ret_count) {
        struct damaged_place *places = NULL;
        size_t count = 0;

        for (size_t i = 0; i < blocks->count; i++) {
                const struct block_output *output = &blocks->list[i].output;

                ck_assert_uint_le(output->damage_count, BLOCK_DAMAGE_MOST);
                places = realloc(places, (count + output->damage_count + 1) * sizeof(places[0]));
                memcpy(places + count, output->damage, output->damage_count * sizeof(places[0]));
                count += output->damage_count;
                if (output->tail.reason)
                        places[count++] = output->tail;
        }
        *ret_count = count;
        return places;
}

static void check_place(const struct damaged_place *place, const json_t *line, const char *file) {
        ck_assert_msg(place->offset == whole(line, "offset") &&
                              place->size_bytes == whole(line, "size") &&
                              place->reason == damage_of(line),
                      "%s: %llu damaged bytes at %llu (%s), expected %llu at %llu (%s)", file,
                      (unsigned long long)place->size_bytes, (unsigned long long)place->offset,
                      damage_name(place->reason), (unsigned long long)whole(line, "size"),
                      (unsigned long long)whole(line, "offset"), damage_name(damage_of(line)));
}

static void check_damage(const struct blocks *blocks, const char *file, struct goldens *goldens,
                         size_t *ret_marks) {
        size_t count, next = 0;
        CLEANUP(freep) struct damaged_place *places = places_of(blocks, &count);

        *ret_marks = 0;
        for (; is_of_file(json_array_get(goldens->raw, goldens->at_raw), file); goldens->at_raw++) {
                const json_t *line = json_array_get(goldens->raw, goldens->at_raw);

                *ret_marks += mark_of(line) != 0;
                if (damage_of(line) == DAMAGE_NONE)
                        continue;
                ck_assert_msg(next < count, "%s: damage at %llu not reported", file,
                              (unsigned long long)whole(line, "offset"));
                check_place(&places[next++], line, file);
        }
        ck_assert_msg(next == count, "%s: more damage than expected", file);
}

static void check_file(const char *tree, const char *file, const char *run, struct goldens *goldens,
                       struct known *known) {
        char path[512];
        struct block_file identity = blocks_file(file, run);
        struct block_input input;
        struct blocks blocks;
        struct bytes bytes;
        size_t marks = 0, expected_marks, at_raw = goldens->at_raw;

        snprintf(path, sizeof(path), DATA "fixtures/%s/%s", tree, file);
        bytes = bytes_of_file(path);
        input = blocks_input(&bytes, &identity, SEGMENT_BYTES);
        blocks = blocks_decode(&input);
        for (size_t i = 0; i < blocks.count; i++) {
                struct extent_view view;

                if (!blocks.list[i].image)
                        continue;
                ck_assert_int_eq(extent_view_init(&view, blocks.list[i].image,
                                                  blocks.list[i].output.extent_bytes),
                                 0);
                ck_assert(extent_view_is_intact(&view));
                learn(known, run, &view);
                for (uint32_t j = 0; j < view.record_count; j++) {
                        const struct extent_record *record = extent_view_record(&view, j);
                        const json_t *line = json_array_get(goldens->wire, goldens->at_wire);

                        if (record->kind == EXTENT_KIND_MARK) {
                                check_mark(record, file, goldens->raw, at_raw);
                                marks++;
                                continue;
                        }
                        ck_assert_msg(is_of_file(line, file),
                                      "%s: a record at %llu that is not expected", file,
                                      (unsigned long long)record->source_offset);
                        check_record(&input, &view, record, line, known);
                        goldens->at_wire++;
                }
        }
        ck_assert_msg(!is_of_file(json_array_get(goldens->wire, goldens->at_wire), file),
                      "%s: a record at %llu is missing", file,
                      (unsigned long long)whole(json_array_get(goldens->wire, goldens->at_wire),
                                                "offset"));
        check_damage(&blocks, file, goldens, &expected_marks);
        ck_assert_uint_eq(marks, expected_marks);
        blocks_free(&blocks);
        free(bytes.at);
}

/* The lines that are no records of a series stand in the wire view of none. */
START_TEST(tree_is_as_in_the_goldens) {
        const char *tree = trees[_i];
        struct goldens goldens = { load_lines(tree, "records.wire.jsonl"),
                                   load_lines(tree, "records.raw.jsonl"), 0, 0 };
        struct known known = { NULL, 0 };

        /* Damage and events without values are in both views; only values remain. */
        for (size_t i = json_array_size(goldens.wire); i-- > 0;)
                if (!json_object_get(json_array_get(goldens.wire, i), "tag"))
                        json_array_remove(goldens.wire, i);
        while (goldens.at_raw < json_array_size(goldens.raw)) {
                const json_t *line = json_array_get(goldens.raw, goldens.at_raw);

                check_file(tree, text(line, "file"), text(line, "run"), &goldens, &known);
        }
        ck_assert_uint_eq(goldens.at_wire, json_array_size(goldens.wire));
        json_decref(goldens.wire);
        json_decref(goldens.raw);
        known_free(&known);
}
END_TEST

int main(void) {
        TCase *tests = tcase_create("goldens");

        tcase_set_timeout(tests, 60);
        tcase_add_loop_test(tests, tree_is_as_in_the_goldens, 0, ARRAY_SIZE(trees));
        return runner_run_case("pipeline/goldens", tests);
}
