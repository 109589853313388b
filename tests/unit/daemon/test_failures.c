/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each scenario is run with its first, second, third ... allocation or system call failing, until
 * nothing fails any more. A failure must come out as an error, and leave nothing behind: the runner
 * counts descriptors, the address sanitizer memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <uv.h>

#include "client/include/headrace.h"
#include "common/base.h"
#include "daemon/core/config.h"
#include "daemon/discover/catalog.h"
#include "daemon/pipeline/block.h"
#include "daemon/publish/ring.h"
#include "daemon/publish/ring_queue.h"
#include "daemon/serve/listener.h"
#include "daemon/store/store.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/daemon/fake_store.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

#define N_MOST 5000

static char directory[] = "/tmp/headrace-failures-XXXXXX";
static char path[64];

/*
 * Runs the scenario for n = 1, 2, 3 ... It returns whether all was well, which it must say exactly
 * when nothing failed.
 */
static void for_each_failure(bool (*scenario)(void), enum fail_scope scope, bool may_recover) {
        uint64_t n = 0;
        bool well;

        do {
                fail_begin(++n, scope);
                well = scenario();
                if (!fail_end())
                        break;
                ck_assert_msg(may_recover || !well, "call %llu (%s) failed, and nobody said so",
                              (unsigned long long)n, fail_name());
        } while (n < N_MOST);
        ck_assert(well);
        ck_assert_uint_gt(n, 1);
        ck_assert_uint_lt(n, N_MOST);
}

static void begin(void) {
        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/file", directory);
}

static void end(void) {
        unlink(path);
        ck_assert_int_eq(rmdir(directory), 0);
}

static bool makes_a_ring(void) {
        struct ring *ring = NULL;
        char *error = NULL;
        int r = ring_new(4u << 20, RING_HUGE_OFF, &ring, &error);
        uint32_t segment;
        bool well = r == 0;

        if (r == 0) {
                segment = ring_take_free(ring);
                well = ring_segment_prepare(ring, segment) == 0;
                if (!well)
                        ring_stop_growing(ring, segment);
        }
        ring_free(ring);
        free(error);
        return well;
}

START_TEST(ring) {
        /* MFD_NOEXEC_SEAL, and then without */
        for_each_failure(makes_a_ring, FAIL_ANY_THREAD, true);
}
END_TEST

static bool makes_a_queue(void) {
        struct ring_queue_writer *writer = NULL;
        int queue_fd = -1, ack_fd = -1;
        int r = ring_queue_new(1, &writer, &queue_fd, &ack_fd);

        if (r != 0)
                return false;
        close(queue_fd);
        close(ack_fd);
        ring_queue_free(writer);
        return true;
}

START_TEST(queue) {
        for_each_failure(makes_a_queue, FAIL_ANY_THREAD, false);
}
END_TEST

static bool makes_blocks(void) {
        struct block_index index = { 0 };
        struct block *block;
        struct cells cells;
        bool well = true;

        cells_init(&cells);
        for (unsigned i = 0; i < 20; i++)
                well = block_index_append(&index, &cells, &block) == 0 && well;
        block_index_deinit(&index, &cells);
        cells_deinit(&cells);
        return well;
}

START_TEST(blocks) {
        for_each_failure(makes_blocks, FAIL_ANY_THREAD, false);
}
END_TEST

static bool fills_a_catalog(void) {
        struct store_failure failure = { .class = STORE_PERMANENT };
        struct catalog_source *source;
        struct catalog_file *file;
        struct catalog catalog;
        struct fake_store *fake;
        uv_loop_t loop;
        char name[32];
        bool well;

        MUST(uv_loop_init(&loop) == 0);
        catalog_init(&catalog);
        fake = fake_store_new(&loop, "fake://x");
        well = fake && catalog_add_source(&catalog, NULL, &fake->store, &source) == 0;
        for (unsigned i = 0; catalog.source_count > 0 && i < 100; i++) {
                snprintf(name, sizeof(name), "run%u/%u.tfevents", i % 9, i);
                well = catalog_add_file(source, name, strlen(name), 0, &file, NULL) == 0 &&
                       catalog_set_tag(file, "longer") == 0 && well;
        }
        if (catalog.source_count > 0) {
                well = catalog_add_unreadable(source, "a", 1, &failure) == 0 && well;
                while (source->run_count > 5)
                        catalog_remove_file(source->runs[0]->files[0]);
                fake->store.operations->close(&fake->store, NULL, NULL);
        }
        catalog_deinit(&catalog);
        uv_run(&loop, UV_RUN_DEFAULT);
        MUST(uv_loop_close(&loop) == 0);
        return well;
}

START_TEST(catalog) {
        for_each_failure(fills_a_catalog, FAIL_ANY_THREAD, true); /* without entropy */
        uv_library_shutdown();
}
END_TEST

static bool loads_a_configuration(void) {
        struct config config;
        char *error = NULL;
        bool well;

        config_init(&config);
        well = config_load_file(&config, path, &error) == 0;
        free(error);
        error = NULL;
        if (well)
                well = config_set_assignment(&config, "--set",
                                             "sources=[\"/a\", {\"url\": \"/b\", \"name\": \"b\"}]",
                                             &error) == 0;
        free(error);
        config_deinit(&config);
        return well;
}

START_TEST(configuration) {
        FILE *file;

        begin();
        file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        fputs("{\"sources\": [\"/data/logs\"], \"socket\": \"/run/x\", \"allow_uids\": [1, 2]}",
              file);
        fclose(file);
        for_each_failure(loads_a_configuration, FAIL_ANY_THREAD, false);
        end();
}
END_TEST

static void on_connection(void *userdata, int take_fd, uid_t uid, pid_t pid) {
        (void)userdata;
        (void)uid;
        (void)pid;
        close(take_fd);
}

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

static bool listens(void) {
        bool closed = false;
        struct listener *listener = NULL;
        char *error = NULL;
        uv_loop_t loop;
        int r;

        MUST(uv_loop_init(&loop) == 0);
        r = listener_new(&loop, path, on_connection, NULL, &listener, &error);
        if (r == 0)
                listener_close(listener, on_closed, &closed);
        free(error);
        uv_run(&loop, UV_RUN_DEFAULT);
        MUST(uv_loop_close(&loop) == 0 && closed == (r == 0));
        return r == 0;
}

START_TEST(listener) {
        char lock[80];

        begin();
        for_each_failure(listens, FAIL_ANY_THREAD, true);
        uv_library_shutdown();
        snprintf(lock, sizeof(lock), "%s.lock", path);
        unlink(lock);
        end();
}
END_TEST

struct load {
        struct store *store;
        struct store_list *list;
        struct store_read *read;
        uint8_t buffer[4096];
        bool listed, done, well, closed;
        unsigned rows;
};

static void on_row(void *userdata, const struct store_row *row) {
        struct load *load = userdata;

        (void)row;
        load->rows++;
}

static void on_unreadable(void *userdata, const char *name, size_t size,
                          const struct store_failure *failure) {
        struct load *load = userdata;

        (void)name;
        (void)size;
        (void)failure;
        load->well = false;
}

static void on_listed(void *userdata, const struct store_failure *failure,
                      const struct store_list_counts *counts) {
        struct load *load = userdata;

        (void)counts;
        load->listed = true;
        load->well = load->well && failure->class == STORE_OK && load->rows == 1;
}

static void on_read(void *userdata, const struct store_read_result *result) {
        struct load *load = userdata;

        load->done = true;
        load->well = load->well && result->failure.class == STORE_OK && result->size_bytes == 3;
}

static bool reads_a_file(void) {
        static const struct store_list_callbacks callbacks = { on_row, on_unreadable, on_listed,
                                                               NULL };
        struct load load = { .well = true };
        struct store_read_range range = { .name = "a.tfevents",
                                          .name_size = 10,
                                          .size_bytes = sizeof(load.buffer),
                                          .buffer = load.buffer };
        uv_loop_t loop;

        MUST(uv_loop_init(&loop) == 0);
        if (store_open(&loop, directory, &load.store, NULL) < 0) {
                uv_run(&loop, UV_RUN_DEFAULT);
                MUST(uv_loop_close(&loop) == 0);
                return false;
        }
        if (load.store->operations->list(load.store, NULL, &callbacks, &load, &load.list) < 0)
                load.well = false;
        else
                while (!load.listed)
                        uv_run(&loop, UV_RUN_ONCE);
        if (load.store->operations->read(load.store, &range, on_read, &load, &load.read) < 0)
                load.well = false;
        else
                while (!load.done)
                        uv_run(&loop, UV_RUN_ONCE);
        load.store->operations->close(load.store, on_closed, &load.closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        MUST(load.closed && uv_loop_close(&loop) == 0);
        return load.well;
}

START_TEST(file_store) {
        FILE *file;

        begin();
        snprintf(path, sizeof(path), "%s/a.tfevents", directory);
        file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        fputs("abc", file);
        fclose(file);
        for_each_failure(reads_a_file, FAIL_ANY_THREAD, true);
        uv_library_shutdown();
        end();
}
END_TEST

/* The fake daemon is set up before calls are counted, and its thread's do not count. */
static bool connects(uint64_t n, bool *ret_failed) {
        struct fake_daemon fake = { 0 };
        struct hr_subscription subscription = HR_SUBSCRIPTION;
        struct hr_connection *connection = NULL;
        char *error = NULL;
        bool well;

        fake_daemon_init(&fake);
        fake_daemon_start(&fake);
        fail_begin(n, FAIL_THIS_THREAD);
        well = hr_connect_fd(fake.client_fd, NULL, &connection, &error) == 0;
        if (well)
                well = hr_subscribe(connection, &subscription) == 0;
        hr_close(connection);
        *ret_failed = fail_end();
        free(error);
        fake_daemon_deinit(&fake);
        return well;
}

START_TEST(client) {
        bool failed, well;
        uint64_t n = 0;

        do
                well = connects(++n, &failed);
        while (failed && n < N_MOST);
        ck_assert(well);
        ck_assert_uint_gt(n, 10);
}
END_TEST

RUNNER_MAIN("failures", ring, queue, blocks, catalog, configuration, listener, file_store, client)
