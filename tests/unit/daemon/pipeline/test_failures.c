/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline from its start through a load to its end, with its first, second, third ...
 * allocation or system call failing. What a stream without follow says to be complete is complete,
 * or the file that is not is named as unreadable.
 */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/discover/watch.h"
#include "tests/unit/daemon/pipeline/rig.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

RIG_STORE_OPEN

#define N_MOST 20000
#define ROUNDS 6
#define DAMAGED 3 /* its place in rig.files */
#define JUNK_BYTES 20

static bool gone, loaded, damage_told;
static uint64_t damaged_offset;
static struct session session;

static void on_closed(void *userdata) {
        (void)userdata;
        gone = true;
}

static void on_loaded(void *userdata, const struct catalog_source *failed) {
        (void)userdata;
        (void)failed;
        loaded = true;
}

static void on_payload(void *userdata, int error, const struct store_failure *failure,
                       void *take_memory, uint64_t size_bytes) {
        unsigned *answers = userdata;

        (void)failure;
        MUST((error == 0) == (take_memory != NULL && size_bytes > 0));
        free(take_memory);
        (*answers)++;
}

static void on_damage(void *userdata, int error, const struct store_failure *failure,
                      const struct damaged_place *places, uint32_t count,
                      const struct pipeline_place *next) {
        unsigned *answers = userdata;

        (void)failure, (void)next;
        MUST(error || (count == 1 && places[0].offset == damaged_offset));
        damage_told |= !error;
        (*answers)++;
}

static void wait_for(bool asked, const unsigned *answers) {
        while (asked && !*answers) {
                uv_run(&rig.loop, UV_RUN_NOWAIT);
                rig_answer_all();
        }
}

/* Of the last file, a block is read again for it. */
static void ask_for_damage(void) {
        struct catalog_file *file = rig_catalog_file(&rig.files[DAMAGED]);
        struct pipeline_place start = { 0 };
        struct pipeline_request *request;
        unsigned answers = 0;

        if (file && file_damage_count(file->damage) > 0)
                wait_for(pipeline_damage(rig.pipeline, file->id, file->version, start, 2, on_damage,
                                         &answers, &request) == 0,
                         &answers);
}

/*
 * Every file that is not whole is said to be unreadable, or the session is broken, or has not
 * ended.
 */
static void check_end(void) {
        if (session.ends == 0 || session.error)
                return;
        for (unsigned i = 0; i < rig.file_count; i++) {
                const struct catalog_file *file = rig_catalog_file(&rig.files[i]);

                if (session.next_step[i] + (int64_t)session.lost == rig.files[i].steps)
                        continue;
                ck_assert_msg(file && file->state == CATALOG_UNREADABLE,
                              "%s failed: %s ends at %lld of %lld", fail_name(), rig.files[i].name,
                              (long long)session.next_step[i], (long long)rig.files[i].steps);
        }
}

/* Something may have failed at every point; whoever is told so goes on without. */
static void load(void) {
        struct pipeline_request *request;
        unsigned answers = 0;
        bool asked = false;

        for (unsigned round = 0; round < ROUNDS; round++) {
                if (!rig.store->callbacks && rig.source->listings == 0)
                        watch_now(rig.source->watch);
                rig_quiet();
                if (rig.store->callbacks)
                        rig_list();
                if (!session.reader)
                        session_try(&session, NULL);
                rig_answer_all();
                if (session.reader && !session.error)
                        session_acknowledge(&session, session.pushed);
        }
        pipeline_wait_loaded(rig.pipeline, NULL, on_loaded, NULL, &request);
        rig_quiet();
        if (rig_catalog_file(&rig.files[0]))
                asked = pipeline_payload(rig.pipeline, rig.files[0].id,
                                         rig_catalog_file(&rig.files[0])->version,
                                         rig.files[0].events.last_offset, 0, on_payload, &answers,
                                         &request) == 0;
        wait_for(asked, &answers);
        ask_for_damage();
        check_end();
}

/* Junk between its records: all of those are there. */
static void add_damaged_file(void) {
        struct rig_file *file = rig_add_file("b/2.tfevents", 20);
        struct events *events = &file->events;

        events->space += JUNK_BYTES;
        events->bytes = realloc(events->bytes, events->space);
        memset(events->bytes + events->size, 'x', JUNK_BYTES);
        damaged_offset = events->size;
        events->size += JUNK_BYTES;
        rig_append(file, 5);
}

static void scenario(uint64_t n) {
        const char *message;
        int r;

        gone = loaded = damage_told = false;
        rig_prepare();
        rig_add_file("a/1.tfevents", 20);
        rig_add_file("a/2.tfevents", 3000);
        rig_add_file("b/1.tfevents", 0);
        add_damaged_file();
        session_prepare(&session);
        fail_begin(n, FAIL_ANY_THREAD);
        r = pipeline_new(&rig.loop, &rig_usual, &rig.pipeline);
        if (r == 0) {
                r = rig_add_source(&message);
                if (r == 0)
                        load();
                session.flushed = session.pushed;
                session.reader = reader_free(session.reader);
                pipeline_close(rig.pipeline, on_closed, NULL);
        }
        uv_run(&rig.loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&rig.loop), 0);
        if (!fail_happened()) {
                ck_assert(gone && loaded);
                ck_assert_uint_eq(session.ends, 1);
                session_must_be_complete(&session);
                ck_assert(damage_told);
        }
        free(session.entries);
        rig_forget();
}

START_TEST(every_failure_is_survived) {
        uint64_t n = 0;

        do
                scenario(++n);
        while (fail_end() && n < N_MOST);
        ck_assert_uint_gt(n, 50);
        ck_assert_uint_lt(n, N_MOST);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
}
END_TEST

RUNNER_MAIN("pipeline/failures", every_failure_is_survived)
