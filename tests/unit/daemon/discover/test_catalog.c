/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/catalog.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/name_id.h"
#include "tests/unit/daemon/events.h"
#include "tests/unit/daemon/fake_store.h"
#include "tests/unit/daemon/pipeline/blocks.h"
#include "tests/unit/runner.h"

#define URL "file:///logs"

static uv_loop_t loop;
static struct catalog catalog;
static struct catalog_source *source;

static void begin(void) {
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        catalog_init(&catalog);
        ck_assert_int_eq(
                catalog_add_source(&catalog, "logs", &fake_store_new(&loop, URL)->store, &source),
                0);
}

static void end(void) {
        for (size_t i = 0; i < catalog.source_count; i++)
                catalog.sources[i]->store->operations->close(catalog.sources[i]->store, NULL, NULL);
        catalog_deinit(&catalog);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
}

static struct catalog_file *add(const char *path) {
        struct catalog_file *file;

        ck_assert_int_eq(catalog_add_file(source, path, strlen(path), 0, &file, NULL), 0);
        return file;
}

/* A file has room for a tag as long as its first one; others may be of any length. */
START_TEST(tags_of_any_length_are_kept) {
        static const char *const tags[] = { "\"first\"",
                                            "",
                                            "\"longer than the first one\"",
                                            "\"still longer than the first one, and again\"",
                                            "short",
                                            "" };
        struct catalog_file *file;

        begin();
        ck_assert_int_eq(catalog_add_file(source, "a/x.tfevents", 12, 7, &file, NULL), 0);
        ck_assert_str_eq(file->tag, "");
        for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
                ck_assert_int_eq(catalog_set_tag(file, tags[i]), 0);
                ck_assert_str_eq(file->tag, tags[i]);
                ck_assert_str_eq(file->path.bytes, "a/x.tfevents");
        }
        /* what it already has, and a part of that */
        ck_assert_int_eq(catalog_set_tag(file, tags[3]), 0);
        ck_assert_int_eq(catalog_set_tag(file, file->tag), 0);
        ck_assert_str_eq(file->tag, tags[3]);
        end();
}
END_TEST

START_TEST(sources_are_found_by_name_and_url) {
        struct catalog_source *other;

        begin();
        ck_assert_ptr_eq(catalog_find_source(&catalog, "logs"), source);
        ck_assert_ptr_eq(catalog_find_source(&catalog, URL), source);
        ck_assert_ptr_null(catalog_find_source(&catalog, "log"));
        ck_assert_int_eq(
                catalog_add_source(&catalog, "again", &fake_store_new(&loop, URL)->store, &other),
                -EEXIST);
        ck_assert_int_eq(catalog_add_source(&catalog, NULL,
                                            &fake_store_new(&loop, "file:///b")->store, &other),
                         0);
        ck_assert_str_eq(other->name, "file:///b");
        ck_assert_uint_eq(catalog.source_count, 2);
        ck_assert_uint_eq(source->id, name_id_source(URL));
        end();
}
END_TEST

START_TEST(runs_are_the_directories_of_files) {
        struct catalog_file *deep, *top, *again;
        bool added;

        begin();
        deep = add("a/b/x.tfevents.1");
        top = add("y.tfevents.2");
        ck_assert_str_eq(deep->run->name.bytes, "a/b");
        ck_assert_str_eq(top->run->name.bytes, ".");
        ck_assert_int_eq(catalog_add_file(source, "a/b/x.tfevents.1", 16, 0, &again, &added), 0);
        ck_assert(!added);
        ck_assert_ptr_eq(again, deep);
        ck_assert_ptr_eq(add("a/b/z.tfevents.3")->run, deep->run);
        ck_assert_uint_eq(source->run_count, 2);
        ck_assert_uint_eq(source->file_count, 3);
        ck_assert_ptr_eq(catalog_find_file(&catalog, name_id_file(URL, "a/b/x.tfevents.1", 16)),
                         deep);
        ck_assert_ptr_eq(catalog_find_run(&catalog, name_id_run(URL, "a/b", 3)), deep->run);
        ck_assert_uint_eq(deep->listed_bytes, UINT64_MAX);
        end();
}
END_TEST

/* Names are bytes, and those of all orders of arrival end up in one order. */
START_TEST(names_are_sorted_as_bytes) {
        static const char *const names[] = { "b", "a",  "\xff",     "a\n", "a b",
                                             "B", "aa", "\xc3\xa4", "a!" };
        char path[64];

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
                        snprintf(path, sizeof(path), "%s/%s.tfevents", names[i], names[k]);
                        add(path);
                }
        }
        ck_assert_uint_eq(source->run_count, ARRAY_SIZE(names));
        for (size_t i = 0; i < source->run_count; i++) {
                const struct catalog_run *run = source->runs[i];

                ck_assert(i == 0 || strcmp(source->runs[i - 1]->name.bytes, run->name.bytes) < 0);
                ck_assert_uint_eq(run->file_count, ARRAY_SIZE(names));
                for (size_t k = 1; k < run->file_count; k++)
                        ck_assert_int_lt(
                                strcmp(run->files[k - 1]->path.bytes, run->files[k]->path.bytes),
                                0);
        }
        end();
}
END_TEST

START_TEST(a_run_goes_with_its_last_file) {
        struct catalog_file *first, *second;
        uint64_t run_id, file_id;

        begin();
        first = add("r/1.tfevents");
        second = add("r/2.tfevents");
        add("s/1.tfevents");
        run_id = first->run->id;
        file_id = first->id;
        catalog_set_state(first, CATALOG_LOADED, true);
        ck_assert_uint_eq(source->settled_count, 1);
        catalog_remove_file(first);
        ck_assert_uint_eq(source->settled_count, 0);
        ck_assert_ptr_null(catalog_find_file(&catalog, file_id));
        ck_assert_ptr_nonnull(catalog_find_run(&catalog, run_id));
        catalog_remove_file(second);
        ck_assert_ptr_null(catalog_find_run(&catalog, run_id));
        ck_assert_uint_eq(source->run_count, 1);
        ck_assert_uint_eq(source->file_count, 1);
        ck_assert_str_eq(source->runs[0]->name.bytes, "s");
        end();
}
END_TEST

START_TEST(settled_files_are_counted_once) {
        struct catalog_file *file;

        begin();
        file = add("r/1.tfevents");
        catalog_set_state(file, CATALOG_UNREADABLE, true);
        catalog_set_state(file, CATALOG_LOADED, true);
        ck_assert_uint_eq(source->settled_count, 1);
        catalog_set_state(file, CATALOG_LOADING, false);
        catalog_set_state(file, CATALOG_LOADING, false);
        ck_assert_uint_eq(source->settled_count, 0);
        end();
}
END_TEST

START_TEST(a_run_is_as_far_as_its_last_file) {
        struct catalog_file *first, *second;

        begin();
        first = add("r/1.tfevents");
        second = add("r/2.tfevents");
        catalog_set_state(first, CATALOG_LOADED, true);
        catalog_set_state(second, CATALOG_LOADING, false);
        ck_assert_int_eq(catalog_run_state(first->run), CATALOG_LOADING);
        catalog_set_state(second, CATALOG_EMPTY, true);
        ck_assert_int_eq(catalog_run_state(first->run), CATALOG_EMPTY);
        catalog_set_state(second, CATALOG_LOADED, true);
        ck_assert_int_eq(catalog_run_state(first->run), CATALOG_LOADED);
        for (int state = CATALOG_QUEUED; state <= CATALOG_LOADED; state++)
                ck_assert_ptr_nonnull(catalog_state_name((enum catalog_state)state));
        ck_assert_str_eq(catalog_state_name(CATALOG_HEADER_ONLY), "header only");
        end();
}
END_TEST

START_TEST(unreadable_directories_are_remembered_until_forgotten) {
        struct store_failure failure = { .class = STORE_PERMANENT, .code = "EACCES" };

        begin();
        ck_assert_int_eq(catalog_add_unreadable(source, "a", 1, &failure), 0);
        ck_assert_int_eq(catalog_add_unreadable(source, "b/c", 3, &failure), 0);
        ck_assert_uint_eq(source->unreadable_count, 2);
        ck_assert_str_eq(source->unreadable[1].directory.bytes, "b/c");
        ck_assert_str_eq(source->unreadable[1].failure.code, "EACCES");
        catalog_clear_unreadable(source);
        ck_assert_uint_eq(source->unreadable_count, 0);
        ck_assert_int_eq(catalog_add_unreadable(source, "a", 1, &failure), 0);
        end();
}
END_TEST

START_TEST(series_are_learned_once) {
        struct events events = { 0 };
        struct catalog_series *series;
        struct catalog_file *file;
        struct block_file identity;
        struct block_image block;
        struct block_input input;
        struct bytes bytes;

        begin();
        file = add("r/1.tfevents");
        events_version(&events);
        events_scalar(&events, 1, "loss", 0.5f);
        events_scalar(&events, 2, "loss", 0.25f);
        events_scalar(&events, 2, "acc", 0.75f);
        bytes = (struct bytes){ events.bytes, events.size };
        identity = blocks_file("r/1.tfevents", "r");
        identity.source_url = URL;
        identity.run_id = file->run->id;
        input = blocks_input(&bytes, &identity, 65536);
        block = blocks_decode_one(&input, 65536);
        ck_assert_int_eq(catalog_learn(file, block.image), 0);
        ck_assert_int_eq(catalog_learn(file, block.image), 0);
        ck_assert_uint_eq(file->run->series_count, 2);
        series = catalog_find_series(&catalog, name_id_series(URL, "r", 1, "loss", 4));
        ck_assert_ptr_nonnull(series);
        ck_assert_ptr_eq(series->run, file->run);
        ck_assert_str_eq(series->tag.bytes, "loss");
        ck_assert_str_eq(series->plugin.bytes, "scalars");
        ck_assert_uint_eq(series->data_class, EXTENT_CLASS_SCALAR);
        ck_assert_uint_eq(series->extents, 2);
        catalog_remove_file(file); /* the run and its series go with it */
        ck_assert_ptr_null(catalog_find_series(&catalog, name_id_series(URL, "r", 1, "loss", 4)));
        free(block.image);
        events_free(&events);
        end();
}
END_TEST

/* A file of one tensor of a series, whose metadata names the plugin. */
static struct block_image tensor_of_plugin(struct catalog_file *file, const char *plugin) {
        struct events events = { 0 };
        struct block_file identity = blocks_file(file->path.bytes, "r");
        struct block_input input;
        struct block_image block;
        struct bytes bytes;

        events_described(&events, 1, "t", plugin);
        bytes = (struct bytes){ events.bytes, events.size };
        identity.source_url = URL;
        identity.run_id = file->run->id;
        input = blocks_input(&bytes, &identity, 65536);
        block = blocks_decode_one(&input, 65536);
        events_free(&events);
        return block;
}

/* In whatever order the files of a run arrive, the first one by name says what a series is. */
START_TEST(first_metadata_is_that_of_the_first_file) {
        static const char *const paths[] = { "r/1.tfevents", "r/2.tfevents", "r/3.tfevents" };
        static const char *const plugins[] = { "mine", "images", "text" };
        static const unsigned orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                              { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                struct catalog_series *series = NULL;

                begin();
                for (size_t k = 0; k < 3; k++) {
                        struct catalog_file *file = add(paths[orders[i][k]]);
                        struct block_image block = tensor_of_plugin(file, plugins[orders[i][k]]);

                        ck_assert_int_eq(catalog_learn(file, block.image), 0);
                        series = catalog_find_series(&catalog, name_id_series(URL, "r", 1, "t", 1));
                        ck_assert_ptr_nonnull(series);
                        ck_assert(k > 0 || !series->is_several_plugins);
                        free(block.image);
                }
                /* "mine" says no class: the next one that does counts. */
                ck_assert_str_eq(series->plugin.bytes, "images");
                ck_assert_uint_eq(series->data_class, EXTENT_CLASS_BLOBS);
                ck_assert_uint_eq(series->extents, 3);
                ck_assert(series->is_several_plugins || orders[i][0] == 1);
                end();
        }
}
END_TEST

/* A source that is taken out and added again has not had its requests of the day anew. */
START_TEST(requests_of_the_day_outlive_their_source) {
        const int64_t today_s = 20000 * 86400ll, tomorrow_s = today_s + 86400;
        uint64_t sums[REQUEST_KINDS] = { 0 };

        begin();
        request_count_add(&source->store->requests, REQUEST_LIST, 3, today_s);
        for (int i = 0; i < 2; i++) {
                struct store *store = source->store;

                catalog_take_source(source, 0);
                catalog_free_source(source);
                store->operations->close(store, NULL, NULL);
                ck_assert_int_eq(catalog_add_source(&catalog, "logs",
                                                    &fake_store_new(&loop, URL)->store, &source),
                                 0);
                request_count_add(&source->store->requests, REQUEST_READ, 4, today_s);
        }
        catalog_requests_today(&catalog, "fake", today_s, sums);
        ck_assert_uint_eq(sums[REQUEST_LIST], 3);
        ck_assert_uint_eq(sums[REQUEST_READ], 8);
        sums[REQUEST_READ] = 0;
        catalog_requests_today(&catalog, "fake", tomorrow_s, sums);
        catalog_requests_today(&catalog, "other", today_s, sums);
        ck_assert_uint_eq(sums[REQUEST_READ], 0);
        end();
}
END_TEST

RUNNER_MAIN("discover/catalog", requests_of_the_day_outlive_their_source,
            tags_of_any_length_are_kept, sources_are_found_by_name_and_url,
            runs_are_the_directories_of_files, names_are_sorted_as_bytes,
            a_run_goes_with_its_last_file, settled_files_are_counted_once,
            a_run_is_as_far_as_its_last_file, unreadable_directories_are_remembered_until_forgotten,
            series_are_learned_once, first_metadata_is_that_of_the_first_file)
