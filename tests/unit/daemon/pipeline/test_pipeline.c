/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the ring (docs/RING.md), one by one, on a pipeline of which the test decides each
 * answer and each acknowledgement. The ring has 64 segments of 64 KiB and one decoder: a surplus of
 * 8 segments, a read-ahead of 256 KiB.
 */
#include "daemon/pipeline/pipeline.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "daemon/discover/watch.h"
#include "daemon/pipeline/pipeline_state.h"
#include "tests/unit/daemon/pipeline/rig.h"
#include "tests/unit/runner.h"

RIG_STORE_OPEN

#define SEGMENTS 64u
#define SURPLUS 8u
#define FLOOR 2u
#define ALONE (FLOOR + SURPLUS / 2) /* what one session may hold */
/* About 45 bytes of the file and 64 of the ring for each step. */
#define STEPS_OF_A_RING (RIG_RING_BYTES / 64)

static const struct reader_options following = { .from = READER_FROM_START, .follow = true };

/* Acknowledges all that comes, answers all that is asked for. */
static void drain(struct session *session) {
        do {
                rig_answer_all();
                session_acknowledge(session, session->pushed);
        } while (rig.store->read_count > 0 || session->acked < session->pushed);
}

/* Likewise, but says so only when it is asked for, as a client with timers off. */
static void drain_as_client(struct session *session) {
        for (;;) {
                rig_answer_all();
                if (session->acked == session->pushed)
                        return;
                /* One at a time: each may be the one that matters. */
                session_acknowledge_as_client(session, session->acked + 1);
        }
}

static uint64_t ring_used(void) {
        struct ring_status status;

        ring_status(pipeline_ring(rig.pipeline), &status);
        return status.segments_used;
}

static uint64_t refetched(void) {
        return pipeline_counters(rig.pipeline)->refetched_blocks;
}

/* --- Straight through --- */

START_TEST(one_read_for_a_small_file) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 100);
        rig_list();
        ck_assert_uint_eq(rig.store->read_count, 1); /* without a session, too */
        ck_assert_uint_eq(rig.store->reads[0]->offset, 0);
        ck_assert_uint_eq(rig.store->reads[0]->size, file->events.size + 65535);
        rig_answer(0);
        ck_assert(rig_catalog_file(file)->settled);
        ck_assert_uint_eq(rig_catalog_file(file)->loaded_bytes, file->events.size);
        session_begin(&session, NULL);
        rig_quiet();
        session_must_be_complete(&session);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_eq(session.entries[0].entry.flags, RING_ENTRY_REPLAY);
        session_end(&session);
        ck_assert_uint_eq(rig.store->reads_made, 1);
        rig_end();
}
END_TEST

/* Reads of parts overlap and end in any order. */
static void answer_in_order(unsigned which) {
        struct session session;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 30000);
        session_begin(&session, NULL);
        rig_list();
        ck_assert_uint_gt(rig.store->read_count, 4);
        while (rig.store->read_count > 0)
                rig_answer(which == 0   ? 0
                           : which == 1 ? rig.store->read_count - 1
                                        : rig.store->read_count / 2);
        drain(&session);
        session_must_be_complete(&session);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_eq(session.entries[0].entry.flags, 0); /* it was there first */
        session_end(&session);
        rig_end();
}

START_TEST(parts_are_published_in_file_order) {
        for (unsigned which = 0; which < 3; which++)
                answer_in_order(which);
}
END_TEST

START_TEST(files_of_a_run_come_in_name_order) {
        struct session session;
        struct rig_file *first, *second, *other;

        rig_begin(NULL);
        second = rig_add_file("run/2.tfevents", 10);
        first = rig_add_file("run/1.tfevents", 10);
        other = rig_add_file("other/1.tfevents", 10);
        session_begin(&session, NULL);
        rig_list();
        rig_answer((unsigned)rig_read_of(second));
        ck_assert_uint_eq(session.pushed, 0);
        rig_answer((unsigned)rig_read_of(other)); /* runs come as they come */
        ck_assert_uint_eq(session.pushed, 1);
        rig_answer((unsigned)rig_read_of(first));
        ck_assert_uint_eq(session.pushed, 4);
        ck_assert_uint_eq(session.entries[1].entry.file_id, first->id);
        ck_assert_uint_eq(session.entries[2].entry.file_id, second->id);
        ck_assert_uint_eq(session.ends, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* ---- Who is first ---- */

static void begin_with_window(unsigned window) {
        struct pipeline_options options = rig_usual;

        options.window_start = options.connections_max = window;
        rig_begin(&options);
}

static struct rig_file *add_changed(const char *name, int64_t steps, int64_t mtime_ns) {
        struct rig_file *file = rig_add_file(name, steps);

        file->mtime_ns = mtime_ns;
        return file;
}

/* The file of the one read that is under way; answers it. */
static const char *next_read(void) {
        static char name[64];

        rig_quiet();
        ck_assert_uint_eq(rig.store->read_count, 1);
        snprintf(name, sizeof(name), "%s", rig.store->reads[0]->name);
        rig_answer(0);
        return name;
}

START_TEST(what_changed_last_comes_first) {
        struct session session;

        begin_with_window(1);
        add_changed("a/1.tfevents", 10, 1000);
        add_changed("b/1.tfevents", 10, 3000);
        add_changed("c/1.tfevents", 10, INT64_MIN);
        add_changed("d/1.tfevents", 10, 2000);
        session_begin(&session, NULL);
        rig_list();
        ck_assert_str_eq(next_read(), "b/1.tfevents");
        ck_assert_str_eq(next_read(), "d/1.tfevents");
        ck_assert_str_eq(next_read(), "a/1.tfevents");
        ck_assert_str_eq(next_read(), "c/1.tfevents");
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* Four places, three large files of two runs: each run has two. */
START_TEST(runs_take_turns) {
        struct pipeline_options options = rig_usual;
        struct session session;

        options.window_start = options.connections_max = 4;
        options.part_bytes = 64u << 10;
        rig_begin(&options);
        add_changed("a/1.tfevents", 20000, 2000);
        add_changed("a/2.tfevents", 20000, 2000);
        add_changed("b/1.tfevents", 20000, 1000);
        session_begin(&session, NULL);
        rig_list();
        rig_quiet();
        ck_assert_uint_eq(rig.store->read_count, 4);
        for (unsigned i = 0, of_a = 0; i < 4; i++) {
                of_a += rig.store->reads[i]->name[0] == 'a';
                if (i == 3)
                        ck_assert_uint_eq(of_a, 2);
        }
        drain(&session);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* Of one run, too, one file has half of the window at most while another one waits. */
START_TEST(one_file_has_half_of_the_window) {
        struct pipeline_options options = rig_usual;
        struct session session;

        options.window_start = options.connections_max = 8;
        options.part_bytes = 16u << 10;
        rig_begin(&options);
        rig_add_file("a/1.tfevents", 20000);
        rig_add_file("a/2.tfevents", 20000);
        session_begin(&session, NULL);
        rig_list();
        rig_quiet();
        ck_assert_uint_eq(rig.store->read_count, 8);
        for (unsigned i = 0, of_first = 0; i < 8; i++) {
                of_first += rig.store->reads[i]->name[2] == '1';
                if (i == 7)
                        ck_assert_uint_eq(of_first, 4);
        }
        drain(&session);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(growth_comes_before_what_is_new) {
        struct session session;
        struct rig_file *file;

        begin_with_window(1);
        file = add_changed("a/1.tfevents", 10, 1000);
        session_begin(&session, &following);
        rig_list();
        ck_assert_str_eq(next_read(), "a/1.tfevents");
        rig_append(file, 10);
        file->mtime_ns = 1500;
        add_changed("0/1.tfevents", 10, 9000);
        add_changed("new/1.tfevents", 10, 8000);
        rig_list_again();
        ck_assert_str_eq(next_read(), "a/1.tfevents");
        ck_assert_str_eq(next_read(), "0/1.tfevents");
        ck_assert_str_eq(next_read(), "new/1.tfevents");
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* From when it is said, for what is known and what is not yet. */
START_TEST(what_is_prioritized_comes_first) {
        static const char *const wanted[] = { "c", "d*" };
        struct reader_options sorted = { .order = READER_ORDER_SORTED };
        struct session session;

        begin_with_window(1);
        add_changed("a/1.tfevents", 10, 5000);
        add_changed("b/1.tfevents", 10, 4000);
        add_changed("c/1.tfevents", 10, 3000);
        session_begin(&session, &following);
        rig_list();
        rig_quiet();
        ck_assert_int_eq(reader_prioritize(session.reader, wanted, 2), 0);
        ck_assert_str_eq(next_read(), "a/1.tfevents"); /* was under way */
        add_changed("d2/1.tfevents", 10, 1000);
        rig_list_again();
        ck_assert_str_eq(next_read(), "c/1.tfevents");
        ck_assert_str_eq(next_read(), "d2/1.tfevents");
        ck_assert_str_eq(next_read(), "b/1.tfevents");
        session_must_be_complete(&session);
        session_end(&session);
        session_begin(&session, &sorted);
        ck_assert_int_eq(reader_prioritize(session.reader, wanted, 2), -EINVAL);
        session_end(&session);
        rig_end();
}
END_TEST

static void list_row(const struct rig_file *file) {
        fake_store_row(rig.store, file->name, file->listed, file->mtime_ns);
        rig_quiet();
}

/*
 * A listing that comes in the order of names holds nothing back: what it has given of a run is the
 * beginning of the run. But the stream ends when it has.
 */
START_TEST(an_ordered_listing_is_delivered_while_it_goes_on) {
        static const char *const names[] = { "a/1.tfevents", "a/2.tfevents", "b/1.tfevents" };
        struct reader_options now = { .from = READER_FROM_NOW };
        struct session session, late;

        for (unsigned is_flat = 0; is_flat < 2; is_flat++) {
                rig_begin(NULL);
                rig.store->store.is_flat = is_flat;
                for (unsigned i = 0; i < 3; i++)
                        rig_add_file(names[i], 10);
                session_begin(&session, NULL);
                session_begin(&late, &now);
                for (unsigned i = 0; i < 3; i++) {
                        list_row(&rig.files[i]);
                        rig_answer_all();
                        ck_assert_uint_eq(session.pushed, is_flat ? i + 1 : 0);
                }
                ck_assert_uint_eq(session.ends, 0);
                ck_assert_uint_eq(late.pushed, 0);
                rig_list();
                rig_answer_all();
                session_must_be_complete(&session);
                ck_assert_uint_eq(session.ends, 1);
                ck_assert_uint_eq(late.records, 0);
                for (unsigned i = 0; is_flat && i < 3; i++)
                        ck_assert_uint_eq(session.entries[i].entry.file_id, rig.files[i].id);
                session_end(&late);
                session_end(&session);
                rig_end();
        }
}
END_TEST

/* What could be read is delivered, and the ring has room for the rest, though all is not listed yet. */
START_TEST(a_long_listing_does_not_fill_the_ring) {
        struct session session;

        rig_begin(NULL);
        rig.store->store.is_flat = true;
        for (unsigned i = 0; i < 3; i++) {
                char name[32];

                snprintf(name, sizeof(name), "a/%u.tfevents", i);
                rig_add_file(name, STEPS_OF_A_RING);
        }
        session_begin(&session, NULL);
        for (unsigned i = 0; i < 3; i++) {
                list_row(&rig.files[i]);
                drain(&session);
                ck_assert_int_eq(session.next_step[i], STEPS_OF_A_RING);
        }
        rig_list();
        drain(&session);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(sorted_goes_by_run_and_file) {
        struct reader_options options = { .from = READER_FROM_START, .order = READER_ORDER_SORTED };
        static const char *const names[] = { "b/1.tfevents", "a/2.tfevents", "c/1.tfevents",
                                             "a/1.tfevents" };
        static const unsigned order[] = { 3, 1, 0, 2 };
        struct session session;

        rig_begin(NULL);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                rig_add_file(names[i], 10);
        session_begin(&session, &options);
        rig_list();
        rig_answer_all();
        session_must_be_complete(&session);
        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                ck_assert_uint_eq(session.entries[i].entry.file_id, rig.files[order[i]].id);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(filters_choose_runs_and_extents) {
        const char *runs[] = { "a*" }, *tags[] = { "other" };
        struct reader_options of_runs = { .runs = runs, .run_count = 1 },
                              of_tags = { .tags = tags, .tag_count = 1 };
        struct session one, two;

        rig_begin(NULL);
        rig_add_file("a1/1.tfevents", 10);
        rig_add_file("b1/1.tfevents", 10);
        events_scalar(&rig_add_file("c1/1.tfevents", 0)->events, 0, "other", 0);
        rig.files[2].steps = 1;
        rig.files[2].listed = rig.files[2].events.size;
        session_begin(&one, &of_runs);
        session_begin(&two, &of_tags);
        rig_list();
        rig_answer_all();
        ck_assert_uint_eq(one.pushed, 2);
        ck_assert_uint_eq(one.entries[0].entry.file_id, rig.files[0].id);
        ck_assert_uint_eq(two.pushed, 2);
        ck_assert_uint_eq(two.entries[0].entry.file_id, rig.files[2].id);
        ck_assert_uint_eq(two.ends, 1);
        session_end(&one);
        session_end(&two);
        rig_end();
}
END_TEST

START_TEST(an_empty_source_ends_at_once) {
        struct session session;

        rig_begin(NULL);
        session_begin(&session, NULL);
        rig_quiet();
        ck_assert_uint_eq(session.pushed, 0);
        rig_list();
        ck_assert_uint_eq(session.pushed, 1);
        ck_assert_uint_eq(session.ends, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* A stream sees what storage has when it begins. */
START_TEST(an_old_listing_is_repeated_for_a_new_session) {
        struct session session;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 3);
        rig_list();
        rig_answer_all();
        session_begin(&session, NULL);
        rig_quiet();
        ck_assert_uint_eq(session.ends, 1);
        session_end(&session);
        rig.stale = true;
        rig_add_file("run/2.tfevents", 3);
        session_begin(&session, NULL);
        rig_quiet();
        ck_assert_uint_eq(session.pushed, 0);
        rig_list();
        rig_answer_all();
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* --- Storage that fails --- */

START_TEST(settled_files_hold_nothing_back_and_come_late) {
        struct session session;
        struct rig_file *first;

        rig_begin(NULL);
        first = rig_add_file("run/1.tfevents", 10);
        rig_add_file("run/2.tfevents", 10);
        session_begin(&session, &following);
        rig_list();
        fake_store_fail(rig.store, (unsigned)rig_read_of(first), STORE_PERMANENT, "403");
        rig_answer_all();
        ck_assert_uint_eq(rig.failed_files, 1);
        ck_assert(rig_catalog_file(first)->settled);
        ck_assert_int_eq(rig_catalog_file(first)->state, CATALOG_UNREADABLE);
        ck_assert_uint_eq(session.pushed, 1); /* of the second one */
        ck_assert_uint_eq(session.entries[0].entry.flags, 0);
        first->mtime_ns++;
        rig_list_again();
        rig_answer_all();
        session_must_be_complete(&session);
        ck_assert_uint_eq(session.entries[1].entry.flags, RING_ENTRY_LATE);
        session_end(&session);
        rig_end();
}
END_TEST

#define HOUR_NS (3600 * 1000000000ull)

static uint64_t fake_now_ns;

static uint64_t fake_now(void) {
        return fake_now_ns;
}

/* As long as the listing says the same it is asked for once an hour, and nobody waits for it. */
START_TEST(archived_files_are_tried_once_an_hour) {
        struct pipeline_options options = rig_usual;
        struct session session;
        struct rig_file *file;

        options.now_ns = fake_now;
        rig_begin(&options);
        file = rig_add_file("run/1.tfevents", 10);
        file->archived = true;
        session_begin(&session, NULL);
        rig_list();
        for (unsigned tries = 1; tries <= 20; tries++) {
                ck_assert_uint_eq(rig.store->reads_made, tries);
                fake_store_fail(rig.store, 0, STORE_PERMANENT, "archived");
                rig_quiet();
                ck_assert_int_eq(rig_catalog_file(file)->state, CATALOG_ARCHIVED);
                ck_assert(rig_catalog_file(file)->settled);
                ck_assert_uint_eq(session.ends, 1);
                fake_now_ns += HOUR_NS - 1;
                pipeline_retry_due(rig.pipeline);
                rig_list_again();
                ck_assert_uint_eq(rig.store->reads_made, tries);
                fake_now_ns++;
                pipeline_retry_due(rig.pipeline);
                rig_quiet();
        }
        ck_assert_uint_eq(rig.failed_files, 1); /* that is told once */
        session_end(&session);
        session_begin(&session, NULL);
        rig_answer_all(); /* it was brought back for some days, of which listings do not speak */
        ck_assert_int_eq(rig_catalog_file(file)->state, CATALOG_LOADED);
        ck_assert_ptr_null(rig_catalog_file(file)->failure);
        session_must_be_complete(&session);
        fake_now_ns += 2 * HOUR_NS;
        pipeline_retry_due(rig.pipeline);
        rig_quiet();
        ck_assert_uint_eq(rig.store->reads_made, 21);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(archived_files_are_read_when_the_listing_says_otherwise) {
        struct session session;
        struct rig_file *file, *other;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        other = rig_add_file("run/2.tfevents", 10);
        file->archived = other->archived = true;
        session_begin(&session, &following);
        rig_list();
        fake_store_fail(rig.store, (unsigned)rig_read_of(file), STORE_PERMANENT, "archived");
        rig_answer_all(); /* the other one can be read, whatever its class is */
        ck_assert_int_eq(rig_catalog_file(file)->state, CATALOG_ARCHIVED);
        ck_assert_int_eq(rig_catalog_file(other)->state, CATALOG_LOADED);
        file->archived = other->archived = false; /* and nothing else: neither time nor tag */
        rig_list_again();
        ck_assert_uint_eq(rig.store->reads_made, 3);
        rig_answer_all();
        ck_assert_uint_eq(rig.store->reads_made, 3);
        ck_assert_uint_eq(session.replaced, 0);
        session_must_be_complete(&session);
        other->archived = true; /* what was read stands */
        rig_list_again();
        ck_assert_int_eq(rig_catalog_file(other)->state, CATALOG_LOADED);
        ck_assert_uint_eq(rig.store->reads_made, 3);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(a_source_that_cannot_be_listed_ends_streams) {
        struct session session, follower;

        rig_begin(NULL);
        session_begin(&session, NULL);
        session_begin(&follower, &following);
        fake_store_listed(rig.store, STORE_PERMANENT);
        rig_quiet();
        ck_assert_uint_eq(rig.failing, 1);
        ck_assert_uint_eq(session.sources_failed, 1);
        ck_assert_uint_eq(follower.sources_failed, 0);
        rig_add_file("run/1.tfevents", 3);
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(rig.recovered, 1);
        session_must_be_complete(&follower);
        ck_assert_uint_eq(session.pushed, 0);
        session_end(&session);
        session_end(&follower);
        rig_end();
}
END_TEST

/* --- Damage --- */

static uint64_t reread(void) {
        return pipeline_counters(rig.pipeline)->reread_ranges;
}

START_TEST(damage_is_told_and_the_rest_delivered) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        file->events.bytes[file->events.last_offset + 20] ^= 1;
        rig_append(file, 10);
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        rig_answer_all();
        ck_assert_uint_eq(rig.damaged, 1);
        ck_assert_uint_eq(session.records, 1 + 19);
        ck_assert(!(session.entries[0].entry.flags & RING_ENTRY_DAMAGED));
        ck_assert(session.entries[1].entry.flags & RING_ENTRY_DAMAGED);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_eq(reread(), 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* A length and a payload. */
START_TEST(what_was_read_wrongly_is_read_again) {
        static const uint64_t places[] = { 4, 20 };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                struct session session;
                struct rig_file *file;
                uint64_t place;

                rig_begin(NULL);
                file = rig_add_file("run/1.tfevents", 10);
                place = file->events.last_offset + places[i];
                rig_append(file, 10);
                session_begin(&session, NULL);
                rig_list();
                file->events.bytes[place] ^= 1;
                rig_answer(0);
                ck_assert_uint_eq(session.records, 1 + 9); /* what stands before it */
                ck_assert_uint_eq(rig.store->read_count, 1);
                file->events.bytes[place] ^= 1;
                rig_answer(0);
                session_must_be_complete(&session);
                ck_assert_uint_eq(rig.damaged, 0);
                ck_assert_uint_eq(rig.store->reads_made, 2);
                session_end(&session);
                rig_end();
        }
}
END_TEST

/* However much of a part is damaged, it is read once more; twice where it may be just being written. */
START_TEST(a_damaged_part_is_read_again_once) {
        static const uint64_t places[] = { 4, 20 };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                struct session session;
                struct rig_file *file;

                rig_begin(NULL);
                file = rig_add_file("run/1.tfevents", 1);
                for (int k = 0; k < 100; k++) {
                        rig_append(file, 1);
                        file->events.bytes[file->events.last_offset + places[i]] ^= 1;
                        rig_append(file, 1);
                }
                file->mtime_ns = INT64_MIN; /* not known */
                session_begin(&session, NULL);
                session.any_step = true;
                rig_list();
                rig_answer_all();
                ck_assert_uint_eq(session.records, 1 + 1 + 100);
                ck_assert_uint_eq(session.ends, 1);
                ck_assert_uint_eq(pipeline_counters(rig.pipeline)->damaged, 100);
                ck_assert_uint_eq(rig.store->reads_made, i == 0 ? 3 : 2);
                session_end(&session);
                rig_end();
        }
}
END_TEST

/* A file that nobody has written to for long is not just being written. */
START_TEST(an_old_file_is_read_again_once) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        file->mtime_ns = INT64_C(1500000000000000000);
        file->events.bytes[file->events.last_offset + 4] ^= 1;
        rig_append(file, 10);
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        rig_answer_all();
        ck_assert_uint_eq(rig.store->reads_made, 2);
        ck_assert_uint_eq(rig.damaged, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* A damaged place that a border between parts cuts; what comes behind it is not asked for again. */
START_TEST(damage_across_a_border_of_parts_is_read_again) {
        struct session session;
        struct rig_file *file;
        uint64_t part = 128u << 10;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 1);
        while (file->events.size < part - 20)
                rig_append(file, 1);
        rig_append(file, 1);
        ck_assert_uint_lt(file->events.last_offset, part);
        ck_assert_uint_gt(file->events.size, part);
        file->events.bytes[file->events.last_offset + 20] ^= 1;
        rig_append(file, (int64_t)(3 * part / 45));
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        drain(&session);
        ck_assert_uint_eq(session.records, 1 + (uint64_t)file->steps - 1);
        ck_assert_uint_eq(rig.damaged, 1);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_eq(reread(), 1);
        ck_assert_uint_le(rig.store->bytes_read, file->events.size + part + 2 * 65536u);
        session_end(&session);
        rig_end();
}
END_TEST

/* Reads that never agree do not go on for ever. */
START_TEST(bytes_that_change_at_every_read_are_believed_in_the_end) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        rig_append(file, 10);
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        for (unsigned count = 0; rig.store->read_count > 0; count++) {
                ck_assert_uint_lt(count, 10);
                file->events.bytes[file->events.last_offset + 20]++;
                file->events.bytes[file->events.last_offset + 21] |= 1;
                rig_answer(0);
        }
        ck_assert_uint_eq(session.records, 1 + 19);
        ck_assert_uint_eq(rig.damaged, 1);
        ck_assert_uint_eq(session.ends, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/*
 * A file is written over in its place while it is read, and nothing but its bytes says so: what
 * looks damaged is the middle of another version.
 */
START_TEST(a_file_that_is_written_over_is_not_taken_for_a_damaged_one) {
        uint64_t part = 128u << 10;
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", (int64_t)(3 * part / 45));
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        ck_assert_uint_gt(rig.store->read_count, 1);
        rig_answer(0);
        ck_assert_uint_gt(session.records, 1);
        events_free(&file->events);
        file->events = (struct events){ 0 };
        file->steps = 0;
        events_version(&file->events);
        events_string(&file->events, 0, "other", 5);
        rig_append(file, (int64_t)(3 * part / 45));
        drain(&session);
        ck_assert_uint_eq(rig_catalog_file(file)->records, 2 + (uint64_t)file->steps);
        ck_assert_uint_eq(rig_catalog_file(file)->replacements, 1);
        ck_assert_uint_eq(session.replaced, 1);
        ck_assert_uint_eq(session.ends, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* The file goes, or is another one, or the daemon ends, while a part waits for being read again. */
START_TEST(a_file_may_go_while_it_is_read_again) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        file->events.bytes[file->events.last_offset + 20] ^= 1;
        session_begin(&session, &following);
        rig_list();
        rig_answer(0);
        ck_assert_uint_eq(rig.store->read_count, 1);
        file->hidden = true;
        rig_list_again();
        rig_list_again();
        ck_assert_uint_eq(rig.store->read_count, 0);
        ck_assert_uint_eq(session.gone, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* --- Demand --- */

START_TEST(without_a_session_until_the_ring_is_full) {
        struct session session;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 3 * STEPS_OF_A_RING);
        rig_list();
        rig_answer_all();
        ck_assert_uint_eq(pipeline_counters(rig.pipeline)->recycled_segments, 0);
        ck_assert_uint_ge(ring_used(), SEGMENTS * 3 / 4);
        session_begin(&session, NULL);
        rig_quiet();
        drain(&session);
        session_must_be_complete(&session);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_eq(refetched(), 0);
        session_end(&session);
        rig_end();
}
END_TEST

/* Both wake-ups with timers off: resident data of three times the quota. */
START_TEST(resident_data_of_three_quotas_drains) {
        struct session session;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 3 * ALONE * (RIG_SEGMENT_BYTES / 64));
        rig_list();
        rig_answer_all();
        session_begin(&session, NULL);
        rig_quiet();
        ck_assert_uint_eq(session_held(&session), ALONE);
        drain_as_client(&session);
        session_must_be_complete(&session);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_gt(session.kicks, 0);
        session_end(&session);
        rig_end();
}
END_TEST

/* And three times the ring, from storage. */
START_TEST(three_rings_drain) {
        struct session session;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 3 * STEPS_OF_A_RING);
        session_begin(&session, NULL);
        rig_list();
        drain_as_client(&session);
        session_must_be_complete(&session);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_eq(refetched(), 0);
        ck_assert_uint_gt(pipeline_counters(rig.pipeline)->recycled_segments, SEGMENTS);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(three_rings_of_small_files_drain) {
        char name[32];
        struct session session;

        rig_begin(NULL);
        for (unsigned i = 0; i < 60; i++) {
                snprintf(name, sizeof(name), "run%u/%02u.tfevents", i % 7, i);
                rig_add_file(name, 3 * STEPS_OF_A_RING / 60);
        }
        session_begin(&session, NULL);
        rig_list();
        drain_as_client(&session);
        session_must_be_complete(&session);
        ck_assert_uint_eq(session.ends, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* A queue that is full waits for one entry. */
START_TEST(a_full_queue_goes_on_entry_by_entry) {
        struct session session;
        char name[32];

        rig_begin(NULL);
        for (unsigned i = 0; i < 20; i++) {
                snprintf(name, sizeof(name), "run%02u/1.tfevents", i);
                rig_add_file(name, 3);
        }
        session_begin(&session, NULL);
        session.queue_entries = 1;
        rig_list();
        rig_answer_all();
        for (uint64_t i = 0; i < 20; i++) {
                ck_assert_uint_eq(session.pushed, i + 1);
                ck_assert_uint_eq(session.kick_at, i + 1);
                ck_assert(session_acknowledge_as_client(&session, i + 1));
        }
        ck_assert_uint_eq(session.ends, 1);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(nonsense_in_the_acknowledgements_breaks_the_session) {
        struct session session, other;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", STEPS_OF_A_RING / 2);
        session_begin(&session, NULL);
        session_begin(&other, NULL);
        session.lie = 1000000;
        rig_list();
        drain(&other);
        ck_assert_int_eq(session.error, -EPROTO);
        ck_assert_int_eq(reader_acknowledge(session.reader, session.pushed + 1), -EPROTO);
        ck_assert_int_eq(reader_acknowledge(session.reader, 0), 0);
        session_must_be_complete(&other);
        session_end(&session);
        session_end(&other);
        rig_end();
}
END_TEST

/* --- Quota --- */

START_TEST(a_stopped_session_holds_its_quota_and_no_more) {
        struct session stopped, running;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 3 * STEPS_OF_A_RING);
        session_begin(&stopped, NULL);
        session_begin(&running, NULL);
        rig_list();
        do {
                rig_answer_all();
                ck_assert_uint_le(session_held(&stopped), ALONE);
                session_acknowledge(&running, running.pushed);
        } while (rig.store->read_count > 0 || running.acked < running.pushed);
        session_must_be_complete(&running);
        ck_assert_uint_eq(running.ends, 1);
        ck_assert_uint_ge(session_held(&stopped), FLOOR);
        /* It goes on where it was, from storage. */
        drain(&stopped);
        session_must_be_complete(&stopped);
        ck_assert_uint_gt(refetched(), 0);
        session_end(&running);
        session_end(&stopped);
        rig_end();
}
END_TEST

START_TEST(many_stopped_sessions_leave_every_other_its_floor) {
        struct session stopped[20], last;
        unsigned held = 0;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", STEPS_OF_A_RING);
        rig_list();
        rig_answer_all();
        for (size_t i = 0; i < ARRAY_SIZE(stopped); i++) {
                session_begin(&stopped[i], NULL);
                rig_quiet();
                rig_answer_all();
                ck_assert_uint_ge(session_held(&stopped[i]), FLOOR);
                held += session_held(&stopped[i]) - FLOOR;
        }
        ck_assert_uint_eq(session_held(&stopped[0]), ALONE);
        ck_assert_uint_le(held, SURPLUS);
        session_begin(&last, NULL);
        rig_quiet();
        drain(&last);
        session_must_be_complete(&last);
        session_end(&last);
        for (size_t i = 0; i < ARRAY_SIZE(stopped); i++) {
                drain(&stopped[i]);
                session_must_be_complete(&stopped[i]);
                session_end(&stopped[i]);
        }
        rig_end();
}
END_TEST

static void refuse_operations(void *userdata) {
        (void)userdata;
}

START_TEST(as_many_sessions_as_the_ring_has_room_for) {
        struct pipeline_options options = {
                .huge = RING_HUGE_OFF, .decoders = 1, .part_bytes = 128u << 10, .poll_ns = -1
        };
        static struct session sessions[26];
        struct reader_options whole = { 0 };
        struct reader_operations operations = { .flush = refuse_operations };
        struct reader *refused = NULL;
        uint64_t ring_bytes = 0;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", STEPS_OF_A_RING);
        ck_assert_uint_eq(pipeline_readers_max(rig.pipeline), (64 - 8 - 2 - 1) / 2);
        for (size_t i = 0; i < ARRAY_SIZE(sessions); i++)
                session_begin(&sessions[i], NULL);
        ck_assert_int_eq(reader_new(rig.pipeline, &whole, &operations, NULL, &refused, &ring_bytes),
                         READER_E_NO_ROOM);
        ck_assert_ptr_null(refused);
        rig_list();
        for (size_t i = 0; i < ARRAY_SIZE(sessions); i++)
                drain(&sessions[i]);
        for (size_t i = 0; i < ARRAY_SIZE(sessions); i++) {
                drain(&sessions[i]);
                session_must_be_complete(&sessions[i]);
                session_end(&sessions[i]);
        }
        rig_end();
        /* The size that was named has room for one more. */
        options.ring_bytes = ring_bytes;
        rig_begin(&options);
        ck_assert_uint_ge(pipeline_readers_max(rig.pipeline), 27);
        rig_end();
}
END_TEST

/* --- Recycling and refetching --- */

/*
 * Who comes late gets what left the ring from storage: one read for blocks that were joined, and
 * each for all who wait.
 */
START_TEST(blocks_that_left_are_fetched_again_once) {
        struct session first, second, third;
        uint64_t before;
        unsigned reads;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 2 * STEPS_OF_A_RING);
        session_begin(&first, NULL);
        rig_list();
        drain(&first);
        session_must_be_complete(&first);
        reads = rig.store->reads_made;
        before = refetched();
        session_begin(&second, NULL);
        session_begin(&third, NULL);
        rig_quiet();
        while (rig.store->read_count > 0 || second.acked < second.pushed ||
               third.acked < third.pushed) {
                rig_answer_all();
                session_acknowledge(&second, second.pushed);
                session_acknowledge(&third, third.pushed);
        }
        session_must_be_complete(&second);
        session_must_be_complete(&third);
        ck_assert(second.entries[0].entry.flags & RING_ENTRY_REPLAY);
        /*
         * Two rings, of which one was there: no more than about two rings can be read again, each
         * block for both.
         */
        ck_assert_uint_eq(rig.store->reads_made - reads, refetched() - before);
        ck_assert_uint_le(refetched() - before, 2 * SEGMENTS + 2 * SEGMENTS / 4);
        session_end(&first);
        session_end(&second);
        session_end(&third);
        rig_end();
}
END_TEST

/*
 * Small appends make small blocks; absent together they are one, and a session that stands inside
 * gets its end of it.
 */
START_TEST(joined_blocks_come_as_one_extent) {
        struct session follower, late;
        struct reader_options positions = { .from = READER_FROM_POSITIONS };
        struct reader_position position;
        struct rig_file *small, *large;
        unsigned reads;
        uint64_t middle;

        rig_begin(NULL);
        small = rig_add_file("a/1.tfevents", 5);
        session_begin(&follower, &following);
        rig_list();
        for (int i = 0; i < 10; i++) {
                drain(&follower);
                rig_append(small, 5);
                rig_list_again();
        }
        drain(&follower);
        session_must_be_complete(&follower);
        ck_assert_uint_eq(follower.pushed, 11);
        middle = follower.entries[6].entry.source_offset;
        large = rig_add_file("b/1.tfevents", 2 * STEPS_OF_A_RING); /* pushes them out */
        (void)large;
        rig_list_again();
        drain(&follower);
        session_must_be_complete(&follower);
        session_end(&follower);
        reads = rig.store->reads_made;
        position = (struct reader_position){ small->id, rig_catalog_file(small)->version, middle,
                                             0 };
        positions.positions = &position;
        positions.position_count = 1;
        positions.runs = (const char *const[]){ "a" };
        positions.run_count = 1;
        session_begin(&late, &positions);
        late.next_step[0] = 30;
        rig_quiet();
        rig_answer_all();
        ck_assert_uint_eq(rig.store->reads_made, reads + 1);
        ck_assert_uint_eq(late.pushed, 2);
        ck_assert_uint_eq(late.entries[0].first_step, 30);
        /* the mark of the file's version stands first */
        ck_assert_uint_eq(late.entries[0].entry.first_record, 31);
        ck_assert_int_eq(late.entries[0].last_step, 54);
        ck_assert_int_eq(late.replaced, 0);
        ck_assert_uint_eq(late.ends, 1);
        session_end(&late);
        rig_end();
}
END_TEST

/* --- TFRecords of many blocks --- */

#define VALUES_OF_TWO_RINGS (2 * STEPS_OF_A_RING)

/* Between small records one TFRecord that fills the ring twice, in a file that is 3 parts without it. */
static struct rig_file *add_large_record(void) {
        struct rig_file *file = rig_add_file("run/1.tfevents", 3);

        events_scalars(&file->events, 3, "many", VALUES_OF_TWO_RINGS);
        file->steps++;
        rig_append(file, 3);
        return file;
}

static void must_be_all_of_large_record(const struct session *session,
                                        const struct rig_file *file) {
        ck_assert_uint_eq(session->records, 1 + 3 + VALUES_OF_TWO_RINGS + 3);
        ck_assert_int_eq(session->next_step[0], file->steps);
        ck_assert_uint_eq(session->lost, 0);
        ck_assert_uint_eq(session->ends, 1);
}

static uint64_t bytes_held(void) {
        return fetch_counters(pipeline_fetch(rig.pipeline))->inflight_bytes;
}

/* A session that stands inside of it goes on inside of it; it is fetched once, not once a block. */
START_TEST(a_record_larger_than_the_ring_is_read_once) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = add_large_record();
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        drain_as_client(&session);
        must_be_all_of_large_record(&session, file);
        ck_assert_uint_eq(refetched(), 0);
        /* parts that end inside of it, as far as the room was, and then one that is as long as it */
        ck_assert_uint_le(rig.store->bytes_read, 2 * file->events.size + 2 * 65536u);
        ck_assert_uint_eq(bytes_held(), 0);
        session_end(&session);
        rig_end();
}
END_TEST

/* What does not take what it has gets no more decoded than its quota and the room are. */
START_TEST(of_a_large_record_only_what_there_is_room_for_is_decoded) {
        struct session session;
        struct rig_file *file;
        uint64_t made;

        rig_begin(NULL);
        file = add_large_record();
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        rig_answer_all();
        made = pipeline_counters(rig.pipeline)->extent_bytes;
        ck_assert_uint_le(made, RIG_RING_BYTES);
        ck_assert_uint_ge(bytes_held(), VALUES_OF_TWO_RINGS);
        drain_as_client(&session);
        must_be_all_of_large_record(&session, file);
        session_end(&session);
        rig_end();
}
END_TEST

/* Who comes when it is out of the ring makes it be read once more, not once for each block. */
START_TEST(a_large_record_is_read_again_once) {
        struct session first, second;
        struct rig_file *file;
        unsigned reads;

        rig_begin(NULL);
        file = add_large_record();
        session_begin(&first, NULL);
        first.any_step = true;
        rig_list();
        drain_as_client(&first);
        reads = rig.store->reads_made;
        session_begin(&second, NULL);
        second.any_step = true;
        rig_quiet();
        drain_as_client(&second);
        must_be_all_of_large_record(&second, file);
        ck_assert_uint_gt(refetched(), SEGMENTS);
        ck_assert_uint_le(rig.store->reads_made - reads, 3);
        ck_assert_uint_eq(bytes_held(), 0);
        session_end(&first);
        session_end(&second);
        rig_end();
}
END_TEST

static void until_nothing_is_held(void) {
        do {
                rig_answer_all();
                rig_quiet();
        } while (bytes_held() > 0);
}

/* A session that has stopped gives the ticket up; when it goes on, the rest is read again. */
START_TEST(a_stopped_session_holds_no_ticket) {
        struct pipeline_options options = rig_usual;
        struct session first, second;
        struct rig_file *file;

        options.hold_ns = 1;
        rig_begin(&options);
        file = add_large_record();
        session_begin(&first, NULL);
        first.any_step = true;
        rig_list();
        until_nothing_is_held();
        drain_as_client(&first);
        must_be_all_of_large_record(&first, file);
        session_begin(&second, NULL);
        second.any_step = true;
        rig_quiet();
        until_nothing_is_held();
        drain_as_client(&second);
        must_be_all_of_large_record(&second, file);
        session_end(&first);
        session_end(&second);
        rig_end();
}
END_TEST

/* Nobody wants it: it waits in storage, not in a ticket. */
START_TEST(a_large_record_that_nobody_reads_holds_no_ticket) {
        struct pipeline_options options = rig_usual;

        options.hold_ns = 1;
        rig_begin(&options);
        add_large_record();
        rig_list();
        until_nothing_is_held();
        ck_assert_uint_le(pipeline_counters(rig.pipeline)->extent_bytes, RIG_RING_BYTES);
        rig_end();
}
END_TEST

/* The file is written anew, or goes, while a part of it is paused. */
START_TEST(a_held_record_goes_with_its_file) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = add_large_record();
        session_begin(&session, &following);
        session.any_step = true;
        rig_list();
        rig_answer_all();
        ck_assert_uint_gt(bytes_held(), 0);
        file->hidden = true;
        rig_list_again();
        rig_list_again();
        ck_assert_uint_eq(bytes_held(), 0);
        ck_assert_uint_eq(session.gone, 1);
        /* or the daemon ends meanwhile */
        session_acknowledge(&session, session.pushed);
        rig_add_file("other/1.tfevents", 3);
        events_scalars(&rig.files[1].events, 3, "many", VALUES_OF_TWO_RINGS);
        rig_append(&rig.files[1], 3);
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_gt(bytes_held(), 0);
        session_end(&session);
        rig_end();
}
END_TEST

/* Nobody is thrown back by one who reads another part of a full ring. */
START_TEST(sessions_in_different_places_do_not_starve) {
        struct reader_options of_a = { .runs = (const char *const[]){ "a" }, .run_count = 1 };
        struct reader_options of_b = { .runs = (const char *const[]){ "b" }, .run_count = 1 };
        struct session a, b, all;

        rig_begin(NULL);
        rig_add_file("a/1.tfevents", STEPS_OF_A_RING);
        rig_add_file("b/1.tfevents", STEPS_OF_A_RING);
        rig_list();
        rig_answer_all();
        session_begin(&a, &of_a);
        session_begin(&b, &of_b);
        session_begin(&all, NULL);
        rig_quiet();
        while (rig.store->read_count > 0 || a.acked < a.pushed || b.acked < b.pushed ||
               all.acked < all.pushed) {
                rig_answer_all();
                if (a.acked < a.pushed)
                        session_acknowledge(&a, a.acked + 1);
                if (b.acked < b.pushed)
                        session_acknowledge(&b, b.acked + 1);
                session_acknowledge(&all, all.pushed);
        }
        session_must_be_complete(&all);
        ck_assert_int_eq(a.next_step[0], rig.files[0].steps);
        ck_assert_int_eq(b.next_step[1], rig.files[1].steps);
        ck_assert(a.ends == 1 && b.ends == 1 && all.ends == 1);
        session_end(&a);
        session_end(&b);
        session_end(&all);
        rig_end();
}
END_TEST

/* What a ring cannot hold for all is not read again and again for those who do not take it. */
START_TEST(stopped_sessions_cost_no_reads) {
        struct reader_options of_a = { .runs = (const char *const[]){ "a" }, .run_count = 1 };
        struct reader_options of_b = { .runs = (const char *const[]){ "b" }, .run_count = 1 };
        struct session a, b;
        unsigned reads;

        rig_begin(NULL);
        rig_add_file("a/1.tfevents", STEPS_OF_A_RING);
        rig_add_file("b/1.tfevents", STEPS_OF_A_RING);
        rig_list();
        rig_answer_all();
        session_begin(&a, &of_a);
        session_begin(&b, &of_b);
        rig_quiet();
        for (reads = 0; rig.store->read_count > 0 && reads < 1000; reads++)
                rig_answer(0);
        ck_assert_uint_lt(reads, 100);
        drain(&a);
        drain(&b);
        session_end(&a);
        session_end(&b);
        rig_end();
}
END_TEST

/* A read-ahead is needed last: the segments of one who is slow stay while the other runs past. */
START_TEST(what_nobody_needs_goes_first) {
        struct session slow, fast;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", STEPS_OF_A_RING * 9 / 10);
        rig_list();
        rig_answer_all();
        session_begin(&slow, &(struct reader_options){ .runs = (const char *const[]){ "run" },
                                                       .run_count = 1 });
        rig_quiet();
        rig_add_file("other/1.tfevents", 3 * STEPS_OF_A_RING);
        session_begin(&fast, &(struct reader_options){ .runs = (const char *const[]){ "other" },
                                                       .run_count = 1 });
        rig_list_again();
        drain(&fast);
        ck_assert_uint_eq(fast.ends, 1);
        /* The next 256 KiB of the slow one are still there. */
        ck_assert_uint_eq(refetched(), 0);
        while (slow.pushed < 8)
                session_acknowledge(&slow, slow.acked + 1);
        ck_assert_uint_eq(refetched(), 0);
        drain(&slow);
        ck_assert_int_eq(slow.next_step[0], rig.files[0].steps);
        session_end(&slow);
        session_end(&fast);
        rig_end();
}
END_TEST

/* A block that cannot be fetched asks for a listing before the next try. */
static void drain_through_listings(struct session *session) {
        for (drain(session); rig.store->callbacks; drain(session))
                rig_list();
}

START_TEST(a_block_that_changed_is_lost) {
        struct session first, second;
        struct rig_file *file;
        unsigned lists;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 2 * STEPS_OF_A_RING);
        session_begin(&first, NULL);
        rig_list();
        drain(&first);
        session_must_be_complete(&first);
        lists = rig.store->lists;
        /* Somebody writes over the first records, and the listing does not say so. */
        memset(file->events.bytes + 100, 0, 1000);
        session_begin(&second, NULL);
        rig_quiet();
        drain(&second);
        ck_assert_uint_eq(second.lost, 0);
        ck_assert_uint_eq(rig.store->lists, lists + 1); /* it may be another file by now */
        drain_through_listings(&second);
        ck_assert_uint_eq(rig.store->lists, lists + 2);
        ck_assert_uint_gt(second.lost, 0);
        ck_assert_uint_eq(second.records + second.lost, (uint64_t)file->steps + 1);
        ck_assert_int_eq(second.next_step[0], file->steps);
        session_end(&first);
        session_end(&second);
        rig_end();
}
END_TEST

/* The read at that place fails for good, and the listing that follows has the file as it was. */
static void fail_one_read(unsigned at) {
        fake_store_fail(rig.store, at, STORE_PERMANENT, "403");
        rig_quiet();
        if (rig.store->callbacks)
                rig_list();
}

START_TEST(a_block_that_fails_in_passing_is_not_lost) {
        struct session first, second;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 2 * STEPS_OF_A_RING);
        session_begin(&first, NULL);
        rig_list();
        drain(&first);
        session_end(&first);
        session_begin(&second, NULL);
        rig_quiet();
        fail_one_read(0);
        fail_one_read(rig.store->read_count - 1);
        drain_through_listings(&second);
        session_must_be_complete(&second);
        session_end(&second);
        rig_end();
}
END_TEST

/*
 * Lost is what cannot be read when it is wanted: who comes later, when storage answers again, gets
 * all of it.
 */
START_TEST(what_was_lost_may_come_back) {
        struct session first, second, third;

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 2 * STEPS_OF_A_RING);
        session_begin(&first, NULL);
        rig_list();
        drain(&first);
        session_end(&first);
        session_begin(&second, NULL);
        rig_quiet();
        fail_one_read(0);
        fail_one_read(rig.store->read_count - 1);
        fail_one_read(rig.store->read_count - 1);
        drain(&second);
        ck_assert_uint_gt(second.lost, 0);
        session_end(&second);
        session_begin(&third, NULL);
        rig_quiet();
        drain(&third);
        session_must_be_complete(&third);
        session_end(&third);
        rig_end();
}
END_TEST

/* --- Files that change --- */

START_TEST(growth_is_read_from_where_it_was) {
        struct session session;
        struct rig_file *file;
        uint64_t known;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        known = file->events.size;
        rig_append(file, 10);
        rig_list_again();
        ck_assert_uint_eq(rig.store->read_count, 1);
        ck_assert_uint_eq(rig.store->reads[0]->offset, known - 16); /* with the bytes before it */
        rig_answer_all();
        ck_assert_uint_eq(session.pushed, 2);
        session_must_be_complete(&session);
        rig_list_again();
        ck_assert_uint_eq(rig.store->read_count, 0); /* a listing without news costs no read */
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(an_unfinished_record_waits_for_its_end) {
        struct session session;
        struct rig_file *file;
        uint64_t whole;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        whole = file->events.size;
        file->events.size = file->listed = whole - 5;
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        ck_assert(rig_catalog_file(file)->settled);
        ck_assert_uint_eq(rig.damaged, 0);
        ck_assert_int_eq(session.next_step[0], 9);
        file->events.size = file->listed = whole;
        file->mtime_ns++;
        rig_list_again();
        rig_answer_all();
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

START_TEST(a_file_that_shrank_begins_anew) {
        struct session session, fresh;
        struct rig_file *file;
        uint64_t version;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        version = rig_catalog_file(file)->version;
        events_free(&file->events);
        file->steps = 0;
        events_version(&file->events);
        rig_append(file, 4);
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(rig.replaced, 1);
        ck_assert_uint_eq(session.replaced, 1);
        ck_assert_uint_ne(rig_catalog_file(file)->version, version);
        ck_assert_uint_eq(session.entries[1].entry.flags, RING_ENTRY_REPLACED);
        ck_assert_uint_eq(session.entries[1].entry.generation, rig_catalog_file(file)->version);
        ck_assert_int_eq(session.next_step[0], 4);
        session_begin(&fresh, NULL);
        rig_quiet();
        session_must_be_complete(&fresh); /* sees nothing of the old one */
        session_end(&session);
        session_end(&fresh);
        rig_end();
}
END_TEST

/* An object store writes objects whole: what is new of one costs what is new, and the 16 bytes. */
START_TEST(an_object_that_is_rewritten_with_more_costs_what_is_new) {
        struct session session;
        struct rig_file *file;
        uint64_t known, sent, added;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 2000);
        snprintf(file->tag, sizeof(file->tag), "g1");
        snprintf(file->listed_tag, sizeof(file->listed_tag), "l1");
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        known = file->events.size;
        sent = rig.store->bytes_sent;
        ck_assert_uint_eq(sent, known);
        while (file->events.size < known + (50u << 10))
                rig_append(file, 1);
        snprintf(file->tag, sizeof(file->tag), "g2");
        snprintf(file->listed_tag, sizeof(file->listed_tag), "l2");
        added = file->events.size - known;
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(rig.store->reads_made, 2);
        ck_assert_uint_eq(rig.store->bytes_sent - sent, added + 16);
        ck_assert_uint_eq(session.replaced, 0);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/*
 * Reads ask for the version that the listing named. If the object is another one already it is read
 * without that, from where it was read to, and listed again, once.
 */
START_TEST(a_version_that_is_gone_is_listed_again) {
        struct session session;
        struct rig_file *file;
        unsigned lists;
        uint64_t known;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 2000);
        snprintf(file->tag, sizeof(file->tag), "v1");
        snprintf(file->listed_tag, sizeof(file->listed_tag), "v1");
        session_begin(&session, &following);
        rig_list();
        rig_quiet();
        ck_assert_str_eq(rig.store->reads[0]->tag, "v1");
        rig_answer_all();
        known = file->events.size;
        rig_append(file, 100);
        snprintf(file->listed_tag, sizeof(file->listed_tag), "v2");
        rig_list_again();
        rig_quiet();
        ck_assert_str_eq(rig.store->reads[0]->tag, "v2");
        ck_assert_uint_eq(rig.store->reads[0]->offset, known - 16);
        lists = rig.store->lists;
        rig_append(file, 100);
        snprintf(file->tag, sizeof(file->tag), "v3");
        fake_store_fail(rig.store, 0, STORE_CHANGED, "412");
        rig_quiet();
        ck_assert_uint_eq(rig.store->lists, lists + 1);
        ck_assert_str_eq(rig.store->reads[0]->tag, "");
        ck_assert_uint_eq(rig.store->reads[0]->offset, known - 16);
        snprintf(file->listed_tag, sizeof(file->listed_tag), "v3");
        rig_list();
        rig_answer_all();
        ck_assert_uint_eq(session.replaced, 0);
        ck_assert_uint_eq(rig.failed_files, 0);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* A store that goes on saying so, of reads that take any version, makes a file unreadable, not a loop. */
START_TEST(a_version_that_is_always_gone_is_unreadable) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 2000);
        snprintf(file->listed_tag, sizeof(file->listed_tag), "v1");
        session_begin(&session, &following);
        rig_list();
        rig_quiet();
        fake_store_fail(rig.store, 0, STORE_CHANGED, "412");
        rig_quiet();
        ck_assert_str_eq(rig.store->reads[0]->tag, "");
        fake_store_fail(rig.store, 0, STORE_CHANGED,
                        "412"); /* of something that nobody asked for */
        rig_quiet();
        ck_assert_uint_eq(rig.failed_files, 1);
        snprintf(file->listed_tag, sizeof(file->listed_tag), "v2");
        rig_list();
        rig_answer_all();
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/*
 * The read brought more than the listing had said. A listing from before that, or one that went
 * back in time, says less: nothing is withdrawn, and no byte is read again but the last 16.
 */
START_TEST(a_stale_listing_is_not_a_file_that_shrank) {
        struct session session;
        struct rig_file *file;
        uint64_t before, sent;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        before = file->listed;
        rig_append(file, 10); /* between the listing and the read */
        file->listed = before;
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        session_must_be_complete(&session);
        rig_list_again(); /* one that began before the answer */
        ck_assert_uint_eq(rig.store->read_count, 0);
        file->listed = file->events.size;
        file->mtime_ns += 2;
        rig_list_again();
        ck_assert_uint_eq(rig.store->read_count, 0); /* it is all here */
        sent = rig.store->bytes_sent;
        file->listed = before;
        file->mtime_ns -= 2;
        rig_list_again();
        ck_assert_uint_eq(rig.store->read_count, 1);
        rig_answer_all();
        ck_assert_uint_eq(rig.store->bytes_sent - sent, 16);
        rig_list_again(); /* and it stays as old as that */
        ck_assert_uint_eq(rig.store->read_count, 0);
        file->listed = file->events.size;
        file->mtime_ns += 2;
        rig_list_again();
        ck_assert_uint_eq(rig.store->read_count, 0);
        ck_assert_uint_eq(session.replaced, 0);
        rig_append(file, 5);
        rig_list_again();
        rig_answer_all();
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* Local files: a rename puts another inode there. It is read again only if it is another file. */
START_TEST(another_inode_with_the_same_bytes_is_the_same_file) {
        struct session session;
        struct rig_file *file;
        uint64_t sent;

        rig_begin(NULL);
        rig.store->store.tags_name_files = true;
        file = rig_add_file("run/1.tfevents", 10);
        snprintf(file->listed_tag, sizeof(file->listed_tag), "1:1");
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        sent = rig.store->bytes_sent;
        snprintf(file->listed_tag, sizeof(file->listed_tag), "1:2"); /* as rsync does it */
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(rig.store->bytes_sent - sent, 16);
        ck_assert_uint_eq(session.replaced, 0);
        snprintf(file->listed_tag, sizeof(file->listed_tag), "1:3");
        file->events.bytes[file->events.size - 1] ^= 1; /* of the same size, with another end */
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(session.replaced, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* The same size and another version, in a store whose objects are never appended to. */
START_TEST(another_version_of_the_same_size_begins_anew) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        snprintf(file->listed_tag, sizeof(file->listed_tag), "l1");
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        snprintf(file->listed_tag, sizeof(file->listed_tag), "l2");
        file->mtime_ns++;
        rig_list_again();
        ck_assert_uint_eq(rig.store->read_count, 1);
        ck_assert_uint_eq(rig.store->reads[0]->offset, 0);
        rig_answer_all();
        ck_assert_uint_eq(session.replaced, 1);
        ck_assert_int_eq(session.next_step[0], 10);
        session_end(&session);
        rig_end();
}
END_TEST

/* A tail of zeros is not written yet: when it is, only what stood behind `known` is read. */
START_TEST(a_tail_of_zeros_is_filled_in) {
        struct session session;
        struct rig_file *file;
        uint8_t later[4096];
        uint64_t known, whole, sent;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        known = file->events.size;
        rig_append(file, 10);
        whole = file->events.size;
        memcpy(later, file->events.bytes + known, whole - known);
        memset(file->events.bytes + known, 0, whole - known);
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        ck_assert(rig_catalog_file(file)->settled);
        ck_assert_int_eq(session.next_step[0], 10);
        ck_assert_uint_eq(rig.damaged, 0);
        sent = rig.store->bytes_sent;
        memcpy(file->events.bytes + known, later, whole - known);
        file->mtime_ns++;
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(rig.store->bytes_sent - sent, whole - known + 16);
        ck_assert_uint_eq(session.replaced, 0);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* A listing without sizes asks whether there is more: 416 (or an empty 206) says no. */
START_TEST(the_end_is_no_news) {
        struct session session;
        struct rig_file *file;
        uint64_t sent;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        file->listed = UINT64_MAX;
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        sent = rig.store->bytes_sent;
        file->mtime_ns++;
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(rig.store->bytes_sent - sent, 16);
        ck_assert_uint_eq(session.replaced, 0);
        ck_assert(rig_catalog_file(file)->settled);
        ck_assert_int_eq(rig_catalog_file(file)->state, CATALOG_LOADED);
        session_must_be_complete(&session);
        session_end(&session);
        rig_end();
}
END_TEST

/* As large as before or larger, but with other bytes where it had been read. */
START_TEST(a_file_that_only_looks_grown_begins_anew) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        events_free(&file->events);
        file->steps = 0;
        events_scalar(&file->events, 0, "first", 0);
        file->steps = 1;
        rig_append(file, 20);
        rig_list_again();
        rig_answer_all();
        ck_assert_uint_eq(session.replaced, 1);
        ck_assert_int_eq(session.next_step[0], 21);
        session_end(&session);
        rig_end();
}
END_TEST

/* One request at a time: the others wait. */
static void begin_narrow(void) {
        struct pipeline_options options = rig_usual;

        options.window_start = options.connections_max = 1;
        rig_begin(&options);
}

static bool waits(const struct rig_file *file) {
        const struct catalog_file *row = rig_catalog_file(file);

        return !row->blocks && !row->settled && row->state == CATALOG_QUEUED;
}

/* The second one has a feed as well: that it could not be asked for was seen when it had one. */
START_TEST(files_that_wait_have_only_their_row) {
        struct rig_file *files[6], *empty;
        struct session session, other;
        char name[32];

        begin_narrow();
        for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
                snprintf(name, sizeof(name), "run%u/1.tfevents", i);
                files[i] = rig_add_file(name, 10);
        }
        empty = rig_add_file("run/1.tfevents", 10);
        empty->listed = 0;
        rig_list();
        for (unsigned i = 2; i < ARRAY_SIZE(files); i++)
                ck_assert_msg(waits(files[i]), "file %u does not wait", i);
        ck_assert_ptr_null(rig_catalog_file(empty)->blocks);
        ck_assert_int_eq(rig_catalog_file(empty)->state, CATALOG_EMPTY);
        ck_assert(rig_catalog_file(empty)->settled);
        rig_append(files[2], 10);
        rig_append(empty, 10);
        files[5]->hidden = true;
        rig_list_again();
        rig_list_again();
        ck_assert(waits(files[2]) && waits(empty));
        ck_assert_ptr_null(rig_catalog_file(files[5]));
        ck_assert_uint_eq(rig.gone_runs, 1);
        rig_answer(0); /* for nobody: in order of arrival */
        rig_answer(0);
        ck_assert_int_eq(rig_read_of(files[2]), 0);
        session_begin(&other, &(struct reader_options){ .runs = (const char *const[]){ "run0" },
                                                        .run_count = 1 });
        ck_assert(waits(files[4]) && waits(empty));
        session_begin(&session, NULL);
        ck_assert(!waits(files[4]) && !waits(empty));
        rig_answer_all();
        ck_assert_uint_eq(session.ends, 1);
        for (unsigned i = 0; i < 5; i++)
                ck_assert_int_eq(session.next_step[i], files[i]->steps);
        ck_assert_int_eq(session.next_step[6], empty->steps);
        session_end(&session);
        session_end(&other);
        rig_end();
}
END_TEST

START_TEST(a_file_that_is_gone_is_withdrawn) {
        struct session session, other;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        rig_add_file("run/2.tfevents", 10);
        session_begin(&session, &following);
        rig_list();
        rig_answer_all();
        session_begin(&other, &(struct reader_options){ .runs = (const char *const[]){ "nothing" },
                                                        .run_count = 1,
                                                        .follow = true });
        file->hidden = true;
        rig_list_again();
        ck_assert_uint_eq(session.gone, 0);
        rig_list_again();
        ck_assert_uint_eq(session.gone, 1);
        ck_assert_uint_eq(other.gone, 0);
        ck_assert_ptr_null(rig_catalog_file(file));
        ck_assert_uint_eq(rig.gone_runs, 0);
        rig.files[1].hidden = true;
        rig_list_again();
        rig_list_again();
        ck_assert_uint_eq(rig.gone_runs, 1);
        ck_assert_uint_eq(session.gone, 2);
        /* Back again: as new. */
        file->hidden = false;
        session.next_step[0] = 0;
        rig_list_again();
        rig_answer_all();
        ck_assert_int_eq(session.next_step[0], 10);
        session_end(&session);
        session_end(&other);
        rig_end();
}
END_TEST

/* It leaves while its bytes are on their way, or with a decoder. */
START_TEST(a_file_may_go_at_any_moment) {
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 20000);
        session_begin(&session, &following);
        rig_list();
        file->hidden = true;
        rig_list_again();
        rig_answer(0);
        /* a decoder has it now */
        fake_store_answer(rig.store, 0, file->events.bytes, file->events.size, "");
        watch_now(rig.source->watch);
        while (!rig.store->callbacks)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        fake_store_listed(rig.store, STORE_OK);
        rig_quiet();
        ck_assert_uint_eq(rig.store->read_count, 0);
        ck_assert_ptr_null(rig_catalog_file(file));
        ck_assert_uint_eq(session.gone, 1);
        session_end(&session);
        rig_end();
}
END_TEST

/* Blocks of the old version are with a decoder when the first bytes of the new one are here. */
START_TEST(a_file_may_be_replaced_while_blocks_are_fetched_again) {
        struct session first, second;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 2 * STEPS_OF_A_RING);
        session_begin(&first, NULL);
        rig_list();
        drain(&first);
        session_end(&first);
        session_begin(&second, &following);
        rig_quiet();
        ck_assert_uint_gt(rig.store->read_count, 0);
        watch_now(rig.source->watch);
        while (!rig.store->callbacks)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        while (rig.store->read_count > 0) /* no turn of the loop in between */
                fake_store_answer(rig.store, 0, file->events.bytes, file->events.size, "");
        events_free(&file->events);
        file->steps = 0;
        events_version(&file->events);
        rig_append(file, 7);
        fake_store_row(rig.store, file->name, file->listed, file->mtime_ns);
        fake_store_listed(rig.store, STORE_OK);
        while (rig.store->read_count == 0)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        fake_store_answer(rig.store, 0, file->events.bytes, file->events.size, "");
        rig_quiet();
        rig_answer_all();
        ck_assert_uint_eq(rig.replaced, 1);
        ck_assert_int_eq(second.next_step[0], 7);
        session_end(&second);
        rig_end();
}
END_TEST

/* --- Positions --- */

static void resume_at(uint64_t offset, uint32_t index, uint64_t version_more, int64_t first_step,
                      unsigned replaced) {
        struct reader_position position;
        struct reader_options options = { .from = READER_FROM_POSITIONS,
                                          .positions = &position,
                                          .position_count = 1 };
        struct session session;

        position = (struct reader_position){ rig.files[0].id,
                                             rig_catalog_file(&rig.files[0])->version +
                                                     version_more,
                                             offset, index };
        session_begin(&session, &options);
        session.next_step[0] = first_step;
        rig_quiet();
        drain(&session);
        ck_assert_uint_eq(session.replaced, replaced);
        ck_assert_int_eq(session.next_step[0], rig.files[0].steps);
        ck_assert_uint_eq(session.ends, 1);
        session_end(&session);
}

START_TEST(a_stream_goes_on_at_a_position) {
        struct rig_file *file;
        uint64_t offset;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 3000);
        offset = file->events.last_offset;
        rig_append(file, 3000);
        rig_list();
        rig_answer_all();
        resume_at(0, 0, 0, 0, 0);
        resume_at(offset, 0, 0, 2999, 0);
        resume_at(offset, 1, 0, 3000, 0);            /* behind its only value */
        resume_at(file->events.size, 0, 0, 6000, 0); /* at the end */
        resume_at(offset, 0, 1, 0, 1);               /* another version */
        resume_at(offset + 1, 0, 0, 0, 1);           /* no record stands there */
        resume_at(file->events.size + 1, 0, 0, 0, 1);
        rig_end();
}
END_TEST

START_TEST(from_now_only_what_comes) {
        struct reader_options now = { .from = READER_FROM_NOW, .follow = true };
        struct session session;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 100);
        rig_list();
        rig_answer_all();
        session_begin(&session, &now);
        session.next_step[0] = 100;
        rig_quiet();
        ck_assert_uint_eq(session.pushed, 0);
        rig_append(file, 5);
        rig_add_file("run/2.tfevents", 5);
        rig_list_again();
        rig_answer_all();
        ck_assert_int_eq(session.next_step[0], 105);
        /* a file that appeared later is new as a whole */
        ck_assert_int_eq(session.next_step[1], 5);
        session_end(&session);
        rig_end();
}
END_TEST

/* --- Requests --- */

struct answer {
        unsigned count;
        int error;
        struct store_failure failure;
        const struct catalog_source *failed;
        void *memory;
        uint64_t size_bytes;
};

static void on_loaded(void *userdata, const struct catalog_source *failed) {
        struct answer *answer = userdata;

        answer->count++;
        answer->failed = failed;
}

static void on_reloaded(void *userdata, const struct store_failure *failure) {
        struct answer *answer = userdata;

        answer->count++;
        answer->failure = *failure;
}

static void on_payload(void *userdata, int error, const struct store_failure *failure,
                       void *take_memory, uint64_t size_bytes) {
        struct answer *answer = userdata;

        answer->count++;
        answer->error = error;
        if (failure)
                answer->failure = *failure;
        answer->memory = take_memory;
        answer->size_bytes = size_bytes;
}

/* A session that discards and never pins: three rings go through. */
START_TEST(wait_loaded_makes_demand) {
        struct pipeline_request *request;
        struct answer answer = { 0 };

        rig_begin(NULL);
        rig_add_file("run/1.tfevents", 3 * STEPS_OF_A_RING);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &answer, &request), 0);
        rig_list();
        while (rig.store->read_count > 0) {
                ck_assert_uint_eq(answer.count, 0);
                rig_answer(0);
        }
        ck_assert_uint_eq(answer.count, 1);
        ck_assert_ptr_null(answer.failed);
        ck_assert_uint_eq(pipeline_counters(rig.pipeline)->records, 3 * STEPS_OF_A_RING + 1);
        rig_end();
}
END_TEST

/*
 * A record that is larger than the ring's memory (its payload is external) is as loaded as any
 * other.
 */
START_TEST(wait_loaded_reads_records_larger_than_the_ring) {
        struct pipeline_request *request;
        struct answer answer = { 0 };
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 3);
        events_string(&file->events, 4, "text", 3 * RIG_RING_BYTES);
        rig_append(file, 3);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &answer, &request), 0);
        rig_list();
        rig_answer_all();
        ck_assert_uint_eq(answer.count, 1);
        ck_assert_uint_eq(pipeline_counters(rig.pipeline)->records, 8);
        /* its bytes are asked for once, more or less */
        ck_assert_uint_le(rig.store->reads_made, 40 + 32);
        rig_end();
}
END_TEST

/* Who waits for all lets it pass through, though nobody takes it. */
START_TEST(wait_loaded_lets_a_large_record_pass) {
        struct pipeline_request *request;
        struct answer answer = { 0 };

        rig_begin(NULL);
        add_large_record();
        rig_list();
        rig_answer_all();
        ck_assert_uint_gt(bytes_held(), 0);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &answer, &request), 0);
        rig_quiet();
        rig_answer_all();
        ck_assert_uint_eq(answer.count, 1);
        ck_assert_uint_eq(bytes_held(), 0);
        ck_assert_uint_eq(pipeline_counters(rig.pipeline)->records,
                          1 + 3 + VALUES_OF_TWO_RINGS + 3);
        rig_end();
}
END_TEST

START_TEST(wait_loaded_waits_for_files_that_wait) {
        struct pipeline_request *request;
        struct answer answer = { 0 };
        struct rig_file *last;

        begin_narrow();
        rig_add_file("run/1.tfevents", 10);
        rig_add_file("run/2.tfevents", 10);
        rig_add_file("run/3.tfevents", 10);
        last = rig_add_file("run/4.tfevents", 10);
        rig_list();
        ck_assert(waits(last));
        ck_assert_int_eq(
                pipeline_wait_loaded(rig.pipeline, rig.source, on_loaded, &answer, &request), 0);
        rig_quiet();
        while (!rig_catalog_file(last)->settled) {
                ck_assert_uint_eq(answer.count, 0);
                rig_answer(0);
        }
        rig_quiet();
        ck_assert_uint_eq(answer.count, 1);
        rig_end();
}
END_TEST

START_TEST(wait_loaded_waits_for_files_that_settle) {
        struct pipeline_request *request;
        struct answer answer = { 0 };
        struct rig_file *bad;

        rig_begin(NULL);
        bad = rig_add_file("run/1.tfevents", 10);
        rig_add_file("run/2.tfevents", 10);
        rig_list();
        ck_assert_int_eq(
                pipeline_wait_loaded(rig.pipeline, rig.source, on_loaded, &answer, &request), 0);
        ck_assert_uint_eq(answer.count, 0);
        rig_quiet();
        fake_store_fail(rig.store, (unsigned)rig_read_of(bad), STORE_PERMANENT, "404");
        rig_quiet();
        ck_assert_uint_eq(answer.count, 0);
        rig_answer_all();
        ck_assert_uint_eq(answer.count, 1);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &answer, &request), 0);
        rig_quiet();
        ck_assert_uint_eq(answer.count, 2); /* all are settled already */
        rig_end();
}
END_TEST

START_TEST(wait_loaded_names_a_source_that_fails) {
        struct pipeline_request *request, *canceled;
        struct answer answer = { 0 }, none = { 0 };

        rig_begin(NULL);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &none, &canceled), 0);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &answer, &request), 0);
        rig_quiet();
        pipeline_request_cancel(canceled);
        fake_store_listed(rig.store, STORE_PERMANENT);
        rig_quiet();
        ck_assert_uint_eq(answer.count, 1);
        ck_assert_ptr_eq(answer.failed, rig.source);
        ck_assert_uint_eq(none.count, 0);
        rig_end();
}
END_TEST

/* the one that is answered first takes the other with it, as a session that ends */
static struct pipeline_request *pair[2];

static void on_either(void *userdata, const struct catalog_source *failed) {
        unsigned which = userdata != NULL;

        (void)failed;
        pair[which] = NULL;
        if (pair[!which])
                pipeline_request_cancel(pair[!which]);
        pair[!which] = NULL;
}

START_TEST(an_answer_may_cancel_other_requests) {
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_either, NULL, &pair[0]), 0);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_either, &rig, &pair[1]), 0);
        fake_store_listed(rig.store, STORE_PERMANENT); /* both are answered by the same news */
        rig_quiet();
        ck_assert(!pair[0] && !pair[1]);
        rig_list_again();
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_either, NULL, &pair[0]), 0);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_either, &rig, &pair[1]), 0);
        rig_quiet();
        rig_answer((unsigned)rig_read_of(file)); /* both wait for this file */
        ck_assert(!pair[0] && !pair[1]);
        rig_end();
}
END_TEST

START_TEST(reload_answers_when_the_news_are_known) {
        struct pipeline_request *request;
        struct answer answer = { 0 };
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        rig_list();
        rig_answer_all();
        rig_append(file, 10);
        ck_assert_int_eq(pipeline_reload(rig.pipeline, NULL, on_reloaded, &answer, &request), 0);
        rig_quiet();
        ck_assert_uint_eq(answer.count, 0);
        rig_list();
        ck_assert_uint_eq(answer.count, 1);
        ck_assert_int_eq(answer.failure.class, STORE_OK);
        ck_assert_uint_eq(rig_catalog_file(file)->listed_bytes, file->events.size);
        rig_answer_all();
        ck_assert_int_eq(pipeline_reload(rig.pipeline, rig.source, on_reloaded, &answer, &request),
                         0);
        rig_quiet();
        fake_store_listed(rig.store, STORE_PERMANENT);
        rig_quiet();
        ck_assert_uint_eq(answer.count, 2);
        ck_assert_int_eq(answer.failure.class, STORE_PERMANENT);
        /* One that is asked for while a listing is under way needs the next one. */
        ck_assert_int_eq(pipeline_reload(rig.pipeline, NULL, on_reloaded, &answer, &request), 0);
        rig_quiet();
        ck_assert_int_eq(pipeline_reload(rig.pipeline, NULL, on_reloaded, &answer, &request), 0);
        rig_list();
        ck_assert_uint_eq(answer.count, 3);
        rig_list();
        ck_assert_uint_eq(answer.count, 4);
        rig_end();
}
END_TEST

/* A file is gone when two listings do not have it: the answer waits for the second, at once. */
START_TEST(reload_looks_twice_for_what_is_missing) {
        struct pipeline_request *request;
        struct answer answer = { 0 };
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        rig_add_file("run/2.tfevents", 10);
        rig_list();
        rig_answer_all();
        file->hidden = true;
        ck_assert_int_eq(pipeline_reload(rig.pipeline, NULL, on_reloaded, &answer, &request), 0);
        rig_quiet();
        rig_list();
        ck_assert_uint_eq(answer.count, 0);
        ck_assert_ptr_nonnull(rig.store->callbacks); /* the second one is under way */
        rig.files[1].hidden = true;                  /* one more does not make it a third */
        rig_list();
        ck_assert_uint_eq(answer.count, 1);
        ck_assert_ptr_null(rig_catalog_file(file));
        ck_assert_ptr_nonnull(rig_catalog_file(&rig.files[1]));
        ck_assert_uint_eq(rig.store->lists, 3);
        rig_end();
}
END_TEST

static void wait_for(const struct answer *answer, unsigned count) {
        while (answer->count < count) {
                uv_run(&rig.loop, UV_RUN_NOWAIT);
                if (rig.store->read_count > 0)
                        rig_answer(0);
        }
}

START_TEST(payload_reads_one_value_again) {
        struct pipeline_request *request;
        struct answer answer = { 0 };
        struct rig_file *file;
        struct extent_view view;
        uint64_t small, version;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        small = file->events.last_offset;
        events_string(&file->events, 11, "text", 3u << 20); /* external */
        file->listed = file->events.size;
        rig_list();
        rig_answer_all();
        version = rig_catalog_file(file)->version;
        pipeline_payload(rig.pipeline, file->id, version, small, 0, on_payload, &answer, &request);
        wait_for(&answer, 1);
        ck_assert_int_eq(answer.error, 0);
        ck_assert_int_eq(extent_view_init(&view, answer.memory, answer.size_bytes), 0);
        ck_assert_uint_eq(view.record_count, 1);
        ck_assert_int_eq(view.records[0].step, 9);
        free(answer.memory);
        pipeline_payload(rig.pipeline, file->id, version, file->events.last_offset, 0, on_payload,
                         &answer, &request);
        wait_for(&answer, 2);
        ck_assert_int_eq(answer.error, 0);
        ck_assert_uint_gt(answer.size_bytes, 3u << 20);
        free(answer.memory);
        pipeline_payload(rig.pipeline, file->id, version + 1, small, 0, on_payload, &answer,
                         &request);
        wait_for(&answer, 3);
        ck_assert_int_eq(answer.error, PIPELINE_E_VERSION_GONE);
        pipeline_payload(rig.pipeline, file->id + 1, version, small, 0, on_payload, &answer,
                         &request);
        wait_for(&answer, 4);
        ck_assert_int_eq(answer.error, PIPELINE_E_VERSION_GONE);
        pipeline_payload(rig.pipeline, file->id, version, small, 1, on_payload, &answer, &request);
        wait_for(&answer, 5);
        ck_assert_int_eq(answer.error, PIPELINE_E_UNREADABLE);
        pipeline_payload(rig.pipeline, file->id, version, small + 1, 0, on_payload, &answer,
                         &request);
        wait_for(&answer, 6);
        ck_assert_int_eq(answer.error, PIPELINE_E_UNREADABLE);
        pipeline_payload(rig.pipeline, file->id, version, file->events.size, 0, on_payload, &answer,
                         &request);
        wait_for(&answer, 7);
        ck_assert_int_eq(answer.error, PIPELINE_E_UNREADABLE);
        pipeline_payload(rig.pipeline, file->id, version, small, 0, on_payload, &answer, &request);
        while (rig.store->read_count == 0)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        fake_store_fail(rig.store, 0, STORE_PERMANENT, "403");
        ck_assert_uint_eq(answer.count, 8);
        ck_assert_int_eq(answer.error, PIPELINE_E_UNREADABLE);
        ck_assert_str_eq(answer.failure.code, "403");
        rig_end();
}
END_TEST

/*
 * Before its read is sent, while it is under way, while it is decoded; by the one who asked, or by
 * the end of all.
 */
static void cancel_payload(unsigned moment, bool by_end) {
        struct pipeline_request *request;
        struct answer answer = { 0 };
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        rig_list();
        rig_answer_all();
        pipeline_payload(rig.pipeline, file->id, rig_catalog_file(file)->version,
                         file->events.last_offset, 0, on_payload, &answer, &request);
        while (moment > 0 && rig.store->read_count == 0)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        if (moment == 2)
                fake_store_answer(rig.store, 0, file->events.bytes, file->events.size, "");
        if (!by_end)
                pipeline_request_cancel(request);
        rig_end();
        ck_assert_uint_eq(answer.count, 0);
}

START_TEST(payload_is_canceled_before_its_read) {
        cancel_payload(0, false);
}
END_TEST

START_TEST(payload_is_canceled_while_it_is_read) {
        cancel_payload(1, false);
}
END_TEST

START_TEST(payload_is_canceled_while_it_is_decoded) {
        cancel_payload(2, false);
}
END_TEST

START_TEST(the_end_takes_a_payload_that_is_read) {
        cancel_payload(1, true);
}
END_TEST

START_TEST(the_end_takes_a_payload_that_is_decoded) {
        cancel_payload(2, true);
}
END_TEST

/* --- Damage --- */

struct damage_answer {
        unsigned count;
        int error;
        struct store_failure failure;
        struct damaged_place places[64];
        uint32_t place_count;
        bool has_next;
        struct pipeline_place next;
};

static void on_damage(void *userdata, int error, const struct store_failure *failure,
                      const struct damaged_place *places, uint32_t count,
                      const struct pipeline_place *next) {
        struct damage_answer *answer = userdata;

        answer->count++;
        answer->error = error;
        if (failure)
                answer->failure = *failure;
        ck_assert_uint_le(answer->place_count + count, ARRAY_SIZE(answer->places));
        for (uint32_t i = 0; i < count; i++)
                answer->places[answer->place_count++] = places[i];
        answer->has_next = next != NULL;
        if (next)
                answer->next = *next;
}

static void wait_for_damage(const struct damage_answer *answer, unsigned count) {
        while (answer->count < count) {
                uv_run(&rig.loop, UV_RUN_NOWAIT);
                if (rig.store->read_count > 0)
                        rig_answer(0);
        }
}

/*
 * A file of some rings, with a wrong payload here and there, and junk at its end. The places of
 * those in *ret_offsets.
 */
static struct rig_file *add_damaged_file(uint64_t offsets[40], unsigned *ret_count) {
        struct rig_file *file = rig_add_file("run/1.tfevents", 10);
        unsigned count = 0;

        for (unsigned i = 0; i < 40; i++) {
                offsets[count++] = file->events.last_offset;
                file->events.bytes[file->events.last_offset + 20] ^= 1;
                rig_append(file, STEPS_OF_A_RING / 10);
        }
        *ret_count = count;
        memset(file->events.bytes + file->events.last_offset, 'x',
               file->events.size - file->events.last_offset);
        return file;
}

/* More than the catalog names, of blocks that are no longer there. */
START_TEST(all_damage_is_found_again) {
        struct pipeline_request *request;
        struct damage_answer answer = { 0 };
        struct answer loaded = { 0 };
        uint64_t offsets[40];
        unsigned count;
        struct rig_file *file;
        struct catalog_file *known;

        rig_begin(NULL);
        file = add_damaged_file(offsets, &count);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &loaded, &request), 0);
        rig_list();
        while (loaded.count == 0)
                rig_answer(0);
        known = rig_catalog_file(file);
        ck_assert_uint_eq(file_damage_count(known->damage), count + 1);
        ck_assert_uint_eq(known->damage->named_count, FILE_DAMAGE_NAMED_MOST);
        for (unsigned pages = 1; pages == 1 || answer.has_next; pages++) {
                struct pipeline_place from = answer.next;

                ck_assert_int_eq(pipeline_damage(rig.pipeline, file->id, known->version, from, 7,
                                                 on_damage, &answer, &request),
                                 0);
                wait_for_damage(&answer, pages);
                ck_assert_int_eq(answer.error, 0);
        }
        ck_assert_uint_eq(answer.place_count, count + 1);
        for (unsigned i = 0; i < count; i++) {
                ck_assert_uint_eq(answer.places[i].offset, offsets[i]);
                ck_assert_int_eq(answer.places[i].reason, DAMAGE_DATA_CRC);
        }
        ck_assert_uint_eq(answer.places[count].offset, file->events.last_offset);
        ck_assert_int_eq(answer.places[count].reason, DAMAGE_LENGTH_CRC);
        ck_assert_uint_eq(answer.count, (count + 1 + 6) / 7);
        rig_end();
}
END_TEST

START_TEST(damage_that_cannot_be_read_again) {
        struct pipeline_request *request;
        struct damage_answer answer = { 0 };
        struct pipeline_place start = { 0 };
        uint64_t version;
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        file->events.bytes[file->events.last_offset + 20] ^= 1;
        rig_append(file, 10);
        rig_list();
        rig_answer_all();
        version = rig_catalog_file(file)->version;
        pipeline_damage(rig.pipeline, file->id, version + 1, start, 9, on_damage, &answer,
                        &request);
        wait_for_damage(&answer, 1);
        ck_assert_int_eq(answer.error, PIPELINE_E_VERSION_GONE);
        pipeline_damage(rig.pipeline, file->id, version, start, 9, on_damage, &answer, &request);
        while (rig.store->read_count == 0)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        fake_store_fail(rig.store, 0, STORE_PERMANENT, "403");
        ck_assert_uint_eq(answer.count, 2);
        ck_assert_int_eq(answer.error, PIPELINE_E_UNREADABLE);
        ck_assert_str_eq(answer.failure.code, "403");
        /* It was made whole meanwhile: there is nothing to name. */
        file->events.bytes[rig_catalog_file(file)->damage->named[0].offset + 20] ^= 1;
        pipeline_damage(rig.pipeline, file->id, version, start, 9, on_damage, &answer, &request);
        wait_for_damage(&answer, 3);
        ck_assert_int_eq(answer.error, 0);
        ck_assert_uint_eq(answer.place_count, 0);
        ck_assert(!answer.has_next);
        rig_end();
}
END_TEST

/* As cancel_payload(). */
static void cancel_damage(unsigned moment, bool by_end) {
        struct pipeline_request *request;
        struct damage_answer answer = { 0 };
        struct pipeline_place start = { 0 };
        struct rig_file *file;

        rig_begin(NULL);
        file = rig_add_file("run/1.tfevents", 10);
        file->events.bytes[file->events.last_offset + 20] ^= 1;
        rig_append(file, 10);
        rig_list();
        rig_answer_all();
        pipeline_damage(rig.pipeline, file->id, rig_catalog_file(file)->version, start, 9,
                        on_damage, &answer, &request);
        while (moment > 0 && rig.store->read_count == 0)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        if (moment == 2)
                fake_store_answer(rig.store, 0, file->events.bytes, file->events.size, "");
        if (!by_end)
                pipeline_request_cancel(request);
        rig_end();
        ck_assert_uint_eq(answer.count, 0);
}

START_TEST(damage_is_canceled_at_every_moment) {
        for (unsigned moment = 0; moment < 3; moment++)
                for (int by_end = 0; by_end < 2; by_end++)
                        cancel_damage(moment, by_end);
}
END_TEST

/* --- Coming and going --- */

/* One step of what can happen. False: nothing is left to happen. */
static bool step(struct session *sessions, unsigned count) {
        bool more = false;

        if (rig.store->read_count > 0) {
                rig_answer(rig.store->read_count / 2);
                more = true;
        }
        for (unsigned i = 0; i < count; i++) {
                if (!sessions[i].reader || sessions[i].acked == sessions[i].pushed)
                        continue;
                session_acknowledge(&sessions[i],
                                    sessions[i].acked + 1 +
                                            (sessions[i].pushed - sessions[i].acked) / 2);
                more = true;
        }
        return more;
}

static void come_and_go(unsigned when) {
        struct session sessions[3] = { { 0 }, { 0 }, { 0 } };
        unsigned steps = 0;

        rig_begin(NULL);
        rig_add_file("a/1.tfevents", STEPS_OF_A_RING * 2 / 5);
        rig_add_file("a/2.tfevents", STEPS_OF_A_RING * 2 / 5);
        rig_add_file("b/1.tfevents", STEPS_OF_A_RING * 2 / 5);
        session_begin(&sessions[0], NULL);
        rig_list();
        do {
                if (steps == when / 2)
                        session_begin(&sessions[1], NULL);
                if (steps == when)
                        session_end(&sessions[0]);
                if (steps == when + 2) {
                        session_begin(&sessions[2], NULL);
                        session_end(&sessions[1]);
                }
        } while (step(sessions, 3) + (steps++ <= when + 2) > 0);
        session_must_be_complete(&sessions[2]);
        ck_assert_uint_eq(sessions[2].ends, 1);
        session_end(&sessions[2]);
        rig_end();
}

START_TEST(readers_come_and_go_at_every_moment) {
        for (unsigned when = 0; when < 40; when += 3)
                come_and_go(when);
}
END_TEST

/* The daemon ends in the middle of everything. */
START_TEST(the_end_may_come_at_any_moment) {
        for (unsigned when = 0; when < 30; when += 2) {
                struct session sessions[2];
                unsigned steps = 0;

                rig_begin(NULL);
                rig_add_file("a/1.tfevents", 2 * STEPS_OF_A_RING);
                rig_add_file("b/1.tfevents", 100);
                session_begin(&sessions[0], NULL);
                session_begin(&sessions[1], &following);
                rig_list();
                while (steps++ < when && step(sessions, 2))
                        ;
                if (rig.store->read_count > 0) /* a decoder has begun, or has not */
                        fake_store_answer(rig.store, 0, rig.files[0].events.bytes,
                                          rig.files[0].events.size, "");
                sessions[0].flushed = sessions[0].pushed;
                sessions[1].flushed = sessions[1].pushed;
                reader_free(sessions[0].reader);
                reader_free(sessions[1].reader);
                free(sessions[0].entries);
                free(sessions[1].entries);
                rig_end();
        }
}
END_TEST

RUNNER_MAIN("pipeline/pipeline", one_read_for_a_small_file, parts_are_published_in_file_order,
            files_of_a_run_come_in_name_order, files_that_wait_have_only_their_row,
            wait_loaded_waits_for_files_that_wait, archived_files_are_tried_once_an_hour,
            archived_files_are_read_when_the_listing_says_otherwise, what_changed_last_comes_first,
            runs_take_turns, one_file_has_half_of_the_window, growth_comes_before_what_is_new,
            what_is_prioritized_comes_first, an_ordered_listing_is_delivered_while_it_goes_on,
            a_long_listing_does_not_fill_the_ring, sorted_goes_by_run_and_file,
            filters_choose_runs_and_extents, an_empty_source_ends_at_once,
            an_old_listing_is_repeated_for_a_new_session,
            settled_files_hold_nothing_back_and_come_late,
            a_source_that_cannot_be_listed_ends_streams, damage_is_told_and_the_rest_delivered,
            what_was_read_wrongly_is_read_again, a_damaged_part_is_read_again_once,
            an_old_file_is_read_again_once, damage_across_a_border_of_parts_is_read_again,
            bytes_that_change_at_every_read_are_believed_in_the_end,
            a_file_that_is_written_over_is_not_taken_for_a_damaged_one,
            a_file_may_go_while_it_is_read_again, without_a_session_until_the_ring_is_full,
            resident_data_of_three_quotas_drains, three_rings_drain,
            three_rings_of_small_files_drain, a_full_queue_goes_on_entry_by_entry,
            nonsense_in_the_acknowledgements_breaks_the_session,
            a_stopped_session_holds_its_quota_and_no_more,
            many_stopped_sessions_leave_every_other_its_floor,
            as_many_sessions_as_the_ring_has_room_for, blocks_that_left_are_fetched_again_once,
            joined_blocks_come_as_one_extent, sessions_in_different_places_do_not_starve,
            stopped_sessions_cost_no_reads, what_nobody_needs_goes_first,
            a_record_larger_than_the_ring_is_read_once,
            of_a_large_record_only_what_there_is_room_for_is_decoded,
            a_large_record_is_read_again_once, a_stopped_session_holds_no_ticket,
            a_large_record_that_nobody_reads_holds_no_ticket, wait_loaded_lets_a_large_record_pass,
            a_held_record_goes_with_its_file, a_block_that_changed_is_lost,
            a_block_that_fails_in_passing_is_not_lost, what_was_lost_may_come_back,
            growth_is_read_from_where_it_was, an_unfinished_record_waits_for_its_end,
            a_file_that_shrank_begins_anew, a_file_that_only_looks_grown_begins_anew,
            an_object_that_is_rewritten_with_more_costs_what_is_new,
            a_version_that_is_gone_is_listed_again, a_version_that_is_always_gone_is_unreadable,
            a_stale_listing_is_not_a_file_that_shrank,
            another_inode_with_the_same_bytes_is_the_same_file,
            another_version_of_the_same_size_begins_anew, a_tail_of_zeros_is_filled_in,
            the_end_is_no_news, a_file_that_is_gone_is_withdrawn, a_file_may_go_at_any_moment,
            a_file_may_be_replaced_while_blocks_are_fetched_again, a_stream_goes_on_at_a_position,
            from_now_only_what_comes, wait_loaded_makes_demand,
            wait_loaded_reads_records_larger_than_the_ring, wait_loaded_waits_for_files_that_settle,
            wait_loaded_names_a_source_that_fails, an_answer_may_cancel_other_requests,
            reload_answers_when_the_news_are_known, reload_looks_twice_for_what_is_missing,
            payload_reads_one_value_again, payload_is_canceled_before_its_read,
            payload_is_canceled_while_it_is_read, payload_is_canceled_while_it_is_decoded,
            the_end_takes_a_payload_that_is_read, the_end_takes_a_payload_that_is_decoded,
            all_damage_is_found_again, damage_that_cannot_be_read_again,
            damage_is_canceled_at_every_moment, readers_come_and_go_at_every_moment,
            the_end_may_come_at_any_moment)
