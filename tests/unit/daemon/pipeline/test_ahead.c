/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of one file with several decoders at once: what comes out is what one decoder makes. The
 * answers of all parts are given in one turn of the loop, so that those behind the first find the
 * other decoders idle.
 */
#include <string.h>

#include "common/base.h"
#include "daemon/discover/watch.h"
#include "daemon/pipeline/pipeline.h"
#include "tests/unit/daemon/pipeline/rig.h"
#include "tests/unit/runner.h"

RIG_STORE_OPEN

#define STEPS_OF_A_RING (RIG_RING_BYTES / 64)
#define PART (128u << 10)

static const struct pipeline_counters *counters(void) {
        return pipeline_counters(rig.pipeline);
}

static void begin(unsigned decoders) {
        struct pipeline_options options = rig_usual;

        options.decoders = decoders;
        rig_begin(&options);
}

/* All reads that are under way, in one turn of the loop, which has not looked at them yet. */
static void give_all_answers(void) {
        while (rig.store->read_count > 0)
                fake_store_answer(rig.store, 0, rig.files[0].events.bytes, rig.files[0].events.size,
                                  "");
}

static void drain(struct session *session) {
        do {
                give_all_answers();
                rig_quiet();
                session_acknowledge(session, session->pushed);
                rig_quiet();
        } while (rig.store->read_count > 0 || session->acked < session->pushed);
}

START_TEST(parts_of_one_file_are_decoded_at_once) {
        struct session session;

        begin(4);
        rig_add_file("run/1.tfevents", STEPS_OF_A_RING * 3 / 4);
        session_begin(&session, NULL);
        rig_list();
        drain(&session);
        session_must_be_complete(&session);
        /* three at a time with the first, of 17 */
        ck_assert_uint_ge(counters()->parts_ahead, 12);
        ck_assert_uint_eq(counters()->parts_ahead_dropped, 0);
        ck_assert_uint_eq(counters()->refetched_blocks, 0);
        session_end(&session);
        rig_end();
}
END_TEST

/* More than the ring holds, with sessions that do not take what they have. */
START_TEST(held_extents_stand_in_nobodys_way) {
        struct session stopped[3], session;

        begin(4);
        rig_add_file("run/1.tfevents", 3 * STEPS_OF_A_RING);
        for (size_t i = 0; i < ARRAY_SIZE(stopped); i++)
                session_begin(&stopped[i], NULL);
        session_begin(&session, NULL);
        rig_list();
        drain(&session);
        session_must_be_complete(&session);
        ck_assert_uint_gt(counters()->parts_ahead, 0);
        session_end(&session);
        for (size_t i = 0; i < ARRAY_SIZE(stopped); i++) {
                drain(&stopped[i]);
                session_must_be_complete(&stopped[i]);
                session_end(&stopped[i]);
        }
        rig_end();
}
END_TEST

static void session_begin_any(struct session *session) {
        session_begin(session, NULL);
        session->any_step = true;
}

static void on_loaded(void *userdata, const struct catalog_source *failed) {
        ck_assert_ptr_null(failed);
        ++*(unsigned *)userdata;
}

/*
 * Records of many values, of which the ring needs more than the file's size lets expect: decoding
 * is paused inside of one, and the parts behind it have what room there is.
 */
static void load_records_of_many_values(unsigned stopped_count) {
        struct session stopped[3];
        struct pipeline_request *request;
        struct rig_file *file;
        unsigned loaded = 0;

        begin(4);
        file = rig_add_file("run/1.tfevents", 1);
        for (int i = 0; i < 40; i++) {
                events_scalars(&file->events, file->steps, "many", 30000);
                rig_append(file, 2000);
        }
        for (unsigned i = 0; i < stopped_count; i++)
                session_begin_any(&stopped[i]);
        ck_assert_int_eq(pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, &loaded, &request), 0);
        rig_list();
        do {
                give_all_answers();
                rig_quiet();
        } while (rig.store->read_count > 0);
        ck_assert_uint_eq(loaded, 1);
        for (unsigned i = 0; i < stopped_count; i++) {
                drain(&stopped[i]);
                session_end(&stopped[i]);
        }
        rig_end();
}

START_TEST(parts_behind_a_paused_one_leave_it_room) {
        load_records_of_many_values(0);
}
END_TEST

START_TEST(parts_behind_a_paused_one_leave_it_room_beside_sessions) {
        load_records_of_many_values(2);
}
END_TEST

/* Files whose parts are as unlike as can be: records longer than parts, one of many values, damage. */
static void add_odd_file(unsigned seed) {
        struct rig_file *file = rig_add_file("run/1.tfevents", 10);
        uint32_t chance = seed * 2654435761u + 1;

        for (int i = 0; i < 60; i++) {
                chance = chance * 1664525u + 1013904223u;
                switch (chance >> 29) {
                case 0:
                        events_string(&file->events, file->steps, "text",
                                      (chance >> 8) % (3 * PART));
                        break;
                case 1:
                        events_scalars(&file->events, file->steps, "many", (chance >> 8) % 4000);
                        break;
                default:
                        rig_append(file, (chance >> 8) % 1500);
                        break;
                }
                chance = chance * 1664525u + 1013904223u;
                if (chance >> 30 == 0 && file->events.size > 0)
                        file->events.bytes[file->events.last_offset + (chance >> 8) % 40] ^= 1;
                rig_append(file, 1);
        }
}

struct outcome {
        uint64_t records, damaged, ahead;
};

static struct outcome outcome_with(unsigned decoders, unsigned seed) {
        struct outcome outcome;
        struct session session;

        begin(decoders);
        add_odd_file(seed);
        session_begin(&session, NULL);
        session.any_step = true;
        rig_list();
        drain(&session);
        ck_assert_uint_eq(session.ends, 1);
        ck_assert_uint_eq(session.lost, 0);
        outcome = (struct outcome){ session.records, counters()->damaged, counters()->parts_ahead };
        session_end(&session);
        rig_end();
        return outcome;
}

START_TEST(many_decoders_make_what_one_makes) {
        uint64_t ahead = 0;

        for (unsigned seed = 0; seed < 12; seed++) {
                struct outcome one = outcome_with(1, seed), four = outcome_with(4, seed);

                ck_assert_uint_eq(one.records, four.records);
                ck_assert_uint_eq(one.damaged, four.damaged);
                ck_assert_uint_gt(one.records, 1000);
                ck_assert_uint_eq(one.ahead, 0);
                ahead += four.ahead;
        }
        ck_assert_uint_gt(ahead, 12);
}
END_TEST

/* The file goes, or is another one, or the daemon ends, while decoders have several of its parts. */
static void interrupt(unsigned turns, bool gone, bool replaced) {
        struct reader_options following = { .from = READER_FROM_START, .follow = true };
        struct session session;

        begin(4);
        rig_add_file("run/1.tfevents", STEPS_OF_A_RING * 3 / 4);
        session_begin(&session, &following);
        session.any_step = true;
        rig_list();
        if (gone) {
                rig.files[0].hidden = true;
                rig_list_again(); /* it must be missing twice */
                watch_now(rig.source->watch);
                rig_quiet();
        } else if (replaced) {
                watch_now(rig.source->watch);
                rig_quiet();
        }
        give_all_answers();
        for (unsigned i = 0; i < turns; i++)
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        if (replaced) {
                events_free(&rig.files[0].events);
                rig.files[0].events = (struct events){ 0 };
                rig.files[0].steps = 0;
                events_version(&rig.files[0].events);
                rig_append(&rig.files[0], 7);
        }
        if (gone || replaced) {
                rig_list();
                drain(&session);
        }
        if (gone)
                ck_assert_ptr_null(rig_catalog_file(&rig.files[0]));
        if (replaced)
                ck_assert_uint_eq(rig_catalog_file(&rig.files[0])->records, 7 + 1);
        if (gone || replaced) {
                session_end(&session);
        } else {
                session.flushed = session.pushed;
                reader_free(session.reader);
                free(session.entries);
        }
        rig_end();
}

START_TEST(a_file_may_go_while_parts_are_decoded) {
        for (unsigned turns = 0; turns < 20; turns++)
                interrupt(turns, true, false);
}
END_TEST

START_TEST(a_file_may_be_replaced_while_parts_are_decoded) {
        for (unsigned turns = 0; turns < 20; turns++)
                interrupt(turns, false, true);
}
END_TEST

START_TEST(the_end_may_come_while_parts_are_decoded) {
        for (unsigned turns = 0; turns < 20; turns++)
                interrupt(turns, false, false);
}
END_TEST

RUNNER_MAIN("pipeline/ahead", parts_of_one_file_are_decoded_at_once,
            held_extents_stand_in_nobodys_way, parts_behind_a_paused_one_leave_it_room,
            parts_behind_a_paused_one_leave_it_room_beside_sessions,
            many_decoders_make_what_one_makes, a_file_may_go_while_parts_are_decoded,
            a_file_may_be_replaced_while_parts_are_decoded,
            the_end_may_come_while_parts_are_decoded)
