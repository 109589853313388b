/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of TensorBoard's data server (data_compat.rs, initial_metadata) with what is better
 * here: texts of legacy values are kept, and a class that only a later value says counts. Real
 * files: pipeline/test_goldens.
 */
#include "common/metadata.h"

#include <string.h>

#include "common/base.h"
#include "tests/unit/runner.h"

/* A series in an extent: the strings lie one behind the other in bytes. */
struct said {
        char bytes[256];
        struct extent_series series;
        struct extent_view view;
};

static uint32_t put(struct said *said, const char *text, uint32_t *ret_size) {
        uint32_t at = (uint32_t)said->view.size_bytes;

        *ret_size = (uint32_t)strlen(text);
        memcpy(said->bytes + at, text, *ret_size);
        said->view.size_bytes += *ret_size;
        return at;
}

static void say(struct said *said, enum extent_written_as written_as, uint8_t data_class,
                const char *plugin, const char *content, const char *display_name,
                const char *description) {
        memset(said, 0, sizeof(*said));
        said->view.bytes = (const uint8_t *)said->bytes;
        said->series.written_as = written_as;
        said->series.data_class = data_class;
        if (!plugin)
                return;
        said->series.flags = EXTENT_SERIES_METADATA;
        said->series.plugin_offset = put(said, plugin, &said->series.plugin_size);
        said->series.content_offset = put(said, content, &said->series.content_size);
        said->series.display_name_offset = put(said, display_name, &said->series.display_name_size);
        said->series.description_offset = put(said, description, &said->series.description_size);
}

static void check_text(struct extent_string got, const char *expected) {
        ck_assert_uint_eq(got.size, strlen(expected));
        ck_assert_int_eq(strncmp((const char *)got.bytes, expected, got.size), 0);
}

static void check_first(const struct said *said, uint8_t data_class, const char *plugin,
                        const char *content) {
        struct metadata metadata = { 0 };

        ck_assert(metadata_update(&metadata, &said->view, &said->series));
        ck_assert_uint_eq(metadata.data_class, data_class);
        check_text(metadata.plugin, plugin);
        check_text(metadata.content, content);
}

START_TEST(legacy_values_say_what_they_are) {
        struct said said;

        say(&said, EXTENT_WRITTEN_SIMPLE_VALUE, 0, NULL, NULL, NULL, NULL);
        check_first(&said, EXTENT_CLASS_SCALAR, "scalars", "");
        say(&said, EXTENT_WRITTEN_IMAGE, 0, NULL, NULL, NULL, NULL);
        check_first(&said, EXTENT_CLASS_BLOBS, "images", "\x10\x01");
        say(&said, EXTENT_WRITTEN_AUDIO, 0, NULL, NULL, NULL, NULL);
        check_first(&said, EXTENT_CLASS_BLOBS, "audio", "\x18\x01");
        say(&said, EXTENT_WRITTEN_HISTOGRAM, 0, NULL, NULL, NULL, NULL);
        check_first(&said, EXTENT_CLASS_TENSOR, "histograms", "");
        say(&said, EXTENT_WRITTEN_GRAPH, 0, NULL, NULL, NULL, NULL);
        check_first(&said, EXTENT_CLASS_BLOBS, "graphs", "");
        say(&said, EXTENT_WRITTEN_RUN_METADATA, 0, NULL, NULL, NULL, NULL);
        check_first(&said, EXTENT_CLASS_BLOBS, "graph_tagged_run_metadata", "");
}
END_TEST

START_TEST(texts_of_legacy_values_are_kept) {
        struct metadata metadata = { 0 };
        struct said said;

        say(&said, EXTENT_WRITTEN_SIMPLE_VALUE, 0, "mine", "content", "Shown", "Told");
        ck_assert(metadata_update(&metadata, &said.view, &said.series));
        check_text(metadata.plugin, "scalars");
        check_text(metadata.content, "");
        check_text(metadata.display_name, "Shown");
        check_text(metadata.description, "Told");
}
END_TEST

START_TEST(given_class_stands) {
        struct said said;

        say(&said, EXTENT_WRITTEN_SIMPLE_VALUE, EXTENT_CLASS_TENSOR, "mine", "c", "", "");
        check_first(&said, EXTENT_CLASS_TENSOR, "mine", "c");
        say(&said, EXTENT_WRITTEN_TENSOR, EXTENT_CLASS_BLOBS, "text", "c", "", "");
        check_first(&said, EXTENT_CLASS_BLOBS, "text", "c");
}
END_TEST

START_TEST(known_plugins) {
        static const struct {
                const char *plugin;
                uint8_t data_class;
        } known[] = {
                { "scalars", EXTENT_CLASS_SCALAR },
                { "histograms", EXTENT_CLASS_TENSOR },
                { "text", EXTENT_CLASS_TENSOR },
                { "hparams", EXTENT_CLASS_TENSOR },
                { "pr_curves", EXTENT_CLASS_TENSOR },
                { "mesh", EXTENT_CLASS_TENSOR },
                { "custom_scalars", EXTENT_CLASS_TENSOR },
                { "images", EXTENT_CLASS_BLOBS },
                { "audio", EXTENT_CLASS_BLOBS },
                { "graph_run_metadata", EXTENT_CLASS_BLOBS },
                { "graph_run_metadata_graph", EXTENT_CLASS_BLOBS },
                { "graph_keras_model", EXTENT_CLASS_BLOBS },
                { "scalar", EXTENT_CLASS_UNKNOWN },
                { "tensor", EXTENT_CLASS_UNKNOWN },
                { "", EXTENT_CLASS_UNKNOWN },
        };
        struct said said;

        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                say(&said, EXTENT_WRITTEN_TENSOR, 0, known[i].plugin, "c", "", "");
                check_first(&said, known[i].data_class, known[i].plugin, "c");
                say(&said, EXTENT_WRITTEN_NONE, 9, known[i].plugin, "c", "", "");
                check_first(&said, known[i].data_class, known[i].plugin, "c");
        }
}
END_TEST

START_TEST(later_class_counts_but_only_the_first) {
        struct metadata metadata = { 0 };
        struct said said;

        say(&said, EXTENT_WRITTEN_TENSOR, 0, NULL, NULL, NULL, NULL);
        ck_assert(!metadata_update(&metadata, &said.view, &said.series));
        say(&said, EXTENT_WRITTEN_TENSOR, 0, "mine", "", "", "first");
        ck_assert(metadata_update(&metadata, &said.view, &said.series));
        check_text(metadata.description, "first");
        say(&said, EXTENT_WRITTEN_TENSOR, 0, "mine", "", "", "second");
        ck_assert(!metadata_update(&metadata, &said.view, &said.series));
        say(&said, EXTENT_WRITTEN_TENSOR, EXTENT_CLASS_SCALAR, "mine", "", "", "third");
        ck_assert(metadata_update(&metadata, &said.view, &said.series));
        ck_assert_uint_eq(metadata.data_class, EXTENT_CLASS_SCALAR);
        check_text(metadata.description, "third");
        say(&said, EXTENT_WRITTEN_IMAGE, EXTENT_CLASS_BLOBS, "other", "", "", "fourth");
        ck_assert(!metadata_update(&metadata, &said.view, &said.series));
}
END_TEST

RUNNER_MAIN("common/metadata", legacy_values_say_what_they_are, texts_of_legacy_values_are_kept,
            given_class_stands, known_plugins, later_class_counts_but_only_the_first)
