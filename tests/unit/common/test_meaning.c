/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TensorBoard's data server takes for a value of each class, and the improvements of
 * docs/TENSORBOARD.md. All fixtures, through a daemon: tests/integration/test_goldens.py.
 */
#include "common/meaning.h"

#include <math.h>
#include <string.h>

#include "common/base.h"
#include "common/tensor_type.h"
#include "tests/unit/runner.h"

static struct extent_string text(const char *string) {
        return (struct extent_string){ (const uint8_t *)string, strlen(string) };
}

/* ---- Blobs ----------------------------------------------------------------------------------- */

static const struct strings_case {
        const char *plugin;
        uint8_t rank;
        int64_t dimension[3];
        uint32_t count;
        bool malformed, repeated;
        uint8_t blob_step; /* 0: it stays a tensor */
        uint32_t blob_count;
} strings_cases[] = {
        { "images", 1, { 4 }, 4, false, false, 1, 4 },
        { "any", 1, { 0 }, 0, false, false, 1, 0 },
        { "any", 1, { 3 }, 3, false, true, 1, 1 }, /* one was written */
        { "any", 1, { 3 }, 2, true, false, 1, 2 }, /* what is there */
        { "images", 2, { 2, 2 }, 4, false, false, 0, 0 },
        { "audio", 2, { 3, 2 }, 6, false, false, 2, 3 },
        { "audio", 2, { 3, 2 }, 5, true, false, 2, 3 },
        { "audio", 2, { 2, 3 }, 6, false, false, 0, 0 },
        { "audio", 1, { 2 }, 2, false, false, 1, 2 },
        { "audio", 3, { 1, 2, 1 }, 2, false, false, 0, 0 },
        { "graph_run_metadata", 0, { 0 }, 1, false, false, 1, 1 },
        { "graph_run_metadata_graph", 0, { 0 }, 1, false, false, 1, 1 },
        { "graph_keras_model", 0, { 0 }, 1, false, false, 1, 1 },
        { "graph_keras_model", 0, { 0 }, 2, true, false, 0, 0 },
        { "graphs", 0, { 0 }, 1, false, false, 0, 0 },
        { "graph_run_metadata_", 0, { 0 }, 1, false, false, 0, 0 },
        { "", 0, { 0 }, 1, false, false, 0, 0 },
};

static struct extent_payload_view view_of(const struct strings_case *at) {
        return (struct extent_payload_view){
                .dtype = DT_STRING,
                .rank = at->rank,
                .rank_known = true,
                .malformed = at->malformed,
                .repeated = at->repeated,
                .element_count = at->count,
                .dimension = at->dimension,
        };
}

START_TEST(strings_as_blobs) {
        const struct extent_record record = { .kind = EXTENT_KIND_TENSOR, .dtype = DT_STRING };

        for (size_t i = 0; i < ARRAY_SIZE(strings_cases); i++) {
                const struct strings_case *at = &strings_cases[i];
                struct extent_payload_view payload = view_of(at);
                struct meaning meaning;

                meaning_of(&record, &payload, EXTENT_CLASS_BLOBS, text(at->plugin), &meaning);
                ck_assert_msg(meaning.kind ==
                                      (at->blob_step ? EXTENT_KIND_BLOBS : EXTENT_KIND_TENSOR),
                              "case %zu: kind %u", i, meaning.kind);
                ck_assert(meaning.fits == (at->blob_step > 0));
                if (at->blob_step) {
                        ck_assert_uint_eq(meaning.blob_step, at->blob_step);
                        ck_assert_uint_eq(meaning.blob_count, at->blob_count);
                }
                /* In a series of tensors the same is a tensor. */
                meaning_of(&record, &payload, EXTENT_CLASS_TENSOR, text(at->plugin), &meaning);
                ck_assert(meaning.kind == EXTENT_KIND_TENSOR && meaning.fits);
        }
}
END_TEST

START_TEST(strings_that_are_not_fetched) {
        struct extent_record record = { .kind = EXTENT_KIND_TENSOR,
                                        .dtype = DT_STRING,
                                        .flags = EXTENT_RECORD_EXTERNAL };
        struct meaning meaning;

        meaning_of(&record, NULL, EXTENT_CLASS_BLOBS, text("images"), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_BLOBS && meaning.fits);
        ck_assert_uint_eq(meaning.blob_count, 0);
        record.dtype = DT_FLOAT;
        meaning_of(&record, NULL, EXTENT_CLASS_BLOBS, text("images"), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_TENSOR && !meaning.fits);
}
END_TEST

/* ---- Numbers --------------------------------------------------------------------------------- */

static struct meaning number_of(uint8_t dtype, double value, const void *element, uint32_t count) {
        const struct extent_record record = { .kind = EXTENT_KIND_TENSOR,
                                              .dtype = dtype,
                                              .flags = EXTENT_RECORD_NUMBER,
                                              .value = value };
        const struct extent_payload_view payload = { .dtype = dtype,
                                                     .rank_known = true,
                                                     .element_count = count,
                                                     .element_bytes = tensor_type_bytes(dtype),
                                                     .elements = element };
        struct meaning meaning;

        meaning_of(&record, &payload, EXTENT_CLASS_SCALAR, text("scalars"), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_SCALAR && meaning.fits);
        return meaning;
}

static void check_bits(struct meaning meaning, uint8_t bytes, uint64_t bits) {
        ck_assert_uint_eq(meaning.bits_bytes, bytes);
        ck_assert_uint_eq(meaning.bits, bits);
}

START_TEST(one_number_in_a_scalar_series) {
        static const uint8_t max[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

        check_bits(number_of(DT_FLOAT, 1.5, "\0\0\xc0\x3f", 1), 4, 0x3fc00000);
        check_bits(number_of(DT_DOUBLE, -1.5, "\0\0\0\0\0\0\xf8\xbf", 1), 8, 0xbff8000000000000);
        check_bits(number_of(DT_UINT64, 18446744073709551615.0, max, 1), 8, UINT64_MAX);
        check_bits(number_of(DT_INT8, -1, max, 1), 1, 0xff);
        check_bits(number_of(DT_HALF, 1, "\0\x3c", 1), 2, 0x3c00);
        /* The payload keeps what a double cannot. */
        check_bits(number_of(DT_FLOAT, NAN, "\x01\0\xa0\xff", 1), 4, 0xffa00001);
        /* Written twice: the number counts, the payload is the other. */
        check_bits(number_of(DT_FLOAT, 1, "\0\0\xc0\x3f", 1), 4, 0x3f800000);
        check_bits(number_of(DT_FLOAT, 1, "\0\0\xc0\x3f\0\0\xc0\x3f", 2), 4, 0x3f800000);
}
END_TEST

START_TEST(other_tensors_in_a_scalar_series) {
        const struct extent_record record = { .kind = EXTENT_KIND_TENSOR, .dtype = DT_FLOAT };
        const struct extent_payload_view payload = { .dtype = DT_FLOAT,
                                                     .element_count = 3,
                                                     .element_bytes = 4 };
        struct meaning meaning;

        meaning_of(&record, &payload, EXTENT_CLASS_SCALAR, text("scalars"), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_TENSOR && !meaning.fits);
}
END_TEST

START_TEST(number_in_another_series) {
        const struct extent_record record = { .kind = EXTENT_KIND_TENSOR,
                                              .dtype = DT_FLOAT,
                                              .flags = EXTENT_RECORD_NUMBER };
        struct meaning meaning;

        meaning_of(&record, NULL, EXTENT_CLASS_TENSOR, text("text"), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_TENSOR && meaning.fits);
        meaning_of(&record, NULL, EXTENT_CLASS_BLOBS, text("images"), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_TENSOR && !meaning.fits);
        meaning_of(&record, NULL, EXTENT_CLASS_UNKNOWN, text(""), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_TENSOR && !meaning.fits);
}
END_TEST

/* ---- Legacy values --------------------------------------------------------------------------- */

START_TEST(simple_value_in_each_series) {
        const struct extent_record record = { .kind = EXTENT_KIND_SCALAR,
                                              .dtype = DT_FLOAT,
                                              .payload_offset = 0x7fa00001 };

        for (int class = EXTENT_CLASS_UNKNOWN; class <= EXTENT_CLASS_BLOBS; class ++) {
                struct meaning meaning;

                meaning_of(&record, NULL, (enum extent_class) class, text("x"), &meaning);
                ck_assert_uint_eq(meaning.kind, EXTENT_KIND_SCALAR);
                ck_assert(meaning.fits == (class == EXTENT_CLASS_SCALAR));
                check_bits(meaning, 4, 0x7fa00001);
        }
}
END_TEST

START_TEST(blobs_in_each_series) {
        struct extent_record record = { .kind = EXTENT_KIND_BLOBS,
                                        .dtype = DT_STRING,
                                        .flags = EXTENT_RECORD_CONVERTED };
        const struct extent_payload_view payload = {
                .dtype = DT_STRING, .rank = 1, .rank_known = true, .element_count = 3
        };

        for (int class = EXTENT_CLASS_UNKNOWN; class <= EXTENT_CLASS_BLOBS; class ++) {
                struct meaning meaning;

                meaning_of(&record, &payload, (enum extent_class) class, text("audio"), &meaning);
                ck_assert_uint_eq(meaning.kind, EXTENT_KIND_BLOBS);
                ck_assert_uint_eq(meaning.blob_count, 3);
                ck_assert(meaning.fits == (class == EXTENT_CLASS_BLOBS));
        }
}
END_TEST

/* Only a wrong daemon says so. */
START_TEST(blobs_that_are_no_strings) {
        const struct extent_record record = { .kind = EXTENT_KIND_BLOBS, .dtype = DT_FLOAT };
        const struct extent_payload_view payload = { .dtype = DT_FLOAT,
                                                     .element_bytes = 4,
                                                     .element_count = 3 };
        struct meaning meaning;

        meaning_of(&record, &payload, EXTENT_CLASS_BLOBS, text("images"), &meaning);
        ck_assert_uint_eq(meaning.blob_count, 0);
}
END_TEST

/* Bytes that nobody can show are no blobs of a series, whatever its class is. */
START_TEST(carried_value_fits_nowhere) {
        const struct extent_record record = { .kind = EXTENT_KIND_BLOBS,
                                              .dtype = DT_STRING,
                                              .flags = EXTENT_RECORD_CARRIED };
        struct meaning meaning;

        meaning_of(&record, NULL, EXTENT_CLASS_BLOBS, text("images"), &meaning);
        ck_assert(meaning.kind == EXTENT_KIND_BLOBS && !meaning.fits);
}
END_TEST

/* ---- Types ----------------------------------------------------------------------------------- */

/* Names and numbers: tensorboard.compat.proto.types_pb2. */
START_TEST(types) {
        char name[TENSOR_TYPE_NAME_SIZE];

        ck_assert_str_eq(tensor_type_name(1, name), "DT_FLOAT");
        ck_assert_str_eq(tensor_type_name(27, name), "DT_FLOAT8_E4M3B11FNUZ");
        ck_assert_str_eq(tensor_type_name(127, name), "DT_FLOAT8_E4M3B11FNUZ_REF");
        ck_assert_str_eq(tensor_type_name(33, name), "DT_FLOAT4_E2M1FN");
        ck_assert_str_eq(tensor_type_name(0, name), "DT_0");
        ck_assert_str_eq(tensor_type_name(34, name), "DT_34");
        ck_assert_str_eq(tensor_type_name(100, name), "DT_100");
        ck_assert_str_eq(tensor_type_name(255, name), "DT_255");
        ck_assert_uint_eq(tensor_type_bytes(118), 16);
        ck_assert_uint_eq(tensor_type_bytes(DT_RESOURCE), 0);
        ck_assert_uint_eq(tensor_type_bytes(200), 0);
        ck_assert(tensor_type_is_number(DT_BOOL) && !tensor_type_is_number(DT_STRING));
        ck_assert(!tensor_type_is_number(101) && !tensor_type_is_number(DT_COMPLEX64));
        ck_assert(!tensor_type_is_number(DT_INT4) && !tensor_type_is_number(255));
}
END_TEST

RUNNER_MAIN("common/meaning", strings_as_blobs, strings_that_are_not_fetched,
            one_number_in_a_scalar_series, other_tensors_in_a_scalar_series,
            number_in_another_series, simple_value_in_each_series, blobs_in_each_series,
            blobs_that_are_no_strings, carried_value_fits_nowhere, types)
