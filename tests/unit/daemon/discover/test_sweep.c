/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch on a flat store that counts what is asked of it. How many requests there must be is
 * reckoned from the names: pages of 1000.
 */
#include "daemon/discover/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "common/name_id.h"
#include "daemon/discover/watch.h"
#include "tests/unit/daemon/flat_store.h"
#include "tests/unit/runner.h"

#define NOW_S (20000 * 86400ll)
#define NOW_NS (NOW_S * 1000000000ll)
#define OLD_NS (NOW_NS - 86400 * 1000000000ll)

static uv_loop_t loop;
static struct catalog catalog;
static struct catalog_source *source;
static struct flat_store *flat;
static struct watch *watch;
static unsigned appeared, changed, swapped, gone, complete, failed;

static struct id_map promised; /* for a run, the last file of which that was true */
static unsigned promises;

/* What watch_begins_in_order() promises: nothing of the run comes that stands before this. */
static void must_be_in_order(struct catalog_file *file) {
        const struct catalog_file *last = id_map_remove(&promised, file->run->id);

        if (last)
                ck_assert_str_gt(file->path.bytes, last->path.bytes);
        if (watch && watch_begins_in_order(watch)) {
                promises++;
                ck_assert_int_eq(id_map_add(&promised, file->run->id, file), 0);
        } else if (last) {
                ck_assert_int_eq(id_map_add(&promised, file->run->id, (void *)(uintptr_t)last), 0);
        }
}

static int on_file_changed(void *userdata, struct catalog_file *file, enum watch_change change) {
        (void)userdata;
        if (change == WATCH_APPEARED && source->listings == 0)
                must_be_in_order(file);
        appeared += change == WATCH_APPEARED;
        changed += change != WATCH_APPEARED;
        swapped += change == WATCH_SWAPPED;
        return 0;
}

static void on_file_gone(void *userdata, struct catalog_file *file) {
        (void)userdata;
        gone++;
        catalog_remove_file(file);
}

static void on_listed(void *userdata, struct catalog_source *listed, bool is_complete) {
        (void)userdata;
        (void)listed;
        complete += is_complete;
        failed += !is_complete;
}

static int64_t utc_s(void) {
        return NOW_S;
}

static void begin(void) {
        static const struct watch_events events = { on_file_changed, on_file_gone, on_listed };
        const struct watch_options options = { .poll_ns = POLL_NEVER, .utc_s = utc_s };

        appeared = changed = swapped = gone = complete = failed = promises = 0;
        watch = NULL;
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        catalog_init(&catalog);
        id_map_init(&promised);
        flat = flat_store_new(&loop, "flat://logs");
        ck_assert_int_eq(catalog_add_source(&catalog, "logs", &flat->store, &source), 0);
        ck_assert_int_eq(watch_new(&loop, source, &options, &events, NULL, &watch), 0);
}

static void end(void) {
        watch_close(watch, NULL, NULL);
        flat->store.operations->close(&flat->store, NULL, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        catalog_deinit(&catalog);
        id_map_deinit(&promised);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown();
}

/* Lets the listing that is due begin and end. Returns how many requests it took. */
static uint64_t list(void) {
        uint64_t before = flat->requests;
        unsigned ended = complete + failed;

        for (int i = 0; i < 3; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
        while (complete + failed == ended)
                ck_assert(flat_store_page(flat));
        ck_assert_ptr_null(flat->lists);
        return flat->requests - before;
}

static uint64_t poll_again(void) {
        watch_now(watch);
        return list();
}

static uint64_t reload(void) {
        watch_reload(watch);
        return list();
}

/* So many runs with so many event files and other objects each. */
static void add_runs(unsigned runs, unsigned files, unsigned others) {
        char name[100];

        for (unsigned run = 0; run < runs; run++) {
                for (unsigned i = 0; i < files; i++) {
                        snprintf(name, sizeof(name), "run%05u/events.out.tfevents.%05u", run, i);
                        flat_store_add(flat, name, 100, OLD_NS);
                }
                for (unsigned i = 0; i < others; i++) {
                        snprintf(name, sizeof(name), "run%05u/checkpoints/%02u/%05u", run, i % 100,
                                 i);
                        flat_store_add(flat, name, 100, OLD_NS);
                }
        }
}

static void touch(const char *name, uint64_t size_bytes) {
        flat_store_remove(flat, name);
        flat_store_add(flat, name, size_bytes, NOW_NS);
}

START_TEST(a_few_pages_are_one_listing) {
        begin();
        add_runs(30, 100, 0);
        ck_assert_uint_eq(list(), 3);
        ck_assert_uint_eq(flat->most_at_once, 1);
        ck_assert_uint_eq(appeared, 3000);
        ck_assert_uint_eq(promises, 3000);
        ck_assert_uint_eq(poll_again(), 3);
        ck_assert_uint_eq(flat->store.requests.total[REQUEST_LIST], 6);
        end();
}
END_TEST

START_TEST(an_empty_bucket) {
        begin();
        ck_assert_uint_eq(list(), 1);
        ck_assert_uint_eq(complete, 1);
        ck_assert_int_eq(source->state, CATALOG_SOURCE_OK);
        ck_assert_uint_eq(poll_again(), 1);
        end();
}
END_TEST

/* Ten thousand unchanged files are ten requests, and all of them at once. */
START_TEST(a_poll_without_news_is_a_request_a_page) {
        struct timespec before, after;
        double cpu_ms;

        begin();
        add_runs(100, 100, 0);
        ck_assert_uint_le(list(), 10 + 32 + 4);
        ck_assert_uint_eq(appeared, 10000);
        flat->most_at_once = 0;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        ck_assert_uint_eq(poll_again(), 10);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        cpu_ms = (double)(after.tv_sec - before.tv_sec) * 1e3 +
                 (double)(after.tv_nsec - before.tv_nsec) / 1e6;
        printf("a poll of 10 000 files: %.1f ms of CPU\n", cpu_ms);
        ck_assert_uint_eq(flat->most_at_once, 10);
        ck_assert_uint_eq(changed + gone, 0);
        ck_assert_uint_eq(appeared, 10000);
        for (int i = 0; i < 5; i++)
                ck_assert_uint_eq(poll_again(), 10);
        end();
}
END_TEST

/* 100 000 files of 2 000 runs: not one page after the other, even the first time. */
START_TEST(long_listings_are_split) {
        begin();
        add_runs(2000, 50, 0);
        ck_assert_uint_le(list(), 100 + 32 + 4);
        ck_assert_uint_eq(flat->most_at_once, 32);
        ck_assert_uint_eq(appeared, 100000);
        ck_assert_uint_ge(promises, 2000); /* what came before it was split */
        ck_assert_uint_le(promises, 5000);
        ck_assert_uint_eq(poll_again(), 100);
        /* One more file in the middle makes one part longer than a page. */
        flat_store_add(flat, "run00999/events.out.tfevents.x", 1, OLD_NS);
        ck_assert_uint_eq(poll_again(), 101);
        ck_assert_uint_eq(appeared, 100001);
        end();
}
END_TEST

/* Names whose order is not that of their directories. */
START_TEST(bounds_are_in_the_order_of_whole_names) {
        char name[100];

        begin();
        for (unsigned i = 0; i < 4000; i++) {
                snprintf(name, sizeof(name), "a/events.out.tfevents.%05u", i);
                flat_store_add(flat, name, 1, OLD_NS);
                snprintf(name, sizeof(name), "a-b/events.out.tfevents.%05u", i);
                flat_store_add(flat, name, 1, OLD_NS);
                snprintf(name, sizeof(name), "a0/\xff%05u.tfevents", i);
                flat_store_add(flat, name, 1, OLD_NS);
        }
        list();
        ck_assert_uint_eq(appeared, 12000);
        ck_assert_uint_eq(poll_again(), 12);
        ck_assert_uint_eq(appeared, 12000);
        ck_assert_uint_eq(gone, 0);
        end();
}
END_TEST

/*
 * 100 runs of 2 event files and 100 checkpoints each 100 objects: a million foreign objects. Two
 * runs are live.
 */
START_TEST(a_bucket_of_checkpoints) {
        begin();
        add_runs(100, 2, 10000);
        touch("run00007/events.out.tfevents.00001", 100);
        touch("run00042/events.out.tfevents.00001", 100);
        ck_assert_uint_le(list(), 1001 + 32 + 4);
        ck_assert_uint_eq(appeared, 200);
        ck_assert_uint_eq(poll_again(), 3);
        ck_assert_uint_eq(poll_again(), 3);
        touch("run00007/events.out.tfevents.00001", 200); /* it grows */
        ck_assert_uint_eq(poll_again(), 3);
        ck_assert_uint_eq(changed, 1);
        flat_store_add(flat, "run00007/events.out.tfevents.00002", 1, NOW_NS);
        ck_assert_uint_eq(poll_again(), 3);
        ck_assert_uint_eq(appeared, 201);
        flat_store_add(flat, "run00042/checkpoints/99/x", 1, NOW_NS); /* nobody's concern */
        ck_assert_uint_eq(poll_again(), 3);
        /* A new run, also one below a live run: listed once, and live itself then. */
        flat_store_add(flat, "run00100/events.out.tfevents.0", 1, NOW_NS);
        flat_store_add(flat, "run00042/validation/events.out.tfevents.0", 1, NOW_NS);
        ck_assert_uint_eq(poll_again(), 5);
        ck_assert_uint_eq(appeared, 203);
        ck_assert_uint_eq(poll_again(), 5);
        ck_assert_uint_eq(gone, 0);
        end();
}
END_TEST

START_TEST(what_is_gone_from_a_live_run_is_gone) {
        begin();
        add_runs(100, 2, 100);
        touch("run00007/events.out.tfevents.00001", 100);
        list();
        ck_assert_uint_eq(poll_again(), 2);
        flat_store_remove(flat, "run00007/events.out.tfevents.00000");
        flat_store_remove(flat, "run00050/events.out.tfevents.00000"); /* is not live */
        ck_assert_uint_eq(poll_again(), 2);
        ck_assert_uint_eq(gone, 0);
        ck_assert_uint_eq(poll_again(), 2);
        ck_assert_uint_eq(gone, 1);
        reload(); /* looks everywhere */
        reload();
        ck_assert_uint_eq(gone, 2);
        ck_assert_uint_eq(source->file_count, 198);
        end();
}
END_TEST

/* What no poll looks at is found by the full sweep, which comes by itself in time. */
START_TEST(a_full_sweep_leaves_nothing_out) {
        uint64_t requests = 0;
        unsigned polls;

        begin();
        add_runs(100, 2, 100);
        list();
        ck_assert_uint_eq(poll_again(), 1);
        flat_store_add(flat, "run00050/checkpoints/50/events.out.tfevents.0", 1, NOW_NS);
        ck_assert_uint_eq(poll_again(), 1);
        ck_assert_uint_eq(appeared, 200);
        reload();
        ck_assert_uint_eq(appeared, 201);
        flat_store_add(flat, "run00051/checkpoints/50/events.out.tfevents.0", 1, OLD_NS);
        watch_close(watch, NULL, NULL);
        uv_run(&loop, UV_RUN_NOWAIT);
        /* Polls of a minute: the eleventh is a full one. */
        {
                static const struct watch_events events = { on_file_changed, on_file_gone,
                                                            on_listed };
                const struct watch_options options = { .poll_ns = 60 * 1000000000ll,
                                                       .utc_s = utc_s };

                ck_assert_int_eq(watch_new(&loop, source, &options, &events, NULL, &watch), 0);
        }
        list();
        flat_store_add(flat, "run00052/checkpoints/50/events.out.tfevents.0", 1, OLD_NS);
        for (polls = 0; appeared < 203 && polls < 100; polls++)
                requests += poll_again();
        ck_assert_uint_eq(polls, 10);
        ck_assert_uint_ge(requests, 11);
        end();
}
END_TEST

/* A page that fails for good ends the listing: nothing is lost, and the next one has all. */
START_TEST(a_listing_that_is_cut_short_changes_nothing) {
        begin();
        add_runs(100, 100, 0);
        list();
        for (unsigned page = 1; page <= 10; page++) {
                flat->fail_after = page;
                flat->class = page % 2 ? STORE_THROTTLED : STORE_TRANSIENT;
                poll_again();
                ck_assert_uint_eq(failed, page);
                ck_assert_uint_eq(gone, 0);
                ck_assert_str_eq(source->failure.code, "flat");
        }
        ck_assert_uint_eq(source->file_count, 10000);
        ck_assert_uint_eq(poll_again(), 10);
        ck_assert_int_eq(source->state, CATALOG_SOURCE_OK);
        ck_assert_str_eq(source->failure.code, "");
        ck_assert_uint_eq(appeared, 10000);
        end();
}
END_TEST

/* The first one, while it is being split. */
START_TEST(a_first_listing_that_is_cut_short) {
        for (unsigned page = 1; page <= 40; page++) {
                begin();
                add_runs(100, 100, 0);
                flat->fail_after = page;
                flat->class = STORE_TRANSIENT;
                list();
                flat->fail_after = 0;
                if (failed)
                        poll_again();
                ck_assert_uint_eq(appeared, 10000);
                ck_assert_uint_eq(gone, 0);
                end();
        }
}
END_TEST

START_TEST(a_page_that_comes_twice_doubles_nothing) {
        begin();
        add_runs(100, 2, 100);
        touch("run00007/events.out.tfevents.00001", 100);
        flat->repeat = 1000;
        list();
        ck_assert_uint_eq(appeared, 200);
        poll_again();
        poll_again();
        ck_assert_uint_eq(appeared, 200);
        ck_assert_uint_eq(changed + gone, 0);
        end();
}
END_TEST

/* --- What is remembered --- */

static char *directory;

static unsigned window(void *userdata, const struct catalog_source *of) {
        (void)userdata;
        ck_assert_ptr_eq(of, source);
        return 77;
}

/* Another run of the daemon, on the same store. */
static void restart(void) {
        static const struct watch_events events = { on_file_changed, on_file_gone, on_listed };
        const struct watch_options options = {
                .poll_ns = POLL_NEVER, .utc_s = utc_s, .remember = directory, .window = window
        };

        watch_close(watch, NULL, NULL);
        uv_run(&loop, UV_RUN_NOWAIT);
        catalog_deinit(&catalog);
        id_map_deinit(&promised);
        catalog_init(&catalog);
        id_map_init(&promised);
        ck_assert_int_eq(catalog_add_source(&catalog, "logs", &flat->store, &source), 0);
        ck_assert_int_eq(watch_new(&loop, source, &options, &events, NULL, &watch), 0);
        appeared = changed = swapped = gone = complete = failed = 0;
        flat->most_at_once = 0;
}

static void begin_remembering(void) {
        char name[] = "/tmp/headrace-sweep-XXXXXX";

        ck_assert_ptr_nonnull(mkdtemp(name));
        directory = strdup(name);
        begin();
        restart();
}

static void end_remembering(void) {
        char command[100];

        end();
        snprintf(command, sizeof(command), "rm -rf %s", directory);
        ck_assert_int_eq(system(command), 0);
        free(directory);
}

static void turn(void) {
        for (int i = 0; i < 3; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
}

/* All files are told before the first page is here, and the first listing is in parts at once. */
START_TEST(a_restart_knows_all_at_once) {
        begin_remembering();
        add_runs(100, 100, 0);
        list();
        flat->store.window_start = 16;
        restart();
        turn();
        ck_assert_uint_eq(appeared, 10000);
        ck_assert_uint_eq(flat->list_count, 10);
        ck_assert_uint_eq(flat->store.window_start, 77);
        ck_assert_uint_eq(source->listings, 0);
        ck_assert_uint_eq(list(), 0); /* no request more than these ten */
        ck_assert_uint_eq(appeared, 10000);
        ck_assert_uint_eq(changed + gone, 0);
        end_remembering();
}
END_TEST

static struct catalog_file *find(const char *path) {
        return catalog_find_file(&catalog, name_id_file("flat://logs", path, strlen(path)));
}

/* What the listing contradicts: a file that is gone goes at once, one that changed is told. */
START_TEST(a_restart_believes_the_listing) {
        struct catalog_file *file;

        begin_remembering();
        add_runs(10, 3, 0);
        list();
        watch_close(watch, NULL, NULL); /* the daemon is not there */
        uv_run(&loop, UV_RUN_NOWAIT);
        ck_assert_int_eq(watch_new(&loop, source,
                                   &(struct watch_options){ .poll_ns = POLL_ON_DEMAND },
                                   &(struct watch_events){ 0 }, NULL, &watch),
                         0);
        flat_store_remove(flat, "run00003/events.out.tfevents.00001");
        touch("run00004/events.out.tfevents.00001", 250);
        touch("run00005/events.out.tfevents.00001", 50);
        flat_store_add(flat, "run00006/events.out.tfevents.new", 1, NOW_NS);
        restart();
        turn();
        ck_assert_uint_eq(appeared, 30);
        file = find("run00004/events.out.tfevents.00001");
        ck_assert(file->is_remembered && file->listed_bytes == 100);
        list();
        ck_assert_uint_eq(gone, 1);
        ck_assert_uint_eq(changed, 2);
        ck_assert_uint_eq(swapped, 1); /* smaller: what was read of it may be what it is now */
        ck_assert_uint_eq(appeared, 31);
        ck_assert(!file->is_remembered && file->listed_bytes == 250);
        ck_assert_ptr_null(find("run00003/events.out.tfevents.00001"));
        restart(); /* and that is remembered, too */
        turn();
        ck_assert_uint_eq(appeared, 30);
        list();
        ck_assert_uint_eq(changed + gone, 0);
        end_remembering();
}
END_TEST

/* A listing that fails says nothing of what is remembered. */
START_TEST(a_restart_without_an_answer) {
        begin_remembering();
        add_runs(10, 3, 0);
        list();
        restart();
        flat->fail_after = 1;
        flat->class = STORE_PERMANENT;
        list();
        ck_assert_uint_eq(appeared, 30);
        ck_assert_uint_eq(gone, 0);
        restart(); /* nothing was written over it */
        list();
        ck_assert_uint_eq(appeared, 30);
        end_remembering();
}
END_TEST

START_TEST(what_is_remembered_may_be_damaged) {
        char path[200];
        FILE *file;

        begin_remembering();
        add_runs(10, 3, 0);
        list();
        snprintf(path, sizeof(path), "%s/%016llx.known", directory, (unsigned long long)source->id);
        file = fopen(path, "r+e");
        ck_assert_ptr_nonnull(file);
        fseek(file, 100, SEEK_SET);
        fputc('x', file);
        ck_assert_int_eq(fclose(file), 0);
        restart();
        turn();
        ck_assert_uint_eq(appeared, 0);
        list();
        ck_assert_uint_eq(appeared, 30);
        restart(); /* it was written anew */
        turn();
        ck_assert_uint_eq(appeared, 30);
        end_remembering();
}
END_TEST

/* Parts that cannot be started. */
START_TEST(without_memory) {
        for (unsigned starts = 0; starts < 20; starts++) {
                begin();
                add_runs(100, 100, 0);
                flat->fail_starts = true;
                flat->starts_left = starts;
                if (starts == 0) {
                        for (int i = 0; i < 3; i++)
                                uv_run(&loop, UV_RUN_NOWAIT);
                        ck_assert_uint_eq(failed, 1);
                } else {
                        list();
                }
                flat->fail_starts = false;
                if (failed)
                        poll_again();
                ck_assert_uint_eq(appeared, 10000);
                end();
        }
}
END_TEST

START_TEST(closes_at_any_page) {
        for (unsigned pages = 0; pages < 40; pages++) {
                begin();
                add_runs(100, 100, 0);
                for (int i = 0; i < 3; i++)
                        uv_run(&loop, UV_RUN_NOWAIT);
                for (unsigned i = 0; i < pages; i++)
                        flat_store_page(flat);
                end();
        }
}
END_TEST

RUNNER_MAIN("discover/sweep", a_few_pages_are_one_listing, an_empty_bucket,
            a_poll_without_news_is_a_request_a_page, long_listings_are_split,
            bounds_are_in_the_order_of_whole_names, a_bucket_of_checkpoints,
            what_is_gone_from_a_live_run_is_gone, a_full_sweep_leaves_nothing_out,
            a_listing_that_is_cut_short_changes_nothing, a_first_listing_that_is_cut_short,
            a_page_that_comes_twice_doubles_nothing, a_restart_knows_all_at_once,
            a_restart_believes_the_listing, a_restart_without_an_answer,
            what_is_remembered_may_be_damaged, without_memory, closes_at_any_page)
