/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings come from a store that the test speaks for. Nothing waits for time: how long the watch
 * would wait is read from the loop, and the next listing is then asked for.
 */
#include "daemon/discover/watch.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/discover/filter.h"
#include "tests/unit/daemon/fake_store.h"
#include "tests/unit/runner.h"

#define NOTHING UINT64_MAX

static uv_loop_t loop;
static struct catalog catalog;
static struct catalog_source *source;
static struct fake_store *store;
static struct watch *watch;
static char news[1024];  /* since it was last looked at: "+a =b" */
static int change_error; /* of the next change */
static bool removes;     /* what is gone leaves the catalog, as the pipeline does it */

static void tell(const char *sign, const struct catalog_file *file) {
        size_t used = strlen(news);

        snprintf(news + used, sizeof(news) - used, "%s%s%s", used ? " " : "", sign,
                 file->path.bytes);
}

static int on_file_changed(void *userdata, struct catalog_file *file, enum watch_change change) {
        static const char *const signs[] = {
                [WATCH_APPEARED] = "+", [WATCH_GREW] = ">",    [WATCH_MAY_HAVE_GROWN] = "?",
                [WATCH_SHRANK] = "<",   [WATCH_TOUCHED] = "=", [WATCH_SWAPPED] = "~",
        };

        ck_assert_ptr_eq(userdata, &catalog);
        tell(signs[change], file);
        return change_error;
}

static void on_file_gone(void *userdata, struct catalog_file *file) {
        (void)userdata;
        tell("-", file);
        if (removes)
                catalog_remove_file(file);
        else
                catalog_set_state(file, CATALOG_GONE, true);
}

static void on_listed(void *userdata, struct catalog_source *listed, bool complete) {
        size_t used = strlen(news);

        (void)userdata;
        ck_assert_ptr_eq(listed, source);
        snprintf(news + used, sizeof(news) - used, "%s%s", used ? " " : "", complete ? "." : "!");
}

static const struct watch_events events = { on_file_changed, on_file_gone, on_listed };

static void turn(void) {
        for (int i = 0; i < 3; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
}

static int64_t now_s; /* UTC, as the watch sees it */

static int64_t utc_s(void) {
        return now_s;
}

static void begin_with(struct watch_options options) {
        options.utc_s = utc_s;
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        catalog_init(&catalog);
        store = fake_store_new(&loop, "fake://logs");
        ck_assert_int_eq(catalog_add_source(&catalog, "logs", &store->store, &source), 0);
        ck_assert_int_eq(watch_new(&loop, source, &options, &events, &catalog, &watch), 0);
        removes = true;
        ck_assert_uint_eq(store->lists, 0); /* never from inside */
        turn();
        ck_assert_uint_eq(store->lists, options.poll_ns != POLL_ON_DEMAND);
}

static void begin(int64_t poll_ns) {
        begin_with((struct watch_options){ .poll_ns = poll_ns });
}

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

static void end(void) {
        bool closed = false;

        watch_close(watch, on_closed, &closed);
        store->store.operations->close(&store->store, NULL, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        catalog_deinit(&catalog);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
}

static void check_news(const char *expected) {
        ck_assert_str_eq(news, expected);
        news[0] = '\0';
}

/* Milliseconds until the watch does something by itself. */
static uint64_t wait_ms(void) {
        return uv_loop_alive(&loop) ? (uint64_t)uv_backend_timeout(&loop) : NOTHING;
}

static void list_now(void) {
        unsigned lists = store->lists;

        watch_now(watch);
        turn();
        ck_assert_uint_eq(store->lists, lists + 1);
}

struct row {
        const char *name;
        uint64_t size;
        int64_t mtime_ns;
};

#define LISTING(...) listing((const struct row[]){ __VA_ARGS__, { NULL, 0, 0 } })

static void listing(const struct row *rows) {
        for (; rows->name; rows++)
                fake_store_row(store, rows->name, rows->size, rows->mtime_ns);
        fake_store_listed(store, STORE_OK);
}

START_TEST(tells_what_changed) {
        begin(-1);
        LISTING({ "a/1", 10, 1 }, { "b/1", 10, 1 }, { "c/1", 10, 1 }, { "d/1", 10, 1 });
        check_news("+a/1 +b/1 +c/1 +d/1 .");
        ck_assert_int_eq(source->state, CATALOG_SOURCE_OK);
        list_now();
        LISTING({ "a/1", 11, 2 }, { "b/1", 9, 2 }, { "c/1", 10, 2 }, { "d/1", 10, 1 },
                { "e/1", 0, 1 });
        check_news(">a/1 <b/1 =c/1 +e/1 .");
        list_now();
        LISTING({ "a/1", 11, 2 }, { "b/1", 9, 2 }, { "c/1", 10, 2 }, { "d/1", 10, 1 },
                { "e/1", 0, 1 });
        check_news(".");
        ck_assert_uint_eq(source->listings, 3);
        ck_assert_uint_eq(source->attempts, 3);
        ck_assert_uint_eq(store->store.requests.total[REQUEST_LIST], 3);
        end();
}
END_TEST

/* Another inode, or a row that is older than what was known: it is for the reader to find out. */
START_TEST(what_may_be_another_file) {
        begin(-1);
        fake_store_tagged_row(store, "a/1", 10, 5, "1:1");
        fake_store_tagged_row(store, "b/1", 10, 5, "1:2");
        fake_store_listed(store, STORE_OK);
        list_now();
        fake_store_tagged_row(store, "a/1", 10, 4, "1:0"); /* a stale listing */
        fake_store_tagged_row(store, "b/1", 10, 6, "1:3");
        fake_store_listed(store, STORE_OK);
        check_news("+a/1 +b/1 . ~a/1 =b/1 .");
        store->store.tags_name_files = true;
        list_now();
        fake_store_tagged_row(store, "a/1", 10, 6, "1:0"); /* written over in place */
        fake_store_tagged_row(store, "b/1", 10, 6, "1:4"); /* replaced by a rename */
        fake_store_listed(store, STORE_OK);
        check_news("=a/1 ~b/1 .");
        end();
}
END_TEST

/* A listing without sizes. What an answer said meanwhile is kept. */
START_TEST(sizes_that_are_not_listed) {
        begin(-1);
        LISTING({ "a/1", UINT64_MAX, INT64_MIN }, { "b/1", UINT64_MAX, 1 });
        check_news("+a/1 +b/1 .");
        source->runs[0]->files[0]->listed_bytes = 100;
        source->runs[1]->files[0]->listed_bytes = 200;
        list_now();
        LISTING({ "a/1", UINT64_MAX, INT64_MIN }, { "b/1", UINT64_MAX, 1 });
        check_news("?a/1 .");
        list_now();
        LISTING({ "a/1", UINT64_MAX, INT64_MIN }, { "b/1", UINT64_MAX, 2 });
        check_news("?a/1 ?b/1 .");
        ck_assert_uint_eq(source->runs[0]->files[0]->listed_bytes, 100);
        ck_assert_uint_eq(source->runs[1]->files[0]->listed_bytes, 200);
        end();
}
END_TEST

/*
 * Nothing is told of it; it is in the catalog, settled. What is modified again is as a new file; what
 * was let through stays.
 */
START_TEST(what_filters_leave_out) {
        static char old[] = "old", second[] = "1970-01-01T00:00:05Z";
        char *exclude[] = { old, NULL };
        const struct config_filter options = { NULL, exclude, second };
        const struct catalog_file *file;

        begin(-1);
        ck_assert_int_eq(filter_new(&options, 0, &source->filter), 0);
        LISTING({ "a/1", 10, 5000000000 }, { "b/1", 10, 4999999999 }, { "old/1", 10, 5000000000 });
        check_news("+a/1 .");
        ck_assert_uint_eq(source->file_count, 3);
        ck_assert_uint_eq(source->excluded_count, 2);
        ck_assert_uint_eq(source->settled_count, 2);
        ck_assert(!catalog_run_is_excluded(source->runs[0]));
        file = source->runs[1]->files[0];
        ck_assert_int_eq(catalog_run_state(source->runs[1]), CATALOG_EXCLUDED);
        ck_assert_str_eq(file->excluded, "since 1970-01-01T00:00:05Z");
        ck_assert_uint_eq(file->listed_bytes, 10);
        ck_assert_str_eq(source->runs[2]->files[0]->excluded, "exclude old");
        list_now();
        LISTING({ "a/1", 10, 1 }, { "b/1", 11, 6000000000 }, { "old/1", 99, 6000000000 });
        check_news("~a/1 +b/1 .");
        ck_assert_ptr_null(file->excluded);
        ck_assert_int_eq(file->state, CATALOG_QUEUED);
        ck_assert(!file->settled);
        ck_assert_uint_eq(source->excluded_count, 1);
        list_now();
        LISTING({ "a/1", 10, 1 }, { "b/1", 11, 6000000000 });
        check_news(".");
        list_now();
        LISTING({ "a/1", 10, 1 }, { "b/1", 11, 6000000000 });
        check_news("-old/1 .");
        ck_assert_uint_eq(source->excluded_count, 0);
        ck_assert_uint_eq(source->settled_count, 0);
        end();
}
END_TEST

START_TEST(gone_after_two_complete_listings) {
        begin(-1);
        LISTING({ "a/1", 1, 1 }, { "a/2", 1, 1 }, { "b/1", 1, 1 });
        check_news("+a/1 +a/2 +b/1 .");
        list_now();
        LISTING({ "a/1", 1, 1 });
        check_news(".");
        ck_assert_uint_eq(source->file_count, 3);
        ck_assert_uint_eq(wait_ms(), 2000); /* looks again soon, even without polls */
        list_now();
        LISTING({ "a/1", 1, 1 });
        check_news("-b/1 -a/2 .");
        ck_assert_uint_eq(source->file_count, 1);
        ck_assert_uint_eq(source->run_count, 1);
        ck_assert_uint_eq(wait_ms(), NOTHING);
        end();
}
END_TEST

START_TEST(back_before_it_is_gone) {
        begin(-1);
        LISTING({ "a/1", 1, 1 });
        list_now();
        fake_store_listed(store, STORE_OK);
        list_now();
        LISTING({ "a/1", 1, 1 });
        list_now();
        fake_store_listed(store, STORE_OK);
        check_news("+a/1 . . . .");
        list_now();
        fake_store_listed(store, STORE_OK);
        check_news("-a/1 .");
        end();
}
END_TEST

START_TEST(back_after_it_was_gone) {
        begin(-1);
        removes = false; /* a decoder still has something of it */
        LISTING({ "a/1", 5, 1 });
        list_now();
        fake_store_listed(store, STORE_OK);
        list_now();
        fake_store_listed(store, STORE_OK);
        check_news("+a/1 . . -a/1 .");
        list_now();
        fake_store_listed(store, STORE_OK); /* is told once */
        check_news(".");
        list_now();
        LISTING({ "a/1", 5, 1 });
        check_news("+a/1 .");
        end();
}
END_TEST

START_TEST(failures_remove_nothing) {
        begin(-1);
        LISTING({ "a/1", 1, 1 }, { "b/1", 1, 1 });
        check_news("+a/1 +b/1 .");
        for (int i = 0; i < 5; i++) {
                list_now();
                fake_store_row(store, "a/1", 1, 1);
                fake_store_listed(store, i % 2 ? STORE_TRANSIENT : STORE_PERMANENT);
        }
        check_news("! ! ! ! !");
        ck_assert_uint_eq(source->file_count, 2);
        ck_assert_uint_eq(source->listings, 1);
        ck_assert_uint_eq(source->attempts, 6);
        ck_assert_str_eq(source->failure.code, "fake");
        list_now();
        LISTING({ "a/1", 1, 1 }, { "b/1", 1, 1 });
        check_news(".");
        ck_assert_int_eq(source->state, CATALOG_SOURCE_OK);
        ck_assert_str_eq(source->failure.code, "");
        end();
}
END_TEST

START_TEST(what_lies_in_unreadable_directories_is_kept) {
        begin(-1);
        LISTING({ "a/1", 1, 1 }, { "a/b/1", 1, 1 }, { "ab/1", 1, 1 }, { "c/1", 1, 1 });
        check_news("+a/1 +a/b/1 +ab/1 +c/1 .");
        for (int i = 0; i < 2; i++) {
                list_now();
                fake_store_unreadable(store, "a");
                LISTING({ "c/1", 1, 1 });
        }
        check_news(". -ab/1 .");
        ck_assert_uint_eq(source->unreadable_count, 1);
        /* Readable again: the count begins anew. */
        list_now();
        LISTING({ "c/1", 1, 1 });
        check_news(".");
        ck_assert_uint_eq(source->unreadable_count, 0);
        list_now();
        LISTING({ "c/1", 1, 1 });
        check_news("-a/b/1 -a/1 .");
        end();
}
END_TEST

START_TEST(backs_off_and_gives_up_after_ten) {
        uint64_t most = 100;

        begin(-1);
        for (unsigned i = 1; i <= 9; i++) {
                fake_store_listed(store, STORE_TRANSIENT);
                ck_assert_int_eq(source->state, CATALOG_SOURCE_LOADING);
                ck_assert_uint_ge(wait_ms(), most / 2);
                ck_assert_uint_le(wait_ms(), most);
                most = min_u64(2 * most, 5000);
                list_now();
        }
        fake_store_listed(store, STORE_TRANSIENT);
        ck_assert_int_eq(source->state, CATALOG_SOURCE_FAILING);
        ck_assert_uint_eq(wait_ms(), 10000); /* it never ends */
        list_now();
        fake_store_listed(store, STORE_OK);
        ck_assert_int_eq(source->state, CATALOG_SOURCE_OK);
        list_now();
        fake_store_listed(store, STORE_TRANSIENT); /* the count begins anew */
        ck_assert_uint_le(wait_ms(), 100);
        end();
}
END_TEST

START_TEST(a_refusal_gives_up_at_once) {
        begin(-1);
        fake_store_listed(store, STORE_PERMANENT);
        check_news("!");
        ck_assert_int_eq(source->state, CATALOG_SOURCE_FAILING);
        ck_assert_uint_eq(wait_ms(), 10000);
        end();
}
END_TEST

START_TEST(a_listing_that_cannot_start_is_a_failure) {
        begin(-1);
        fake_store_listed(store, STORE_OK);
        check_news(".");
        store->list_error = -ENOMEM;
        watch_now(watch);
        turn();
        check_news("!");
        ck_assert_uint_eq(source->attempts, 2);
        ck_assert_uint_le(wait_ms(), 100);
        end();
}
END_TEST

/* Nobody may take a listing for complete that brought a file which could not be kept. */
START_TEST(a_change_that_cannot_be_kept_comes_again) {
        begin(-1);
        fake_store_row(store, "a/1", 1, 1);
        change_error = -ENOMEM;
        fake_store_row(store, "b/1", 1, 1);
        change_error = 0;
        fake_store_row(store, "c/1", 1, 1);
        fake_store_listed(store, STORE_OK);
        check_news("+a/1 +b/1 +c/1 !");
        ck_assert_uint_eq(source->listings, 0);
        ck_assert_str_eq(source->failure.code, "ENOMEM");
        list_now();
        LISTING({ "a/1", 1, 1 }, { "b/1", 1, 1 }, { "c/1", 1, 1 });
        check_news("+b/1 .");
        end();
}
END_TEST

/* The intervals are those of poll.h. */
START_TEST(polls_at_the_pace_of_who_is_there) {
        begin(POLL_AUTO);
        LISTING({ "a/1", 1, 1 });
        ck_assert_uint_eq(wait_ms(), 60000);
        watch_set_interest(watch, WATCH_FOLLOWED);
        ck_assert_uint_eq(wait_ms(), 2200); /* the first minute counts as waited */
        list_now();
        LISTING({ "a/1", 2, 2 });
        ck_assert_uint_eq(wait_ms(), 1000);
        for (int i = 0; i < 150; i++) {
                list_now();
                LISTING({ "a/1", 2, 2 });
                ck_assert_uint_le(wait_ms(), i < 100 ? 3000 : 60000);
        }
        ck_assert_uint_eq(wait_ms(), 60000);
        list_now();
        LISTING({ "a/1", 3, 3 });
        ck_assert_uint_eq(wait_ms(), 1000);
        list_now();
        watch_set_interest(watch, WATCH_NOBODY);
        LISTING({ "a/1", 3, 3 });
        ck_assert_uint_eq(wait_ms(), 60000);
        end();
}
END_TEST

/* Ten minutes after the last request there is nothing at all; the next request brings one listing. */
START_TEST(rests_until_somebody_asks) {
        begin(POLL_AUTO);
        for (int i = 0; i < 10; i++) {
                LISTING({ "a/1", 1, 1 });
                ck_assert_uint_eq(wait_ms(), 60000);
                ck_assert_int_eq(watch_polling(watch), WATCH_POLLING_ON);
                list_now();
        }
        LISTING({ "a/1", 1, 1 });
        ck_assert_uint_eq(wait_ms(), NOTHING);
        ck_assert_int_eq(watch_polling(watch), WATCH_POLLING_RESTS);
        source->listed_at_ns = 0;
        watch_ask(watch);
        watch_ask(watch);
        ck_assert_uint_eq(wait_ms(), 0);
        turn();
        watch_ask(watch);
        ck_assert_uint_eq(store->lists, 12);
        LISTING({ "a/1", 1, 1 });
        ck_assert_uint_eq(wait_ms(), 60000);
        watch_ask(watch); /* a poll will come: that will do */
        ck_assert_uint_eq(wait_ms(), 60000);
        end();
}
END_TEST

/* Who follows after it has rested sees what is there at once. */
START_TEST(wakes_for_who_follows) {
        begin(POLL_AUTO);
        for (int i = 0; i < 10; i++) {
                LISTING({ "a/1", 1, 1 });
                list_now();
        }
        LISTING({ "a/1", 1, 1 });
        ck_assert_uint_eq(wait_ms(), NOTHING);
        source->listed_at_ns = 0;
        watch_set_interest(watch, WATCH_FOLLOWED);
        ck_assert_uint_eq(wait_ms(), 0);
        turn();
        ck_assert_uint_eq(store->lists, 12);
        end();
}
END_TEST

/* A source that cannot be listed is not asked for ever when nobody wants it. */
START_TEST(failures_rest_too) {
        unsigned lists;

        begin(POLL_AUTO);
        fake_store_listed(store, STORE_PERMANENT);
        for (lists = 1; wait_ms() != NOTHING && lists < 1000; lists++) {
                ck_assert_uint_eq(wait_ms(), 10000);
                list_now();
                fake_store_listed(store, STORE_PERMANENT);
        }
        ck_assert_uint_eq(lists, 61);
        watch_ask(watch);
        ck_assert_uint_eq(wait_ms(), 0);
        turn();
        LISTING({ "a/1", 1, 1 });
        ck_assert_int_eq(source->state, CATALOG_SOURCE_OK);
        end();
}
END_TEST

START_TEST(on_demand_lists_when_somebody_asks) {
        begin(POLL_ON_DEMAND);
        ck_assert_uint_eq(wait_ms(), NOTHING);
        ck_assert_int_eq(watch_polling(watch), WATCH_POLLING_RESTS);
        watch_ask(watch);
        turn();
        ck_assert_uint_eq(store->lists, 1);
        LISTING({ "a/1", 1, 1 });
        watch_set_interest(watch, WATCH_FOLLOWED);
        ck_assert_uint_eq(wait_ms(), NOTHING);
        watch_ask(watch); /* it was just listed */
        ck_assert_uint_eq(wait_ms(), NOTHING);
        source->listed_at_ns = 0;
        watch_ask(watch);
        turn();
        ck_assert_uint_eq(store->lists, 2);
        LISTING({ "a/1", 1, 1 });
        ck_assert_uint_eq(wait_ms(), NOTHING);
        end();
}
END_TEST

START_TEST(never_lists_only_when_told_to) {
        begin(POLL_NEVER);
        LISTING({ "a/1", 1, 1 });
        source->listed_at_ns = 0;
        watch_set_interest(watch, WATCH_FOLLOWED);
        watch_ask(watch);
        ck_assert_uint_eq(wait_ms(), NOTHING);
        ck_assert_int_eq(watch_polling(watch), WATCH_POLLING_OFF);
        list_now();
        end();
}
END_TEST

#define MIDNIGHT (20000 * 86400ll)

/* Reads count as well, and those of other sources at the same endpoint. */
START_TEST(stops_when_the_day_has_had_its_requests) {
        struct fake_store *other_store;
        struct catalog_source *other;

        now_s = MIDNIGHT - 100;
        begin_with(
                (struct watch_options){ .poll_ns = 5 * 1000000000ll, .requests_per_day_max = 10 });
        other_store = fake_store_new(&loop, "fake://other");
        ck_assert_int_eq(catalog_add_source(&catalog, NULL, &other_store->store, &other), 0);
        LISTING({ "a/1", 1, 1 });
        ck_assert_uint_eq(wait_ms(), 5000);
        request_count_add(&store->store.requests, REQUEST_READ, 4, now_s);
        request_count_add(&other_store->store.requests, REQUEST_READ, 3, now_s);
        list_now();
        LISTING({ "a/1", 1, 1 });
        ck_assert_int_eq(watch_polling(watch), WATCH_POLLING_ON); /* nine */
        list_now();
        LISTING({ "a/1", 1, 1 });
        ck_assert_int_eq(watch_polling(watch), WATCH_POLLING_STOPPED);
        ck_assert_uint_eq(wait_ms(), 100000);
        source->listed_at_ns = 0;
        watch_ask(watch);
        ck_assert_uint_eq(wait_ms(), 100000);
        list_now(); /* reload: somebody wants it nevertheless */
        fake_store_listed(store, STORE_TRANSIENT);
        ck_assert_uint_eq(wait_ms(), 100000);
        now_s = MIDNIGHT;
        list_now();
        LISTING({ "a/1", 1, 1 });
        ck_assert_int_eq(watch_polling(watch), WATCH_POLLING_ON);
        ck_assert_uint_eq(wait_ms(), 5000);
        other_store->store.operations->close(&other_store->store, NULL, NULL);
        end();
}
END_TEST

/*
 * An event leads to a listing, as soon as the last one's cost allows; what happens while it runs, to
 * another one. A file that is missing after a deletion was told of is gone at once.
 */
START_TEST(events_lead_to_listings) {
        begin(POLL_AUTO);
        LISTING({ "a/1", 10, 1 }, { "b/1", 10, 1 });
        check_news("+a/1 +b/1 .");
        store->tells = true;
        store->store.mount.is_local = true;
        watch_set_interest(watch, WATCH_FOLLOWED);
        ck_assert(watch_hears(watch));
        ck_assert_ptr_nonnull(store->on_change);
        turn();
        LISTING({ "a/1", 10, 1 }, { "b/1", 10, 1 }); /* which tells the store its directories */
        check_news(".");
        ck_assert_uint_gt(wait_ms(), 500);
        store->on_change(store->change_userdata, false);
        ck_assert_uint_le(wait_ms(), 20); /* the rest after a listing that took no time */
        uv_run(&loop, UV_RUN_ONCE);
        ck_assert_uint_eq(store->lists, 3);
        store->on_change(store->change_userdata, true); /* while it runs */
        LISTING({ "b/1", 10, 1 });
        check_news("."); /* it began before the deletion */
        ck_assert_uint_le(wait_ms(), 20);
        uv_run(&loop, UV_RUN_ONCE);
        ck_assert_uint_eq(store->lists, 4);
        LISTING({ "b/1", 10, 1 });
        check_news("-a/1 .");
        store->on_change(store->change_userdata, true);
        uv_run(&loop, UV_RUN_ONCE);
        fake_store_unreadable(store, "b"); /* nobody knows whether it is there */
        fake_store_listed(store, STORE_OK);
        check_news(".");
        watch_set_interest(watch, WATCH_NOBODY);
        ck_assert_ptr_null(store->on_change);
        ck_assert(!watch_hears(watch));
        end();
}
END_TEST

START_TEST(events_are_not_for_all) {
        begin(POLL_NEVER);
        LISTING({ "a/1", 10, 1 });
        store->tells = true;
        watch_set_interest(watch, WATCH_FOLLOWED);
        ck_assert_ptr_null(store->on_change); /* nobody wants it looked at */
        end();
        news[0] = '\0';
        begin(POLL_AUTO);
        LISTING({ "a/1", 10, 1 });
        store->tells = true;
        strcpy(store->store.mount.type, "nfs"); /* others' changes make no events there */
        watch_set_interest(watch, WATCH_FOLLOWED);
        ck_assert_ptr_null(store->on_change);
        end();
}
END_TEST

START_TEST(polls_at_the_configured_interval) {
        begin(250 * 1000000);
        LISTING({ "a/1", 1, 1 });
        ck_assert_uint_eq(wait_ms(), 250);
        watch_set_interest(watch, WATCH_NOBODY);
        ck_assert_uint_eq(wait_ms(), 250);
        end();
}
END_TEST

/*
 * What is asked for while a listing is under way needs one that begins later, also when the first
 * one fails.
 */
START_TEST(a_request_meanwhile_is_not_lost) {
        begin(-1);
        ck_assert_uint_eq(watch_next_attempt(watch), 2);
        watch_now(watch);
        watch_now(watch);
        turn();
        ck_assert_uint_eq(store->lists, 1);
        fake_store_listed(store, STORE_OK);
        ck_assert_uint_eq(wait_ms(), 0);
        turn();
        ck_assert_uint_eq(store->lists, 2);
        ck_assert_uint_eq(watch_next_attempt(watch), 3);
        watch_now(watch);
        fake_store_listed(store, STORE_PERMANENT);
        ck_assert_uint_eq(wait_ms(), 0);
        turn();
        ck_assert_uint_eq(store->lists, 3);
        fake_store_listed(store, STORE_PERMANENT);
        ck_assert_uint_eq(wait_ms(), 10000);
        ck_assert_uint_eq(watch_next_attempt(watch), 4);
        end();
}
END_TEST

START_TEST(closes_at_any_moment) {
        begin(-1);
        fake_store_row(store, "a/1", 1, 1);
        end(); /* in the middle of a listing */
        begin(-1);
        fake_store_listed(store, STORE_TRANSIENT);
        end(); /* while it waits to try again */
}
END_TEST

RUNNER_MAIN("discover/watch", tells_what_changed, what_may_be_another_file,
            sizes_that_are_not_listed, what_filters_leave_out, gone_after_two_complete_listings,
            back_before_it_is_gone, back_after_it_was_gone, failures_remove_nothing,
            what_lies_in_unreadable_directories_is_kept, backs_off_and_gives_up_after_ten,
            a_refusal_gives_up_at_once, a_listing_that_cannot_start_is_a_failure,
            a_change_that_cannot_be_kept_comes_again, polls_at_the_pace_of_who_is_there,
            rests_until_somebody_asks, wakes_for_who_follows, failures_rest_too,
            on_demand_lists_when_somebody_asks, never_lists_only_when_told_to,
            stops_when_the_day_has_had_its_requests, events_lead_to_listings,
            events_are_not_for_all, polls_at_the_configured_interval,
            a_request_meanwhile_is_not_lost, closes_at_any_moment)
