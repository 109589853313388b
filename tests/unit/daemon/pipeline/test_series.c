/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a series at each of its records is the same wherever extents begin and end: a
 * reader learns the rows of the series table as records use them.
 */
#include <check.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "common/metadata.h"
#include "daemon/pipeline/block_decode.h"
#include "tests/unit/daemon/events.h"
#include "tests/unit/daemon/pipeline/blocks.h"
#include "tests/unit/runner.h"

#define SEGMENT_BYTES 65536
#define RECORDS_MOST 4096
#define SERIES_MOST 512

struct known_series {
        uint64_t id;
        struct metadata metadata; /* borrows from the blocks */
};

struct reading {
        struct blocks blocks;
        struct known_series series[SERIES_MOST];
        uint32_t series_count, record_count;
        struct metadata at_record[RECORDS_MOST];
};

static struct metadata *find(struct reading *reading, uint64_t id) {
        for (uint32_t i = 0; i < reading->series_count; i++)
                if (reading->series[i].id == id)
                        return &reading->series[i].metadata;
        ck_assert_uint_lt(reading->series_count, SERIES_MOST);
        reading->series[reading->series_count] = (struct known_series){ .id = id };
        return &reading->series[reading->series_count++].metadata;
}

static void read_extent(struct reading *reading, const struct extent_view *view) {
        uint32_t learned = 0;

        for (uint32_t i = 0; i < view->record_count; i++) {
                const struct extent_record *record = extent_view_record(view, i);

                if (record->kind == EXTENT_KIND_MARK)
                        continue;
                for (; learned <= record->series; learned++)
                        metadata_update(find(reading, view->series[learned].series_id), view,
                                        &view->series[learned]);
                ck_assert_uint_lt(reading->record_count, RECORDS_MOST);
                reading->at_record[reading->record_count++] = *find(
                        reading, extent_view_series_of(view, record)->series_id);
        }
        ck_assert_uint_eq(learned, view->series_count);
}

/* In pieces of so many bytes. */
static struct reading *read_file(const struct bytes *bytes, const struct block_file *file,
                                 uint64_t piece_bytes) {
        struct reading *reading = calloc(1, sizeof(*reading));
        struct block_input input = blocks_input(bytes, file, SEGMENT_BYTES);

        for (uint64_t known = 0; known < bytes->size;) {
                int r;

                known = min_u64(known + piece_bytes, bytes->size);
                input.size_bytes = known;
                input.last = known == bytes->size;
                do {
                        struct block_image block = blocks_decode_one(&input, SEGMENT_BYTES);
                        struct extent_view view;

                        r = block.result;
                        input.begin = block.output.next;
                        if (!block.image)
                                continue;
                        ck_assert_int_eq(
                                extent_view_init(&view, block.image, block.output.extent_bytes), 0);
                        read_extent(reading, &view);
                        blocks_append(&reading->blocks, block);
                } while (r == STAGE_FULL);
        }
        return reading;
}

static void reading_free(struct reading *reading) {
        blocks_free(&reading->blocks);
        free(reading);
}

static void check_string(struct extent_string got, struct extent_string expected) {
        ck_assert_uint_eq(got.size, expected.size);
        ck_assert(got.size == 0 || memcmp(got.bytes, expected.bytes, got.size) == 0);
}

static void check_in_pieces(const struct bytes *bytes, const char *path, uint64_t piece_bytes) {
        struct block_file file = blocks_file(path, "r");
        struct reading *whole = read_file(bytes, &file, bytes->size);
        struct reading *pieces = read_file(bytes, &file, piece_bytes);

        ck_assert_msg(pieces->record_count == whole->record_count, "%s: %u records in pieces", path,
                      pieces->record_count);
        for (uint32_t i = 0; i < whole->record_count; i++) {
                const struct metadata *expected = &whole->at_record[i];
                const struct metadata *got = &pieces->at_record[i];

                ck_assert_msg(got->data_class == expected->data_class, "%s: class at record %u",
                              path, i);
                check_string(got->plugin, expected->plugin);
                check_string(got->content, expected->content);
                check_string(got->display_name, expected->display_name);
                check_string(got->description, expected->description);
        }
        reading_free(whole);
        reading_free(pieces);
}

static int check_path(const char *path, const struct stat *status, int type, struct FTW *place) {
        struct bytes bytes;

        (void)status;
        (void)place;
        if (type != FTW_F)
                return 0;
        bytes = bytes_of_file(path);
        check_in_pieces(&bytes, path, 50);
        check_in_pieces(&bytes, path, 300);
        free(bytes.at);
        return 0;
}

START_TEST(fixtures) {
        ck_assert_int_eq(nftw("tests/data/fixtures/metadata", check_path, 8, FTW_PHYS), 0);
        ck_assert_int_eq(nftw("tests/data/fixtures/tensorboardx", check_path, 8, FTW_PHYS), 0);
        ck_assert_int_eq(nftw("tests/data/fixtures/steps", check_path, 8, FTW_PHYS), 0);
}
END_TEST

/* Nothing, metadata without a class, a class, another one: each from its own value on. */
START_TEST(series_that_says_more_and_more) {
        static const uint8_t classes[] = { EXTENT_CLASS_UNKNOWN, EXTENT_CLASS_UNKNOWN,
                                           EXTENT_CLASS_BLOBS, EXTENT_CLASS_BLOBS };
        static const char *const plugins[] = { "", "mine", "images", "images" };
        struct block_file file = blocks_file("r/x.tfevents", "r");
        struct events events = { 0 };
        struct reading *reading;
        struct bytes bytes;

        events_string(&events, 1, "t", 1);
        events_described(&events, 2, "t", "mine");
        events_described(&events, 3, "t", "images");
        events_described(&events, 4, "t", "text");
        bytes = (struct bytes){ events.bytes, events.size };
        reading = read_file(&bytes, &file, bytes.size);
        ck_assert_uint_eq(reading->blocks.count, 1);
        for (uint32_t i = 0; i < 4; i++) {
                const struct metadata *metadata = &reading->at_record[i];

                ck_assert_uint_eq(metadata->data_class, classes[i]);
                check_string(metadata->plugin, (struct extent_string){ (const uint8_t *)plugins[i],
                                                                       strlen(plugins[i]) });
        }
        reading_free(reading);
        check_in_pieces(&bytes, "r/x.tfevents", 40);
        events_free(&events);
}
END_TEST

RUNNER_MAIN("pipeline/series", fixtures, series_that_says_more_and_more)
