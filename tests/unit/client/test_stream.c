/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "client/include/headrace.h"
#include "common/base.h"
#include "common/name_id.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/runner.h"

static _Alignas(64) uint8_t memory[FAKE_EXTENT_BYTES];

static const struct fake_extent one_file = { .run = "a/b",
                                             .path = "a/b/x.tfevents",
                                             .source_id = 9,
                                             .file_id = 0xf11e,
                                             .file_version = 3,
                                             .record_count = 5 };

struct world {
        struct fake_daemon fake;
        struct hr_connection *connection;
        struct hr_subscription subscription;
};

static void begin(struct world *world) {
        memset(world, 0, sizeof(*world));
        fake_daemon_init(&world->fake);
        world->subscription = (struct hr_subscription)HR_SUBSCRIPTION;
}

static void connect_to(struct world *world) {
        char *error = NULL;

        fake_daemon_start(&world->fake);
        ck_assert_msg(hr_connect_fd(world->fake.client_fd, NULL, &world->connection, &error) == 0,
                      "%s", error);
}

static int subscribe(struct world *world) {
        return hr_subscribe(world->connection, &world->subscription);
}

static void end(struct world *world) {
        hr_close(world->connection);
        fake_daemon_deinit(&world->fake);
}

static struct ring_entry place(struct world *world) {
        uint64_t size = fake_extent_write(memory, &one_file);

        return fake_daemon_place(&world->fake, 1, memory, size);
}

static void push_flag(struct world *world, uint32_t flags) {
        struct ring_entry entry = {
                .flags = flags, .file_id = one_file.file_id, .generation = 4, .lost_count = 6
        };

        fake_daemon_push(&world->fake, &entry);
}

static void check_all_five(struct hr_batch *batch) {
        const struct hr_record *record;
        int64_t step = 0;

        ck_assert_int_eq(batch->event, HR_RECORDS);
        ck_assert_str_eq(batch->file->run.bytes, "a/b");
        ck_assert_str_eq(batch->file->path.bytes, "a/b/x.tfevents");
        ck_assert_uint_eq(batch->file_version, 3);
        for (; (record = hr_record_next(batch)); step++) {
                ck_assert_int_eq(record->step, step);
                ck_assert_double_eq(record->value, (double)step / 2);
                ck_assert_str_eq(hr_record_series(batch, record)->tag.bytes,
                                 step % 2 ? "acc" : "loss");
                ck_assert_str_eq(hr_record_series(batch, record)->run.bytes, "a/b");
        }
        ck_assert_int_eq(step, 5);
        ck_assert_uint_eq(batch->next.offset, 200);
        ck_assert_uint_eq(batch->next.file_id, one_file.file_id);
}

START_TEST(reads_through_map) {
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        fake_daemon_push(&world.fake, &entry);
        push_flag(&world, RING_ENTRY_END);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        check_all_five(&batch);
        ck_assert_uint_eq(atomic_load(&world.fake.ack->acked), 0);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), HR_END);
        ck_assert_uint_eq(atomic_load(&world.fake.ack->acked), 2);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), HR_END);
        end(&world);
}
END_TEST

static void send_inline(struct world *world, const struct ring_entry *entry, const void *extent) {
        uint8_t body[sizeof(*entry) + FAKE_EXTENT_BYTES];
        size_t size = sizeof(*entry) + entry->size_bytes, first = size / 3;

        memcpy(body, entry, sizeof(*entry));
        if (entry->size_bytes)
                memcpy(body + sizeof(*entry), extent, entry->size_bytes);
        if (!entry->size_bytes) {
                fake_daemon_send(&world->fake, WIRE_EXTENT, 0, body, size);
                return;
        }
        fake_daemon_send(&world->fake, WIRE_EXTENT, WIRE_MORE, body, first);
        fake_daemon_send(&world->fake, WIRE_EXTENT, WIRE_MORE, body + first, first);
        fake_daemon_send(&world->fake, WIRE_EXTENT, 0, body + 2 * first, size - 2 * first);
}

START_TEST(reads_inline) {
        struct world world;
        struct ring_entry entry, last = { .flags = RING_ENTRY_END };
        struct hr_batch batch;
        char *result = NULL;

        begin(&world);
        world.subscription.transport = HR_TRANSPORT_INLINE;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        send_inline(&world, &entry, memory);
        send_inline(&world, &last, NULL);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        check_all_five(&batch);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), HR_END);
        /* An answered call behind it: the acknowledgements have been read, too. */
        ck_assert_int_eq(hr_call(world.connection, "nothing", NULL, &result), HR_E_REFUSED);
        ck_assert_uint_eq(atomic_load(&world.fake.acked), 2);
        end(&world);
}
END_TEST

START_TEST(filters_and_ranges) {
        static const char *const tags[] = { "l*", NULL };
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;
        const struct hr_record *record;

        begin(&world);
        world.subscription.tags = tags;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        entry.first_record = 1;
        entry.record_count = 3; /* steps 1, 2, 3: of those, 2 is "loss" */
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        record = hr_record_next(&batch);
        ck_assert_ptr_nonnull(record);
        ck_assert_int_eq(record->step, 2);
        ck_assert_ptr_null(hr_record_next(&batch));
        ck_assert_uint_eq(batch.next.offset, 160);
        end(&world);
}
END_TEST

START_TEST(plugin_filter) {
        static const char *const plugins[] = { "other", NULL };
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;
        int count = 0;

        begin(&world);
        world.subscription.plugins = plugins;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        for (const struct hr_record *record; (record = hr_record_next(&batch)); count++)
                ck_assert_str_eq(hr_record_series(&batch, record)->tag.bytes, "acc");
        ck_assert_int_eq(count, 2);
        end(&world);
}
END_TEST

/* An extent in which "loss" has a plugin only from record `again_at` on. */
static struct ring_entry place_late(struct world *world, uint32_t again_at) {
        struct fake_extent extent = one_file;

        extent.again_at = again_at;
        return fake_daemon_place(&world->fake, 0, memory, fake_extent_write(memory, &extent));
}

static void check_piece(struct world *world, int64_t step, int64_t behind, const char *plugin) {
        const struct hr_record *record;
        struct hr_batch batch;

        ck_assert_int_eq(hr_next(world->connection, -1, &batch), 0);
        ck_assert_uint_eq(batch.record_count, behind - step);
        ck_assert_uint_eq(batch.next.offset, 40 * (uint64_t)behind);
        for (; (record = hr_record_next(&batch)); step++) {
                const struct hr_series *series = hr_record_series(&batch, record);

                ck_assert_int_eq(record->step, step);
                ck_assert_str_eq(series->plugin.bytes, record->step % 2 ? "other" : plugin);
                ck_assert_uint_eq(series->number, record->step % 2);
        }
        ck_assert_int_eq(step, behind);
}

/*
 * A series changes between two batches only: an extent in which one says more becomes two, and goes
 * back when the second has been read.
 */
START_TEST(series_that_says_more_within_an_extent) {
        struct ring_entry entry;
        struct hr_batch batch;
        struct world world;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place_late(&world, 2);
        fake_daemon_push(&world.fake, &entry);
        push_flag(&world, RING_ENTRY_END);
        check_piece(&world, 0, 2, "");
        check_piece(&world, 2, 5, "scalars");
        ck_assert_uint_eq(atomic_load(&world.fake.ack->acked), 0);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), HR_END);
        ck_assert_uint_eq(atomic_load(&world.fake.ack->acked), 2);
        end(&world);
}
END_TEST

START_TEST(series_that_says_more_outside_of_the_range) {
        struct ring_entry entry;
        struct world world;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place_late(&world, 4);
        entry.record_count = 4; /* before it */
        fake_daemon_push(&world.fake, &entry);
        check_piece(&world, 0, 4, "");
        entry.first_record = 4; /* at it */
        entry.record_count = 1;
        fake_daemon_push(&world.fake, &entry);
        check_piece(&world, 4, 5, "scalars");
        end(&world);
}
END_TEST

START_TEST(filter_on_what_a_series_says_late) {
        static const char *const plugins[] = { "scalars", NULL };
        const struct hr_record *record;
        struct ring_entry entry;
        struct hr_batch batch;
        struct world world;

        begin(&world);
        world.subscription.plugins = plugins;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place_late(&world, 2);
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_ptr_null(hr_record_next(&batch));
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        for (int64_t step = 2; step < 5; step += 2) {
                record = hr_record_next(&batch);
                ck_assert_ptr_nonnull(record);
                ck_assert_int_eq(record->step, step);
        }
        ck_assert_ptr_null(hr_record_next(&batch));
        end(&world);
}
END_TEST

START_TEST(news_of_files) {
        static const struct {
                uint32_t flag;
                enum hr_event event;
        } cases[] = { { RING_ENTRY_REPLACED, HR_REPLACED },
                      { RING_ENTRY_GONE, HR_GONE },
                      { RING_ENTRY_LOST, HR_LOST } };
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        push_flag(&world, RING_ENTRY_GONE);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_ptr_null(batch.file); /* nothing of it was delivered */
        entry = place(&world);
        entry.flags = RING_ENTRY_LATE | RING_ENTRY_DAMAGED;
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_uint_eq(batch.flags, HR_BATCH_LATE | HR_BATCH_DAMAGED);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                push_flag(&world, cases[i].flag);
                ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
                ck_assert_int_eq(batch.event, cases[i].event);
                ck_assert_str_eq(batch.file->path.bytes, "a/b/x.tfevents");
                ck_assert_uint_eq(batch.file_version, 4);
                ck_assert_uint_eq(batch.lost_count, 6);
                ck_assert_ptr_null(hr_record_next(&batch));
        }
        end(&world);
}
END_TEST

/* ---- Waking ---------------------------------------------------------------------------------- */

START_TEST(sleeps_and_is_woken) {
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;
        struct pollfd poll_fd;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        ck_assert_int_eq(hr_next(world.connection, 0, &batch), HR_AGAIN);
        ck_assert_uint_eq(atomic_load(&world.fake.ack->want), 1);
        poll_fd = (struct pollfd){ .fd = hr_fd(world.connection),
                                   .events = hr_events(world.connection) };
        ck_assert_int_eq(poll(&poll_fd, 1, 0), 0);

        entry = place(&world);
        fake_daemon_push(&world.fake, &entry);
        fake_daemon_send(&world.fake, WIRE_WAKE, 0, NULL, 0);
        ck_assert_int_eq(poll(&poll_fd, 1, -1), 1);
        ck_assert_int_eq(hr_next(world.connection, 0, &batch), 0);
        check_all_five(&batch);
        ck_assert_uint_eq(atomic_load(&world.fake.ack->want), 0);
        ck_assert_int_eq(hr_next(world.connection, 0, &batch), HR_AGAIN);
        end(&world);
}
END_TEST

/*
 * The daemon asks to be woken at two acknowledgements: it gets one frame, then, and not at the
 * first or third.
 */
START_TEST(wakes_the_daemon_at_its_mark) {
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        for (int i = 0; i < 4; i++)
                fake_daemon_push(&world.fake, &entry);
        atomic_store(&world.fake.queue->kick_at, 2);
        for (int i = 0; i < 4; i++) {
                ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
                ck_assert_uint_eq(atomic_load(&world.fake.ack->acked), (unsigned)i);
                /* frames before it are read */
                ck_assert_int_eq(hr_call(world.connection, "nothing", NULL, NULL), HR_E_REFUSED);
                ck_assert_uint_eq(atomic_load(&world.fake.wakes), i >= 2);
        }
        end(&world);
}
END_TEST

START_TEST(daemon_goes_while_entries_wait) {
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        fake_daemon_push(&world.fake, &entry);
        fake_daemon_push(&world.fake, &entry);
        fake_daemon_stop(&world.fake);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        check_all_five(&batch);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), -ECONNRESET);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), -ECONNRESET);
        ck_assert_str_ne(hr_error(world.connection), "");
        end(&world);
}
END_TEST

START_TEST(stream_that_cannot_be_completed) {
        static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"stream_failed\",\"params\":{"
                                   "\"source\":\"x\",\"code\":-32002,"
                                   "\"message\":\"Forbidden\",\"data\":{\"code\":\"403\"}}}";
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        fake_daemon_push(&world.fake, &entry);
        fake_daemon_send(&world.fake, WIRE_JSON, 0, text, sizeof(text) - 1);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), HR_E_SOURCE);
        ck_assert_str_eq(hr_error(world.connection), "403 Forbidden");
        end(&world);
}
END_TEST

/* The end is seen in shared memory before its reason has arrived. */
static void *say_why(void *userdata) {
        static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"stream_failed\",\"params\":{"
                                   "\"code\":-32002,\"message\":\"x\"}}";

        fake_daemon_send(userdata, WIRE_JSON, 0, text, sizeof(text) - 1);
        return NULL;
}

START_TEST(reason_follows_the_end) {
        struct world world;
        struct hr_batch batch;
        pthread_t thread;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        atomic_store(&world.fake.queue->status, RING_QUEUE_CLOSED);
        ck_assert_int_eq(pthread_create(&thread, NULL, say_why, &world.fake), 0);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), HR_E_SOURCE);
        pthread_join(thread, NULL);
        end(&world);
}
END_TEST

START_TEST(positions_and_order_are_sent) {
        static const struct hr_position position = {
                .file_id = 0xab, .file_version = UINT64_MAX, .offset = 40, .index = 2
        };
        struct world world;

        begin(&world);
        world.subscription.from = HR_FROM_POSITIONS;
        world.subscription.positions = &position;
        world.subscription.position_count = 1;
        world.subscription.order = HR_ORDER_SORTED;
        world.subscription.follow = true;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        ck_assert_str_eq(world.fake.last_subscribe,
                         "{\"follow\":true,\"from\":{\"positions\":[{\"file\":\"00000000000000ab\","
                         "\"file_version\":\"ffffffffffffffff\",\"index\":2,\"offset\":40}]},"
                         "\"order\":\"sorted\",\"transport\":\"map\"}");
        end(&world);
}
END_TEST

START_TEST(session_ended_by_the_daemon) {
        struct world world;
        struct hr_batch batch;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        atomic_store(&world.fake.queue->status, RING_QUEUE_CLOSED);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), -ECONNRESET);
        end(&world);
}
END_TEST

/* ---- A daemon that is wrong ------------------------------------------------------------------ */

START_TEST(wrong_seals) {
        static const int seals[] = { F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE };

        for (int fd = 0; fd < 3; fd++) {
                for (size_t i = 0; i < ARRAY_SIZE(seals); i++) {
                        struct world world;

                        if (fd == 2 && seals[i] == F_SEAL_FUTURE_WRITE)
                                continue; /* the client writes there */
                        begin(&world);
                        world.fake.unsealed = fd;
                        world.fake.unsealed_seal = seals[i];
                        connect_to(&world);
                        ck_assert_int_eq(subscribe(&world), -EBADF);
                        ck_assert_ptr_nonnull(strstr(hr_error(world.connection), "sealed"));
                        end(&world);
                }
        }
}
END_TEST

START_TEST(no_descriptors) {
        struct world world;

        begin(&world);
        world.fake.sends_no_fds = true;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), -EBADF);
        end(&world);
}
END_TEST

START_TEST(wrong_super_block) {
        for (int i = 0; i < 13; i++) {
                struct world world;
                struct ring_super *super;
                struct ring_queue *queue;

                begin(&world);
                super = world.fake.super;
                queue = world.fake.queue;
                switch (i) {
                case 0:
                        super->magic++;
                        break;
                case 1:
                        super->abi_major++;
                        break;
                case 2:
                        super->features_incompatible = 1;
                        break;
                case 3:
                        super->size_bytes--;
                        break;
                case 4:
                        super->segment_count++;
                        break;
                case 5:
                        super->segment_bytes = UINT64_MAX / 2 + 1;
                        break;
                case 6:
                        super->segments_offset = UINT64_MAX - 63;
                        break;
                case 7:
                        super->table_offset = FAKE_DATA_BYTES - 8;
                        break;
                case 8:
                        super->segment_count = 0;
                        break;
                case 9:
                        queue->magic++;
                        break;
                case 10:
                        queue->entries_offset = RING_QUEUE_BYTES - 64;
                        break;
                case 11:
                        queue->entry_count = 1000;
                        break; /* no power of two */
                case 12:
                        queue->instance_id++;
                        break;
                }
                connect_to(&world);
                ck_assert_msg(subscribe(&world) == -EBADF, "case %d", i);
                end(&world);
        }
}
END_TEST

START_TEST(unknown_compatible_features_are_fine) {
        struct world world;

        begin(&world);
        world.fake.super->features_compatible = 0x80;
        world.fake.super->abi_minor = 9;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        end(&world);
}
END_TEST

START_TEST(wrong_entries) {
        for (int i = 0; i < 10; i++) {
                struct world world;
                struct ring_entry entry;
                struct hr_batch batch;

                begin(&world);
                connect_to(&world);
                ck_assert_int_eq(subscribe(&world), 0);
                entry = place(&world);
                switch (i) {
                case 0:
                        entry.segment = FAKE_SEGMENTS;
                        break;
                case 1:
                        entry.segment = UINT32_MAX;
                        break;
                case 2:
                        entry.offset_bytes = FAKE_SEGMENT_BYTES;
                        break;
                case 3:
                        entry.offset_bytes = 8;
                        break;
                case 4:
                        entry.offset_bytes = UINT32_MAX - 63;
                        break;
                case 5:
                        entry.size_bytes = UINT32_MAX;
                        break;
                case 6:
                        entry.size_bytes = 64;
                        break; /* less than the extent's header says */
                case 7:
                        entry.record_count = 6;
                        break;
                case 8:
                        entry.first_record = UINT32_MAX;
                        break;
                case 9:
                        entry.generation = 1;
                        break;
                }
                fake_daemon_push(&world.fake, &entry);
                ck_assert_msg(hr_next(world.connection, -1, &batch) == -EPROTO, "case %d", i);
                ck_assert_int_eq(hr_next(world.connection, -1, &batch), -EPROTO);
                end(&world);
        }
}
END_TEST

START_TEST(wrong_extents) {
        for (int i = 0; i < 6; i++) {
                struct world world;
                struct ring_entry entry;
                struct hr_batch batch;
                struct extent_header *header;
                struct extent_record *records;

                begin(&world);
                connect_to(&world);
                ck_assert_int_eq(subscribe(&world), 0);
                entry = place(&world);
                header = (struct extent_header *)(world.fake.data + FAKE_SEGMENTS_OFFSET +
                                                  FAKE_SEGMENT_BYTES);
                records = (struct extent_record *)(header + 1);
                switch (i) {
                case 0:
                        header->magic++;
                        break;
                case 1:
                        header->record_count = UINT32_MAX;
                        break;
                case 2:
                        header->run_name_size = UINT32_MAX;
                        break;
                case 3:
                        records[4].series = 2;
                        break;
                case 4:
                        records[4].series = EXTENT_SERIES_NONE;
                        break; /* of a scalar */
                case 5:
                        header->file_id++;
                        break;
                }
                fake_daemon_push(&world.fake, &entry);
                ck_assert_msg(hr_next(world.connection, -1, &batch) == -EPROTO, "case %d", i);
                end(&world);
        }
}
END_TEST

START_TEST(wrong_tail) {
        static const uint64_t tails[] = { RING_QUEUE_ENTRIES + 1, UINT64_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
                struct world world;
                struct hr_batch batch;

                begin(&world);
                connect_to(&world);
                ck_assert_int_eq(subscribe(&world), 0);
                atomic_store(&world.fake.queue->tail, tails[i]);
                ck_assert_int_eq(hr_next(world.connection, -1, &batch), -EPROTO);
                end(&world);
        }
}
END_TEST

START_TEST(wrong_frames) {
        struct ring_entry huge = { .size_bytes = 64 };
        uint8_t body[256] = { 0 };

        for (int i = 0; i < 5; i++) {
                struct world world;
                struct hr_batch batch;

                begin(&world);
                world.subscription.transport = HR_TRANSPORT_INLINE;
                connect_to(&world);
                ck_assert_int_eq(subscribe(&world), 0);
                memcpy(body, &huge, sizeof(huge));
                switch (i) {
                case 0:
                        fake_daemon_send(&world.fake, WIRE_EXTENT, 0, body, 63);
                        break; /* no entry */
                case 1:
                        fake_daemon_send(&world.fake, WIRE_EXTENT, 0, body, 64);
                        break; /* too short */
                case 2:
                        fake_daemon_send(&world.fake, WIRE_EXTENT, 0, body, 192);
                        break; /* too long */
                case 3:
                        fake_daemon_send(&world.fake, WIRE_EXTENT, 0, body, 128);
                        break; /* no extent */
                case 4:
                        fake_daemon_send(&world.fake, WIRE_JSON, 0, "[nonsense", 9);
                        break;
                }
                ck_assert_msg(hr_next(world.connection, -1, &batch) == -EPROTO, "case %d", i);
                end(&world);
        }
}
END_TEST

START_TEST(more_than_was_acknowledged) {
        struct ring_entry entry = { .flags = RING_ENTRY_LOST };
        struct world world;
        int r;

        begin(&world);
        world.subscription.transport = HR_TRANSPORT_INLINE;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        for (unsigned i = 0; i < RING_QUEUE_ENTRIES + 1; i++) {
                fake_daemon_send(&world.fake, WIRE_EXTENT, 0, &entry, sizeof(entry));
                /* reads it, and acknowledges nothing */
                r = hr_call(world.connection, "nothing", NULL, NULL);
                ck_assert_int_eq(r, i < RING_QUEUE_ENTRIES ? HR_E_REFUSED : -EPROTO);
        }
        end(&world);
}
END_TEST

/* ---- Calls ----------------------------------------------------------------------------------- */

START_TEST(refusals) {
        struct world world;

        begin(&world);
        world.fake.subscribe_error = "{\"code\":-32003,\"message\":\"needs a ring of 1 GiB\"}";
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), HR_E_LIMIT);
        ck_assert_str_eq(hr_error(world.connection), "needs a ring of 1 GiB");
        world.fake.subscribe_error = NULL;
        ck_assert_int_eq(subscribe(&world), 0);
        ck_assert_int_eq(subscribe(&world), -EBUSY);
        ck_assert_int_eq(hr_call(world.connection, "x", "[1", NULL), -EINVAL);
        ck_assert_int_eq(hr_call(world.connection, "x", "{}", NULL), HR_E_REFUSED);
        end(&world);
}
END_TEST

START_TEST(other_protocol) {
        struct fake_daemon fake;
        struct hr_connection *connection;
        char *error = NULL;

        fake_daemon_init(&fake);
        fake.hello = "{\"protocol\":2}";
        fake_daemon_start(&fake);
        ck_assert_int_eq(hr_connect_fd(fake.client_fd, NULL, &connection, &error), HR_E_REFUSED);
        ck_assert_ptr_nonnull(error);
        free(error);
        fake_daemon_deinit(&fake);
}
END_TEST

static void check_payload(struct world *world, const struct hr_batch *batch,
                          const struct hr_record *record) {
        struct hr_payload payload;

        ck_assert_int_eq(hr_payload(world->connection, batch, record, &payload), 0);
        ck_assert_uint_eq(payload.dtype, 1);
        ck_assert(payload.rank_known);
        ck_assert_uint_eq(payload.rank, 1);
        ck_assert_int_eq(payload.shape[0], 2);
        ck_assert_uint_eq(payload.elements_size, 8);
        ck_assert(((const float *)payload.elements)[0] == 1.5f &&
                  ((const float *)payload.elements)[1] == -2);
}

START_TEST(payload_in_place) {
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = fake_daemon_place(&world.fake, 0, memory,
                                  fake_extent_write_tensor(memory, &one_file, false));
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        check_payload(&world, &batch, hr_record_next(&batch));
        end(&world);
}
END_TEST

START_TEST(payload_fetched) {
        static _Alignas(64) uint8_t answer[FAKE_EXTENT_BYTES];

        for (int is_inline = 0; is_inline < 2; is_inline++) {
                struct world world;
                struct ring_entry entry;
                struct hr_batch batch;
                struct hr_payload payload;
                const struct hr_record *record;

                begin(&world);
                world.subscription.transport = HR_TRANSPORT_MAP;
                world.fake.payload = answer;
                world.fake.payload_bytes = (uint32_t)fake_extent_write_tensor(answer, &one_file,
                                                                              false);
                world.fake.is_payload_inline = is_inline;
                connect_to(&world);
                ck_assert_int_eq(subscribe(&world), 0);
                entry = fake_daemon_place(&world.fake, 0, memory,
                                          fake_extent_write_tensor(memory, &one_file, true));
                fake_daemon_push(&world.fake, &entry);
                ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
                record = hr_record_next(&batch);
                check_payload(&world, &batch, record);
                check_payload(&world, &batch, record);

                /* not what was asked for */
                ((struct extent_record *)(answer + sizeof(struct extent_header)))->value_index = 4;
                ck_assert_int_eq(hr_payload(world.connection, &batch, record, &payload), -EPROTO);
                world.fake.payload_error = "{\"code\":-32010,\"message\":\"gone\"}";
                ck_assert_int_eq(hr_payload(world.connection, &batch, record, &payload), HR_E_GONE);
                end(&world);
        }
}
END_TEST

START_TEST(payload_of_a_scalar_or_another_batch) {
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch, old;
        struct hr_payload payload;
        const struct hr_record *record;

        begin(&world);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        fake_daemon_push(&world.fake, &entry);
        entry.segment = 2;
        memcpy(world.fake.data + FAKE_SEGMENTS_OFFSET + 2 * FAKE_SEGMENT_BYTES, memory,
               FAKE_EXTENT_BYTES);
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &old), 0);
        record = hr_record_next(&old);
        ck_assert_int_eq(hr_payload(world.connection, &old, record, &payload), -ENOENT);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_int_eq(hr_payload(world.connection, &old, record, &payload), -EINVAL);
        end(&world);
}
END_TEST

START_TEST(series_from_before_the_position) {
        struct world world;
        struct ring_entry entry;
        struct hr_batch batch;
        struct extent_series *series;
        struct extent_header *header;
        const struct hr_record *record;

        begin(&world);
        world.subscription.from = HR_FROM_NOW;
        world.fake.series = "{\"series\":[{\"plugin\":\"mine\",\"class\":1,\"content\":\"00ff\","
                            "\"display_name\":\"L\\ufffd\","
                            "\"display_name_hex\":\"4cff\"}]}";
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        header = (struct extent_header *)(world.fake.data + FAKE_SEGMENTS_OFFSET +
                                          FAKE_SEGMENT_BYTES);
        series = (struct extent_series *)((uint8_t *)header + header->series_offset);
        series[0].flags = 0;
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        record = hr_record_next(&batch);
        ck_assert_str_eq(hr_record_series(&batch, record)->plugin.bytes, "mine");
        ck_assert_uint_eq(hr_record_series(&batch, record)->data_class, HR_CLASS_SCALAR);
        ck_assert_uint_eq(hr_record_series(&batch, record)->content.size, 2);
        ck_assert_int_eq(memcmp(hr_record_series(&batch, record)->content.bytes, "\0\xff", 2), 0);
        ck_assert_str_eq(hr_record_series(&batch, record)->display_name.bytes, "L\xff");
        end(&world);
}
END_TEST

/* ---- A running daemon ------------------------------------------------------------------------ */

/* The URL lies below a source: names are then relative to it, and the filters are, too. */
/* Where texts were too long for an extent, `series` says which value has them. */
START_TEST(series_whose_texts_are_elsewhere) {
        static _Alignas(64) uint8_t answer[FAKE_EXTENT_BYTES];
        struct extent_series *series;
        struct extent_header *header;
        struct ring_entry entry;
        struct hr_batch batch;
        struct world world;

        begin(&world);
        world.subscription.from = HR_FROM_NOW;
        world.fake.series =
                "{\"series\":[{\"plugin\":\"\",\"class\":0,\"content\":\"\",\"left_out\":"
                "{\"file\":\"000000000000f11e\",\"file_version\":"
                "\"0000000000000003\",\"offset\":40,\"index\":3}}]}";
        world.fake.payload = answer; /* of that value; its plugin is "mine" */
        world.fake.payload_bytes = (uint32_t)fake_extent_write_tensor(answer, &one_file, false);
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        entry = place(&world);
        header = (struct extent_header *)(world.fake.data + FAKE_SEGMENTS_OFFSET +
                                          FAKE_SEGMENT_BYTES);
        series = (struct extent_series *)((uint8_t *)header + header->series_offset);
        series[0].flags = 0;
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_str_eq(hr_record_series(&batch, hr_record_next(&batch))->plugin.bytes, "mine");
        end(&world);
}
END_TEST

START_TEST(url_below_a_source) {
        static const char *const runs[] = { "b*", NULL };
        struct hr_options options = HR_OPTIONS;
        char directory[] = "/tmp/headrace-test-XXXXXX", path[64], *error = NULL;
        struct fake_extent extent = one_file;
        struct ring_entry entry;
        struct hr_batch batch;
        struct world world;
        json_t *params, *sent;

        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/s", directory);
        begin(&world);
        world.fake.hello = "{\"protocol\":1,\"sources\":[\"/\",\"/data\",\"/data/x\"]}";
        world.subscription.runs = runs;
        fake_daemon_listen(&world.fake, path);
        options.socket = path;
        ck_assert_msg(hr_open("/data/a", &options, &world.connection, &error) == 0, "%s", error);
        ck_assert_str_eq(hr_source(world.connection), "/data");
        ck_assert_str_eq(hr_prefix(world.connection), "a");
        ck_assert(!hr_daemon_is_private(world.connection));
        ck_assert_int_eq(subscribe(&world), 0);
        params = json_loads(world.fake.last_subscribe, 0, NULL);
        sent = json_object_get(params, "runs");
        ck_assert_uint_eq(json_array_size(sent), 1);
        ck_assert_str_eq(json_string_value(json_array_get(sent, 0)), "a/b*");
        ck_assert_str_eq(json_string_value(json_object_get(params, "source")), "/data");
        json_decref(params);

        extent.source_id = name_id_source("/data");
        extent.run = "ab"; /* begins alike, lies elsewhere */
        extent.path = "ab/x.tfevents";
        entry = fake_daemon_place(&world.fake, 0, memory, fake_extent_write(memory, &extent));
        fake_daemon_push(&world.fake, &entry);
        extent.source_id = 1; /* of another source */
        extent.run = "a/b";
        extent.path = "a/b/x.tfevents";
        entry = fake_daemon_place(&world.fake, 1, memory, fake_extent_write(memory, &extent));
        fake_daemon_push(&world.fake, &entry);
        extent.source_id = name_id_source("/data");
        entry = fake_daemon_place(&world.fake, 2, memory, fake_extent_write(memory, &extent));
        fake_daemon_push(&world.fake, &entry);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_str_eq(batch.file->run.bytes, "b");
        ck_assert_str_eq(batch.file->path.bytes, "b/x.tfevents");
        ck_assert_str_eq(batch.file->source.bytes, "/data");
        ck_assert_int_eq(hr_next(world.connection, 0, &batch), HR_AGAIN);
        end(&world);
        unlink(path);
        rmdir(directory);
}
END_TEST

START_TEST(url_of_no_source) {
        struct hr_options options = HR_OPTIONS;
        char directory[] = "/tmp/headrace-test-XXXXXX", path[64], *error = NULL;
        struct fake_daemon fake;
        struct hr_connection *connection;

        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/s", directory);
        fake_daemon_init(&fake);
        fake_daemon_listen(&fake, path);
        options.socket = path;
        ck_assert_int_eq(hr_open("/database", &options, &connection, &error), -ENOENT);
        ck_assert_ptr_nonnull(strstr(error, "/database"));
        free(error);
        fake_daemon_deinit(&fake);
        unlink(path);
        rmdir(directory);
}
END_TEST

START_TEST(no_daemon_to_start) {
        struct hr_options options = HR_OPTIONS;
        struct hr_connection *connection;
        char *error = NULL;

        options.daemon = HR_DAEMON_PRIVATE;
        options.program = "/no/such/headraced";
        ck_assert_int_eq(hr_open("/data", &options, &connection, &error), -ENOENT);
        ck_assert_ptr_nonnull(strstr(error, "/no/such/headraced"));
        free(error);
        options.program = "/bin/false"; /* starts, and says nothing */
        error = NULL;
        ck_assert_int_eq(hr_open("/data", &options, &connection, &error), -ECONNRESET);
        free(error);
}
END_TEST

/* The same extent as if of another file of the run, whose job was a restart. */
static void push_file(struct world *world, uint64_t file_id, const char *path, uint64_t version) {
        struct fake_extent file = one_file;
        struct ring_entry entry;
        uint64_t size;

        file.file_id = file_id;
        file.path = path;
        file.file_version = version;
        size = fake_extent_write(memory, &file);
        entry = fake_daemon_place(&world->fake, (uint32_t)version % FAKE_SEGMENTS, memory, size);
        fake_daemon_push(&world->fake, &entry);
}

/* Takes a batch; which of its records withdraw is `said`, in words. */
static void check_withdrawals(struct world *world, const char *expected) {
        const struct hr_withdrawal *withdrawal;
        const struct hr_record *record;
        struct hr_batch batch;
        char said[512] = "";

        ck_assert_int_eq(hr_next(world->connection, -1, &batch), 0);
        do {
                record = hr_record_next(&batch);
                while ((withdrawal = hr_withdrawal_next(&batch, record))) {
                        size_t size = strlen(said);

                        ck_assert(!record || withdrawal->record <= record);
                        snprintf(said + size, sizeof(said) - size,
                                 "%s%lld withdraws %s of %s from %lld", size ? ", " : "",
                                 (long long)withdrawal->record->step,
                                 withdrawal->series ? withdrawal->series->tag.bytes : "all",
                                 withdrawal->file ? withdrawal->file->path.bytes : "all",
                                 (long long)withdrawal->from_step);
                }
        } while (record);
        ck_assert_str_eq(said, expected);
}

/* The wall times of a made extent are its steps' (fake_daemon.c): all files ran at one time. */
START_TEST(restarts_are_told_with_their_files) {
        struct world world;

        begin(&world);
        world.subscription.purge = HR_PURGE_ORDER;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        push_file(&world, 1, "a/b/x.tfevents", 1);
        check_withdrawals(&world, "");
        push_file(&world, 1, "a/b/x.tfevents", 1); /* as if it went on with the same steps */
        check_withdrawals(&world, "0 withdraws loss of a/b/x.tfevents from 0, "
                                  "1 withdraws acc of a/b/x.tfevents from 1");
        push_file(&world, 2, "a/b/y.tfevents", 2);
        check_withdrawals(&world, "");
        end(&world);
}
END_TEST

START_TEST(a_file_that_was_replaced_is_no_restart) {
        struct world world;
        struct hr_batch batch;

        begin(&world);
        world.subscription.purge = HR_PURGE_ORDER;
        connect_to(&world);
        ck_assert_int_eq(subscribe(&world), 0);
        push_file(&world, one_file.file_id, one_file.path, 1);
        check_withdrawals(&world, "");
        push_flag(&world, RING_ENTRY_REPLACED);
        ck_assert_int_eq(hr_next(world.connection, -1, &batch), 0);
        ck_assert_int_eq(batch.event, HR_REPLACED);
        push_file(&world, one_file.file_id, one_file.path, 4);
        check_withdrawals(&world, "");
        end(&world);
}
END_TEST

/* The daemon is asked for everything, and those that the filter holds back are not told. */
START_TEST(restarts_look_behind_the_filters) {
        static const char *const tags[] = { "acc", NULL };
        struct world world;

        for (unsigned purge = 0; purge < 2; purge++) {
                begin(&world);
                world.subscription.purge = purge ? HR_PURGE_ORDER : HR_PURGE_NONE;
                world.subscription.tags = tags;
                connect_to(&world);
                ck_assert_int_eq(subscribe(&world), 0);
                ck_assert_int_eq(!strstr(world.fake.last_subscribe, "tags"), purge);
                push_file(&world, 1, "a/b/x.tfevents", 1);
                check_withdrawals(&world, "");
                push_file(&world, 1, "a/b/x.tfevents", 1);
                check_withdrawals(&world, purge ? "1 withdraws acc of a/b/x.tfevents from 1" : "");
                free(world.fake.last_subscribe);
                world.fake.last_subscribe = NULL;
                end(&world);
        }
}
END_TEST

RUNNER_MAIN("client/stream", restarts_are_told_with_their_files,
            a_file_that_was_replaced_is_no_restart, restarts_look_behind_the_filters,
            reads_through_map, reads_inline, filters_and_ranges, plugin_filter,
            series_that_says_more_within_an_extent, series_that_says_more_outside_of_the_range,
            filter_on_what_a_series_says_late, news_of_files, sleeps_and_is_woken,
            wakes_the_daemon_at_its_mark, daemon_goes_while_entries_wait,
            stream_that_cannot_be_completed, reason_follows_the_end, positions_and_order_are_sent,
            session_ended_by_the_daemon, wrong_seals, no_descriptors, wrong_super_block,
            unknown_compatible_features_are_fine, wrong_entries, wrong_extents, wrong_tail,
            wrong_frames, more_than_was_acknowledged, refusals, other_protocol, payload_in_place,
            payload_fetched, payload_of_a_scalar_or_another_batch, series_from_before_the_position,
            series_whose_texts_are_elsewhere, url_below_a_source, url_of_no_source,
            no_daemon_to_start)
