/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoder threads over a real ring and the fixtures: whatever the number of threads, each file's
 * blocks come in order and hold the records that decoding it here gives.
 */
#include "daemon/pipeline/decoder_pool.h"

#include <ftw.h>
#include <sched.h>
#include <string.h>

#include "common/base.h"
#include "tests/unit/daemon/pipeline/blocks.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

#define FIXTURES "tests/data/fixtures"
#define FILES_MOST 512
#define RING_BYTES (4u << 20)
#define SEGMENT_BYTES (64u << 10)

struct decoded {
        struct decoder_task task;
        char path[160];
        struct bytes bytes;
        struct block_file file;
        uint64_t records, digest; /* of all records in order */
        unsigned extents, done;
};

static struct decoded files[FILES_MOST];
static unsigned file_count;
static uv_loop_t loop;
static struct ring *ring;
static struct decoder_pool *pool;
static unsigned done, batches, absent;
static bool grants_nothing;

static int visit(const char *path, const struct stat *status, int type, struct FTW *walk) {
        struct decoded *file = &files[file_count];

        (void)status;
        if (type != FTW_F || !strstr(path + walk->base, "tfevents"))
                return 0;
        ck_assert_uint_lt(file_count, FILES_MOST);
        file_count++;
        snprintf(file->path, sizeof(file->path), "%s", path);
        file->bytes = bytes_of_file(path);
        file->file = blocks_file(file->path, "a/run");
        return 0;
}

static uint64_t digest_of(uint64_t digest, const void *image, uint64_t size_bytes) {
        struct extent_view view;

        ck_assert_int_eq(extent_view_init(&view, image, size_bytes), 0);
        ck_assert(extent_view_is_intact(&view));
        for (uint32_t i = 0; i < view.record_count; i++)
                digest = digest * 0x100000001b3u + blocks_record_digest(&view, &view.records[i]);
        return digest;
}

static void grant(void) {
        for (unsigned wants = decoder_pool_wants(pool); wants > 0 && !grants_nothing; wants--) {
                uint32_t segment = ring_take_free(ring);

                /* Nobody keeps anything: whatever is closed is free. */
                for (uint32_t i = 0; segment == RING_SEGMENT_NONE && i < RING_BYTES / SEGMENT_BYTES;
                     i++) {
                        if (!ring_is_closed(ring, i))
                                continue;
                        ring_recycle(ring, i);
                        segment = i;
                }
                ck_assert_uint_ne(segment, RING_SEGMENT_NONE); /* a decoder always finds one */
                decoder_pool_grant(pool, segment);
        }
}

static void on_event(struct decoder_task *task, const struct decoder_event *event) {
        struct decoded *file = task->owner;

        ck_assert_ptr_eq(event->task, task);
        ck_assert_uint_eq(file->done, 0);
        if (event->type == DECODER_DONE) {
                file->done++;
                done++;
                return;
        }
        ck_assert_int_eq(event->type, DECODER_EXTENT);
        if (event->output.extent_bytes == 0)
                return; /* only damage is told */
        ck_assert_uint_eq(event->offset_bytes % EXTENT_ALIGNMENT, 0);
        ck_assert_uint_le(event->offset_bytes + event->output.extent_bytes, SEGMENT_BYTES);
        file->extents++;
        file->records += event->output.record_count;
        file->digest = digest_of(file->digest,
                                 ring_segment_memory(ring, event->segment) + event->offset_bytes,
                                 event->output.extent_bytes);
}

static void on_segment(void *userdata, const struct decoder_event *event) {
        ck_assert_ptr_eq(userdata, files);
        if (event->type == DECODER_SEGMENT_FULL) {
                ring_close(ring, event->segment);
                return;
        }
        ck_assert_int_eq(event->type, DECODER_SEGMENT_ABSENT);
        absent++;
        ring_stop_growing(ring, event->segment);
}

static void on_batch(void *userdata) {
        ck_assert_ptr_eq(userdata, files);
        batches++;
        grant();
}

static void begin(unsigned threads) {
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        ck_assert_int_eq(ring_new(RING_BYTES, RING_HUGE_OFF, &ring, NULL), 0);
        ck_assert_int_eq(decoder_pool_new(&loop, ring, threads, on_segment, on_batch, files, &pool),
                         0);
        ck_assert_uint_eq(decoder_pool_threads(pool), threads);
        ck_assert_uint_eq(decoder_pool_wants(pool), 0); /* nobody has anything to do */
        done = batches = 0;
        if (file_count == 0)
                ck_assert_int_eq(nftw(FIXTURES, visit, 16, FTW_PHYS), 0);
        ck_assert_uint_gt(file_count, 350);
}

static void on_closed(void *userdata) {
        *(bool *)userdata = true;
}

static void end(void) {
        bool closed = false;

        decoder_pool_close(pool, on_closed, &closed);
        ck_assert(!closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert(closed);
        ring_free(ring);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
}

static void forget_files(void) {
        for (unsigned i = 0; i < file_count; i++)
                free(files[i].bytes.at);
        memset(files, 0, sizeof(files));
        file_count = 0;
}

static void submit(struct decoded *file) {
        file->records = file->digest = file->extents = file->done = 0;
        file->task = (struct decoder_task){ .owner = file, .on_event = on_event };
        list_init(&file->task.node);
        file->task.input = blocks_input(&file->bytes, &file->file, SEGMENT_BYTES);
        decoder_pool_submit(pool, &file->task);
        grant();
}

/* What decoding it into whole segments gives. */
static void check_file(const struct decoded *file) {
        struct block_input input = blocks_input(&file->bytes, &file->file, SEGMENT_BYTES);
        struct blocks expected = blocks_decode(&input);
        uint64_t records = 0, digest = 0;

        for (size_t i = 0; i < expected.count; i++) {
                records += expected.list[i].output.record_count;
                if (expected.list[i].image)
                        digest = digest_of(digest, expected.list[i].image,
                                           expected.list[i].output.extent_bytes);
        }
        ck_assert_msg(file->records == records && file->digest == digest,
                      "%s: %llu records of %llu", file->path, (unsigned long long)file->records,
                      (unsigned long long)records);
        ck_assert_int_ne(file->task.result, STAGE_FULL);
        blocks_free(&expected);
}

static void decode_all(unsigned threads) {
        begin(threads);
        for (unsigned round = 0; round < 2; round++) {
                done = 0;
                for (unsigned i = 0; i < file_count; i++)
                        submit(&files[i]);
                while (done < file_count)
                        uv_run(&loop, UV_RUN_ONCE);
                for (unsigned i = 0; i < file_count; i++)
                        check_file(&files[i]);
                ck_assert_uint_eq(decoder_pool_wants(pool), 0);
        }
        ck_assert_uint_gt(batches, 0);
        end();
        forget_files();
}

START_TEST(fixtures_on_one_thread) {
        decode_all(1);
}
END_TEST

START_TEST(fixtures_on_four_threads) {
        decode_all(4);
}
END_TEST

/* The end does not wait for tasks that have not begun, nor for segments that nobody grants. */
START_TEST(closes_while_busy) {
        for (unsigned turns = 0; turns < 20; turns++) {
                begin(4);
                for (unsigned i = 0; i < file_count; i++)
                        submit(&files[i]);
                for (unsigned i = 0; i < turns; i++)
                        uv_run(&loop, UV_RUN_NOWAIT);
                end();
        }
        forget_files();
}
END_TEST

START_TEST(closes_while_decoders_wait_for_segments) {
        begin(4);
        grants_nothing = true;
        for (unsigned i = 0; i < file_count; i++)
                submit(&files[i]);
        for (unsigned i = 0; i < 50; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
        ck_assert_uint_eq(done, 0);
        ck_assert_uint_gt(decoder_pool_wants(pool), 0);
        end();
        forget_files();
}
END_TEST

START_TEST(closes_with_all_event_slots_full) {
        begin(4);
        grants_nothing = true;
        for (unsigned i = 0; i < file_count; i++)
                submit(&files[i]);
        for (unsigned i = 0; i < 4; i++)
                decoder_pool_grant(pool, ring_take_free(ring));
        sched_yield(); /* nobody takes events out: the decoders fill the slots, or not yet */
        end();
        forget_files();
}
END_TEST

/*
 * A segment for which the machine has no memory is given back, and the decoder goes on with
 * another.
 */
START_TEST(goes_on_without_a_segment_that_has_no_memory) {
        begin(1);
        absent = 0;
        /* of the segments' memory: nothing else is called on the way */
        fail_begin(12, FAIL_ANY_THREAD);
        for (unsigned i = 0; i < file_count; i++)
                submit(&files[i]);
        while (done < file_count)
                uv_run(&loop, UV_RUN_ONCE);
        ck_assert(fail_end());
        ck_assert_str_eq(fail_name(), "fallocate");
        ck_assert_uint_eq(absent, 1);
        for (unsigned i = 0; i < file_count; i++)
                check_file(&files[i]);
        end();
        forget_files();
}
END_TEST

RUNNER_MAIN("pipeline/decoder_pool", fixtures_on_one_thread, fixtures_on_four_threads,
            closes_while_busy, closes_while_decoders_wait_for_segments,
            closes_with_all_event_slots_full, goes_on_without_a_segment_that_has_no_memory)
