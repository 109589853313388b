/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image laid out by hand from docs/EXTENT.md, and every way of it being wrong that an accessor
 * could trip over.
 */
#include "common/extent_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

#define SIZE 640
#define RECORDS 128 /* three of them */
#define SERIES 320  /* one */
#define STRINGS 384 /* "runfiletag" */
#define PAYLOAD 448 /* two strings: "ab", "" */

struct image {
        _Alignas(64) uint8_t bytes[SIZE];
};

static struct extent_header *header_of(struct image *image) {
        return (void *)image->bytes;
}

static struct extent_record *record_of(struct image *image, unsigned index) {
        return (void *)(image->bytes + RECORDS + 64 * index);
}

static struct extent_series *series_of(struct image *image) {
        return (void *)(image->bytes + SERIES);
}

static struct extent_payload *payload_of(struct image *image) {
        return (void *)(image->bytes + PAYLOAD);
}

static void put_u64(uint8_t *at, uint64_t value) {
        memcpy(at, &value, sizeof(value));
}

static struct image *image_new(void) {
        struct image *image = aligned_alloc(64, sizeof(*image));

        memset(image, 0, sizeof(*image));
        *header_of(image) = (struct extent_header){
                .magic = EXTENT_MAGIC,
                .version = EXTENT_VERSION,
                .size_bytes = SIZE,
                .record_count = 3,
                .series_count = 1,
                .records_offset = RECORDS,
                .series_offset = SERIES,
                .run_name_offset = STRINGS,
                .run_name_size = 3,
                .file_path_offset = STRINGS + 3,
                .file_path_size = 4,
                .payload_offset = STRINGS,
        };
        memcpy(image->bytes + STRINGS, "runfiletag", 10);
        series_of(image)->tag_offset = STRINGS + 7;
        series_of(image)->tag_size = 3;
        record_of(image, 0)->kind = EXTENT_KIND_SCALAR;
        record_of(image, 1)->kind = EXTENT_KIND_TENSOR;
        record_of(image, 1)->payload_offset = PAYLOAD;
        record_of(image, 1)->payload_size = 64 + 16 + 2;
        record_of(image, 2)->kind = EXTENT_KIND_MARK;
        record_of(image, 2)->series = EXTENT_SERIES_NONE;
        payload_of(image)->dtype = 7;
        payload_of(image)->rank = 1;
        payload_of(image)->element_count = 2;
        payload_of(image)->dimension[0] = 2;
        put_u64(image->bytes + PAYLOAD + 64, 2);
        put_u64(image->bytes + PAYLOAD + 72, 2);
        memcpy(image->bytes + PAYLOAD + 80, "ab", 2);
        return image;
}

static void check_text(struct extent_string got, const char *expected) {
        ck_assert_uint_eq(got.size, strlen(expected));
        ck_assert_mem_eq(got.bytes, expected, got.size);
}

START_TEST(everything_reads_back) {
        CLEANUP(freep) struct image *image = image_new();
        struct extent_payload_view payload;
        struct extent_view view;

        ck_assert_int_eq(extent_view_init(&view, image, SIZE), 0);
        ck_assert_uint_eq(view.record_count, 3);
        check_text(extent_view_run_name(&view), "run");
        check_text(extent_view_file_path(&view), "file");
        check_text(
                extent_view_tag(&view, extent_view_series_of(&view, extent_view_record(&view, 0))),
                "tag");
        check_text(extent_view_plugin(&view, view.series), "");
        ck_assert_ptr_null(extent_view_series_of(&view, extent_view_record(&view, 2)));
        ck_assert_int_eq(extent_view_payload(&view, extent_view_record(&view, 0), &payload),
                         -ENOENT);
        ck_assert_int_eq(extent_view_payload(&view, extent_view_record(&view, 2), &payload),
                         -ENOENT);
        ck_assert_int_eq(extent_view_payload(&view, extent_view_record(&view, 1), &payload), 0);
        ck_assert_uint_eq(payload.element_count, 2);
        ck_assert_int_eq(payload.dimension[0], 2);
        check_text(extent_payload_string(&payload, 0), "ab");
        check_text(extent_payload_string(&payload, 1), "");
        ck_assert(!extent_view_is_intact(&view));
}
END_TEST

static int init_of(const struct image *image, uint64_t size) {
        struct extent_view view;

        return extent_view_init(&view, image, size);
}

START_TEST(header_that_lies) {
        static const struct {
                size_t offset, width;
                uint64_t value;
        } lies[] = {
                { 0, 4, 0x31585249 },
                { 4, 2, 2 },
                { 8, 8, SIZE + 64 },
                { 8, 8, 64 },
                { 8, 8, SIZE - 1 },
                { 8, 8, UINT64_MAX },
                { 20, 4, 9 },
                { 20, 4, UINT32_MAX },
                { 24, 4, 6 },
                { 24, 4, UINT32_MAX },
                { 88, 4, 64 },
                { 88, 4, 129 },
                { 88, 4, SIZE },
                { 92, 4, 1 },
                { 92, 4, UINT32_MAX - 63 },
                { 96, 4, SIZE - 2 },
                { 100, 4, UINT32_MAX },
                { 104, 4, UINT32_MAX },
                { 108, 4, SIZE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
                CLEANUP(freep) struct image *image = image_new();

                memcpy(image->bytes + lies[i].offset, &lies[i].value, lies[i].width);
                ck_assert_msg(init_of(image, SIZE) == -EBADMSG, "lie %zu was believed", i);
        }
}
END_TEST

START_TEST(series_that_lie) {
        for (size_t at = 8; at < 48; at += 8) {
                CLEANUP(freep) struct image *image = image_new();
                uint32_t offset = SIZE - 4, size = 5;

                memcpy(image->bytes + SERIES + at, &offset, 4);
                ck_assert_int_eq(init_of(image, SIZE), 0);
                memcpy(image->bytes + SERIES + at + 4, &size, 4);
                ck_assert_int_eq(init_of(image, SIZE), -EBADMSG);
        }
}
END_TEST

START_TEST(too_short_or_not_aligned) {
        CLEANUP(freep) struct image *image = image_new();
        struct extent_view view;

        for (uint64_t size = 0; size < SIZE; size++)
                ck_assert_int_eq(init_of(image, size), -EBADMSG);
        ck_assert_int_eq(init_of(image, SIZE + 1), 0);
        ck_assert_int_eq(extent_view_init(&view, image->bytes + 8, SIZE - 8), -EBADMSG);
}
END_TEST

static int payload_result(struct image *image) {
        struct extent_payload_view payload;
        struct extent_view view;

        ck_assert_int_eq(extent_view_init(&view, image, SIZE), 0);
        return extent_view_payload(&view, extent_view_record(&view, 1), &payload);
}

START_TEST(payloads_that_lie) {
        CLEANUP(freep) struct image *image = image_new();
        struct extent_record right = *record_of(image, 1);
        static const struct {
                uint64_t offset, size;
        } places[] = {
                { PAYLOAD + 8, 82 },     { SIZE, 82 },   { UINT64_MAX - 63, 82 }, { PAYLOAD, SIZE },
                { PAYLOAD, UINT64_MAX }, { PAYLOAD, 7 }, { PAYLOAD, 63 },         { PAYLOAD, 79 },
                { 0, UINT64_MAX },
        };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                record_of(image, 1)->payload_offset = places[i].offset;
                record_of(image, 1)->payload_size = places[i].size;
                ck_assert_msg(payload_result(image) == -EBADMSG, "place %zu", i);
        }
        *record_of(image, 1) = right;
        payload_of(image)->element_count = UINT32_MAX;
        ck_assert_int_eq(payload_result(image), -EBADMSG);
        payload_of(image)->dtype = 18; /* 16 bytes each */
        ck_assert_int_eq(payload_result(image), -EBADMSG);
        payload_of(image)->element_count = 1;
        ck_assert_int_eq(payload_result(image), 0);
        payload_of(image)->rank = 254;
        ck_assert_int_eq(payload_result(image), -EBADMSG);
        payload_of(image)->rank = EXTENT_RANK_UNKNOWN;
        ck_assert_int_eq(payload_result(image), 0);
        record_of(image, 1)->flags = EXTENT_RECORD_EXTERNAL;
        ck_assert_int_eq(payload_result(image), -ENOENT);
}
END_TEST

START_TEST(strings_that_lie) {
        CLEANUP(freep) struct image *image = image_new();
        struct extent_payload_view payload;
        struct extent_view view;

        ck_assert_int_eq(extent_view_init(&view, image, SIZE), 0);
        put_u64(image->bytes + PAYLOAD + 64, 3);
        ck_assert_int_eq(extent_view_payload(&view, view.records + 1, &payload), 0);
        ck_assert_uint_eq(extent_payload_string(&payload, 0).size, 0);
        ck_assert_uint_eq(extent_payload_string(&payload, 1).size, 0);
        put_u64(image->bytes + PAYLOAD + 64, UINT64_MAX);
        ck_assert_uint_eq(extent_payload_string(&payload, 0).size, 0);
        ck_assert_uint_eq(extent_payload_string(&payload, 1).size, 0);
        record_of(image, 0)->series = 1;
        ck_assert_ptr_null(extent_view_series_of(&view, view.records));
}
END_TEST

/*
 * Of the image above, by another implementation: crc32c 2.8 of Python, over the bytes with that
 * field as zero.
 */
START_TEST(intact_by_its_crc) {
        CLEANUP(freep) struct image *image = image_new();
        struct extent_view view;

        header_of(image)->crc32c = 0xfb4c971b;
        ck_assert_int_eq(extent_view_init(&view, image, SIZE), 0);
        ck_assert(extent_view_is_intact(&view));
        for (size_t i = 32; i < SIZE; i += 13) {
                image->bytes[i] ^= 0x10;
                ck_assert(!extent_view_is_intact(&view));
                image->bytes[i] ^= 0x10;
        }
}
END_TEST

RUNNER_MAIN("common/extent_view", everything_reads_back, header_that_lies, series_that_lie,
            too_short_or_not_aligned, payloads_that_lie, strings_that_lie, intact_by_its_crc)
