/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images are read back by extent_view, which shares no code with the builder, and by offsets of the
 * layout.
 */
#include "daemon/publish/extent_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "common/name_id.h"
#include "tests/unit/runner.h"

#define SEGMENT_BYTES (64u << 10)

static const struct extent_identity identity = {
        .source_id = 1,
        .run_id = 2,
        .file_id = 3,
        .file_version = 4,
        .source_url = "file:///x",
        .run_name = "run",
        .path = "run/file",
        .run_name_size = 3,
        .path_size = 8,
};

static const struct extent_builder_range range = {
        .begin_offset = 100,
        .end_offset = 900,
        .begin_index = 5,
        .end_index = 6,
        .skipped_count = 1,
        .min_wall_time = 12.5,
};

static struct extent_string text(const char *string) {
        return (struct extent_string){ (const uint8_t *)string, strlen(string) };
}

static struct extent_builder_value scalar(const char *tag, float value) {
        struct extent_builder_value scalar = {
                .step = -3,
                .wall_time = 1.5,
                .value = value,
                .kind = EXTENT_KIND_SCALAR,
                .dtype = 1,
                .source_offset = 100,
                .source_size = (uint64_t)UINT32_MAX + 5,
                .value_index = 9,
                .written_as = EXTENT_WRITTEN_SIMPLE_VALUE,
                .tag = text(tag),
        };

        memcpy(&scalar.bits, &value, sizeof(value));
        return scalar;
}

static struct extent_builder_value tensor(const char *tag, uint64_t payload_bytes,
                                          const struct extent_builder_metadata *metadata) {
        return (struct extent_builder_value){
                .kind = EXTENT_KIND_TENSOR,
                .dtype = 2,
                .payload_bytes = payload_bytes,
                .written_as = EXTENT_WRITTEN_TENSOR,
                .tag = text(tag),
                .metadata = metadata,
        };
}

/* A builder on the heap, with its memory. */
struct building {
        struct extent_builder builder;
        uint8_t *memory;
        struct extent_view view;
};

static struct building *begin_with(uint64_t room, uint64_t segment) {
        struct building *building = malloc(sizeof(*building));

        building->memory = aligned_alloc(64, align_up(room, 64));
        memset(building->memory, 0xcc, room);
        ck_assert_int_eq(
                extent_builder_init(&building->builder, building->memory, room, segment, &identity),
                0);
        return building;
}

static uint64_t finish(struct building *building) {
        uint64_t size = extent_builder_close(&building->builder, &range);

        ck_assert_int_eq(extent_view_init(&building->view, building->memory, size), 0);
        ck_assert(extent_view_is_intact(&building->view));
        ck_assert_uint_eq(building->view.size_bytes, size);
        return size;
}

static void end(struct building *building) {
        free(building->memory);
        free(building);
}

static void append(struct building *building, struct extent_builder_value value) {
        uint8_t *payload;

        ck_assert_int_eq(extent_builder_append(&building->builder, &value, &payload), 0);
        if (!payload)
                return;
        ck_assert_uint_eq((uintptr_t)payload % 64, 0);
        memset(payload, 0x5a, value.payload_bytes);
}

static void check_text(struct extent_string got, const char *expected) {
        ck_assert_uint_eq(got.size, strlen(expected));
        ck_assert_mem_eq(got.bytes, expected, got.size);
}

START_TEST(empty_extent) {
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
        const struct extent_header *header;

        ck_assert_uint_eq(finish(building), 128 + 64);
        header = building->view.header;
        ck_assert_mem_eq(header, "HRX1\x01\x00\x01\x00", 8);
        ck_assert_uint_eq(header->record_count, 0);
        ck_assert_uint_eq(header->skipped_count, 1);
        ck_assert_uint_eq(header->source_id, 1);
        ck_assert_uint_eq(header->run_id, 2);
        ck_assert_uint_eq(header->file_id, 3);
        ck_assert_uint_eq(header->file_version, 4);
        ck_assert_uint_eq(header->begin_offset, 100);
        ck_assert_uint_eq(header->end_offset, 900);
        ck_assert_uint_eq(header->begin_index, 5);
        ck_assert_uint_eq(header->end_index, 6);
        ck_assert_double_eq(header->min_wall_time, 12.5);
        check_text(extent_view_run_name(&building->view), "run");
        check_text(extent_view_file_path(&building->view), "run/file");
        end(building);
}
END_TEST

START_TEST(scalar_record) {
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
        const struct extent_record *record;
        const struct extent_series *series;

        append(building, scalar("loss", 0.5f));
        ck_assert_uint_eq(finish(building), 128 + 64 + 64 + 64);
        record = extent_view_record(&building->view, 0);
        ck_assert_int_eq(record->step, -3);
        ck_assert_double_eq(record->wall_time, 1.5);
        ck_assert_double_eq(record->value, 0.5);
        ck_assert_uint_eq(record->kind, EXTENT_KIND_SCALAR);
        ck_assert_uint_eq(record->payload_offset, 0x3f000000);
        ck_assert_uint_eq(record->payload_size, 0);
        ck_assert_uint_eq(record->source_size, UINT32_MAX);
        ck_assert_uint_eq(record->value_index, 9);
        series = extent_view_series_of(&building->view, record);
        check_text(extent_view_tag(&building->view, series), "loss");
        ck_assert_uint_eq(series->series_id, name_id_series("file:///x", "run", 3, "loss", 4));
        ck_assert_uint_eq(series->written_as, EXTENT_WRITTEN_SIMPLE_VALUE);
        ck_assert_uint_eq(series->flags, 0);
        end(building);
}
END_TEST

START_TEST(marks_have_no_series) {
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);

        append(building, (struct extent_builder_value){ .kind = EXTENT_KIND_MARK,
                                                        .dtype = EXTENT_MARK_SESSION_START,
                                                        .step = 4 });
        finish(building);
        ck_assert_uint_eq(building->view.series_count, 0);
        ck_assert_uint_eq(building->view.records[0].series, EXTENT_SERIES_NONE);
        ck_assert_ptr_null(extent_view_series_of(&building->view, building->view.records));
        end(building);
}
END_TEST

/* More tags than the index begins with, in an order that no prediction hits, each found again. */
START_TEST(many_series) {
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
        char tag[16];

        for (unsigned i = 0; i < 600; i++) {
                snprintf(tag, sizeof(tag), "tag/%u", i * 7 % 200);
                append(building, scalar(tag, (float)(i * 7 % 200)));
        }
        finish(building);
        ck_assert_uint_eq(building->view.series_count, 200);
        for (unsigned i = 0; i < 600; i++) {
                const struct extent_record *record = extent_view_record(&building->view, i);

                snprintf(tag, sizeof(tag), "tag/%.0f", record->value);
                check_text(extent_view_tag(&building->view,
                                           extent_view_series_of(&building->view, record)),
                           tag);
        }
        end(building);
}
END_TEST

/* As many series as an extent of the largest segment can have. */
START_TEST(every_record_its_own_series) {
        struct building *building = begin_with(1u << 20, 1u << 20);
        struct extent_builder_value value;
        unsigned count = 0;
        uint8_t *payload;
        char tag[16];
        int r;

        do {
                snprintf(tag, sizeof(tag), "%x", count);
                value = scalar(tag, (float)count);
                r = extent_builder_append(&building->builder, &value, &payload);
                count += r == 0;
        } while (r == 0);
        ck_assert_int_eq(r, STAGE_FULL);
        ck_assert_uint_gt(count, 7900);
        ck_assert_uint_gt(finish(building), (1u << 20) - 192);
        ck_assert_uint_eq(building->view.series_count, count);
        for (unsigned i = 0; i < count; i++) {
                snprintf(tag, sizeof(tag), "%x", i);
                check_text(extent_view_tag(&building->view, &building->view.series[i]), tag);
        }
        end(building);
}
END_TEST

static void fill_mixed(struct building *building, unsigned count) {
        char tag[16];

        for (unsigned i = 0; i < count; i++) {
                snprintf(tag, sizeof(tag), "t%u", i % 37);
                append(building,
                       i % 3 ? scalar(tag, (float)i) : tensor(tag, 1 + i * 13 % 300, NULL));
        }
}

START_TEST(room_does_not_show) {
        struct building *exact, *roomy = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
        uint64_t size;

        fill_mixed(roomy, 150);
        size = finish(roomy);
        exact = begin_with(size, SEGMENT_BYTES);
        fill_mixed(exact, 150);
        ck_assert_uint_eq(finish(exact), size);
        ck_assert_mem_eq(exact->memory, roomy->memory, size);
        end(exact);
        end(roomy);
}
END_TEST

START_TEST(full_changes_nothing) {
        struct building *building = begin_with(128 + 64 + 64 + 64 + 63, SEGMENT_BYTES);
        struct extent_builder_value second = scalar("loss", 2);
        uint8_t *payload;

        append(building, scalar("loss", 1));
        ck_assert_int_eq(extent_builder_append(&building->builder, &second, &payload), STAGE_FULL);
        second = tensor("new", 10, NULL);
        ck_assert_int_eq(extent_builder_append(&building->builder, &second, &payload), STAGE_FULL);
        ck_assert_uint_eq(finish(building), 128 + 64 + 64 + 64);
        ck_assert_uint_eq(building->view.record_count, 1);
        ck_assert_uint_eq(building->view.series_count, 1);
        end(building);
}
END_TEST

START_TEST(no_room_for_names) {
        struct extent_builder *builder = malloc(sizeof(*builder));
        CLEANUP(freep) uint8_t *memory = aligned_alloc(64, 256);

        ck_assert_int_eq(extent_builder_init(builder, memory, 191, SEGMENT_BYTES, &identity),
                         STAGE_FULL);
        ck_assert_int_eq(extent_builder_init(builder, memory, 0, SEGMENT_BYTES, &identity),
                         STAGE_FULL);
        ck_assert_int_eq(extent_builder_init(builder, memory, 192, SEGMENT_BYTES, &identity), 0);
        free(builder);
}
END_TEST

START_TEST(payloads_are_aligned_and_padded) {
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);

        append(building, tensor("a", 65, NULL));
        append(building, tensor("a", 1, NULL));
        finish(building);
        for (unsigned i = 0; i < 2; i++) {
                const struct extent_record *record = extent_view_record(&building->view, i);
                const uint8_t *payload = building->memory + record->payload_offset;

                ck_assert_uint_eq(record->payload_offset % 64, 0);
                ck_assert_uint_ge(record->payload_offset, building->view.header->payload_offset);
                ck_assert_uint_eq(payload[0], 0x5a);
                ck_assert_uint_eq(payload[record->payload_size - 1], 0x5a);
                ck_assert_uint_eq(payload[record->payload_size], 0);
        }
        end(building);
}
END_TEST

/* Payloads of many sizes, more than can be lent; lent, or copied at once. */
static struct building *fill_with_payloads(const uint8_t *bytes, bool lend) {
        static const uint64_t sizes[] = { 1, 100, 4095, 4096, 4097, 5000, 16384, 20000 };
        struct building *building = begin_with(80 * SEGMENT_BYTES, 80 * SEGMENT_BYTES);

        for (unsigned i = 0; i < 500; i++) {
                uint64_t head = i % 3 * 8, size = sizes[i % ARRAY_SIZE(sizes)];
                struct extent_builder_value value = tensor(i % 2 ? "a" : "b", head + size, NULL);
                uint8_t *payload;

                ck_assert_int_eq(extent_builder_append(&building->builder, &value, &payload), 0);
                memset(payload, 0x77, head);
                if (lend)
                        extent_builder_write(&building->builder, payload + head, bytes + i, size);
                else
                        memcpy(payload + head, bytes + i, size);
                if (i % 5 == 0)
                        append(building, scalar("c", (float)i));
        }
        return building;
}

START_TEST(what_is_lent_is_as_what_is_written) {
        uint8_t *bytes = malloc(30000);
        struct building *lent, *written;
        uint64_t size;

        for (unsigned i = 0; i < 30000; i++)
                bytes[i] = (uint8_t)(i * 2654435761u >> 13);
        lent = fill_with_payloads(bytes, true);
        written = fill_with_payloads(bytes, false);
        ck_assert_uint_eq(lent->builder.loan_count, EXTENT_BUILDER_LOANS_MAX);
        size = finish(written);
        ck_assert_uint_eq(finish(lent), size);
        ck_assert_mem_eq(lent->memory, written->memory, size);
        free(bytes);
        end(lent);
        end(written);
}
END_TEST

START_TEST(external_payload_is_only_said) {
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
        struct extent_builder_value value = tensor("a", 1u << 30, NULL);

        ck_assert(!extent_builder_can_inline(&building->builder, &value));
        value.flags = EXTENT_RECORD_EXTERNAL;
        append(building, value);
        ck_assert_uint_eq(finish(building), 128 + 64 + 64 + 64);
        ck_assert_uint_eq(building->view.records[0].payload_size, 1u << 30);
        ck_assert_uint_eq(building->view.records[0].payload_offset, 0);
        end(building);
}
END_TEST

static struct extent_builder_metadata metadata_of(const char *plugin, const char *description,
                                                  uint32_t data_class) {
        return (struct extent_builder_metadata){
                .plugin = text(plugin),
                .content = text("c"),
                .display_name = text("d"),
                .description = text(description),
                .data_class = data_class,
        };
}

static const struct extent_series *series_of(const struct building *building, uint32_t record) {
        return extent_view_series_of(&building->view, &building->view.records[record]);
}

/* A row for what is known until then; another where a value says more, for it and those behind. */
START_TEST(a_series_has_a_row_for_each_thing_it_says) {
        struct extent_builder_metadata vague = metadata_of("mine", "vague", 0);
        struct extent_builder_metadata clear = metadata_of("mine", "clear", EXTENT_CLASS_TENSOR);
        struct extent_builder_metadata late = metadata_of("other", "late", EXTENT_CLASS_BLOBS);
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
        const struct extent_view *view = &building->view;

        append(building, tensor("a", 8, NULL));
        append(building, tensor("a", 8, &vague));
        append(building, tensor("b", 8, &vague));
        append(building, tensor("a", 8, &clear));
        append(building, tensor("a", 8, &late));
        append(building, tensor("b", 8, NULL));
        append(building, tensor("a", 8, NULL));
        finish(building);
        ck_assert_uint_eq(view->series_count, 4);
        for (uint32_t i = 0; i < view->record_count; i++) {
                static const uint32_t rows[] = { 0, 1, 2, 3, 3, 2, 3 };

                ck_assert_uint_eq(view->records[i].series, rows[i]);
                check_text(extent_view_tag(view, series_of(building, i)), rows[i] == 2 ? "b" : "a");
        }
        ck_assert_uint_eq(view->series[0].flags, 0);
        ck_assert_uint_eq(view->series[1].flags, EXTENT_SERIES_METADATA | EXTENT_SERIES_AGAIN);
        ck_assert_uint_eq(view->series[2].flags, EXTENT_SERIES_METADATA);
        ck_assert_uint_eq(view->series[3].flags, EXTENT_SERIES_METADATA | EXTENT_SERIES_AGAIN);
        check_text(extent_view_description(view, &view->series[0]), "");
        check_text(extent_view_description(view, &view->series[1]), "vague");
        check_text(extent_view_description(view, &view->series[3]), "clear");
        check_text(extent_view_plugin(view, &view->series[3]), "mine");
        check_text(extent_view_content(view, &view->series[3]), "c");
        check_text(extent_view_display_name(view, &view->series[3]), "d");
        ck_assert_uint_eq(view->series[1].data_class, EXTENT_CLASS_UNKNOWN);
        ck_assert_uint_eq(view->series[3].data_class, EXTENT_CLASS_TENSOR);
        ck_assert_uint_eq(view->series[3].series_id, view->series[0].series_id);
        for (uint32_t i = 0; i < view->series_count; i++)
                ck_assert_uint_eq(view->series[i].reserved[0], 0);
        end(building);
}
END_TEST

/* Rows that others took the place of are never found again, also when the index has grown. */
START_TEST(many_series_that_say_more) {
        struct extent_builder_metadata clear = metadata_of("mine", "clear", EXTENT_CLASS_TENSOR);
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
        char tag[16];

        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < 100; i++) {
                        snprintf(tag, sizeof(tag), "t%u", i);
                        append(building, tensor(tag, 8, round == 1 ? &clear : NULL));
                }
        }
        finish(building);
        ck_assert_uint_eq(building->view.series_count, 200);
        for (uint32_t i = 0; i < 300; i++) {
                snprintf(tag, sizeof(tag), "t%u", i % 100);
                ck_assert_uint_eq(building->view.records[i].series, i < 200 ? i : i - 100);
                check_text(extent_view_tag(&building->view, series_of(building, i)), tag);
        }
        end(building);
}
END_TEST

START_TEST(too_long_texts_are_left_out) {
        char *description = malloc(SEGMENT_BYTES);
        struct extent_builder_metadata metadata;
        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);

        memset(description, 'x', SEGMENT_BYTES);
        description[SEGMENT_BYTES / 4] = '\0';
        metadata = metadata_of("text", description, 0);
        append(building, tensor("a", 8, &metadata));
        finish(building);
        ck_assert_uint_eq(building->view.series[0].flags,
                          EXTENT_SERIES_METADATA | EXTENT_SERIES_LEFT_OUT);
        ck_assert_uint_eq(building->view.series[0].description_size, 0);
        ck_assert_uint_eq(building->view.series[0].content_size, 0);
        check_text(extent_view_plugin(&building->view, building->view.series), "text");
        end(building);
        free(description);
}
END_TEST

/* The largest value that may be inline fits into an empty segment. */
START_TEST(whatever_may_be_inline_fits) {
        char *tag = malloc(SEGMENT_BYTES);

        memset(tag, 't', SEGMENT_BYTES);
        for (uint64_t tag_size = SEGMENT_BYTES / 2 - 11; tag_size > 100; tag_size /= 3) {
                struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);
                struct extent_builder_value value = tensor("", SEGMENT_BYTES, NULL);

                value.tag = (struct extent_string){ (const uint8_t *)tag, tag_size };
                ck_assert(extent_builder_can_hold(&building->builder, &value));
                while (!extent_builder_can_inline(&building->builder, &value))
                        value.payload_bytes--;
                ck_assert_uint_gt(value.payload_bytes, SEGMENT_BYTES / 4);
                append(building, value);
                finish(building);
                value.tag.size = SEGMENT_BYTES / 2 - 10;
                ck_assert(!extent_builder_can_hold(&building->builder, &value));
                end(building);
        }
        free(tag);
}
END_TEST

/* Tags that differ in one byte only, wherever it is, are two series. */
START_TEST(every_byte_of_a_tag_counts) {
        char one[71] = { 0 }, other[71] = { 0 };

        for (size_t size = 1; size <= 70; size++)
                for (size_t at = 0; at < size; at++) {
                        struct building *building = begin_with(SEGMENT_BYTES, SEGMENT_BYTES);

                        memset(one, 'a', size);
                        memset(other, 'a', size);
                        other[at] = 'b';
                        append(building, scalar(one, 1));
                        append(building, scalar(other, 2));
                        append(building, scalar(one, 3));
                        ck_assert_uint_eq(building->builder.series_count, 2);
                        finish(building);
                        end(building);
                }
}
END_TEST

RUNNER_MAIN("publish/extent_builder", empty_extent, scalar_record, marks_have_no_series,
            many_series, every_record_its_own_series, room_does_not_show, full_changes_nothing,
            no_room_for_names, payloads_are_aligned_and_padded, what_is_lent_is_as_what_is_written,
            external_payload_is_only_said, a_series_has_a_row_for_each_thing_it_says,
            many_series_that_say_more, too_long_texts_are_left_out, whatever_may_be_inline_fits,
            every_byte_of_a_tag_counts)
