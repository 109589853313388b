/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/publish/ring_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base.h"
#include "tests/unit/runner.h"

struct ends {
        struct ring_queue_writer *writer;
        int queue_fd, ack_fd;
        const struct ring_queue *queue;
        const struct ring_entry *entries;
        struct ring_ack *ack;
};

static void *map(int fd, size_t size, int protection) {
        void *memory = mmap(NULL, size, protection, MAP_SHARED, fd, 0);

        ck_assert_ptr_ne(memory, MAP_FAILED);
        return memory;
}

static void ends_init(struct ends *ends) {
        ck_assert_int_eq(ring_queue_new(0x1122, &ends->writer, &ends->queue_fd, &ends->ack_fd), 0);
        ends->queue = map(ends->queue_fd, RING_QUEUE_BYTES, PROT_READ);
        ends->entries = (const struct ring_entry *)((const char *)ends->queue +
                                                    ends->queue->entries_offset);
        ends->ack = map(ends->ack_fd, RING_ACK_BYTES, PROT_READ | PROT_WRITE);
}

static void ends_deinit(struct ends *ends) {
        munmap((void *)ends->queue, RING_QUEUE_BYTES);
        munmap(ends->ack, RING_ACK_BYTES);
        close(ends->queue_fd);
        close(ends->ack_fd);
        ring_queue_free(ends->writer);
}

START_TEST(describes_itself) {
        struct stat status;
        struct ends ends;

        ends_init(&ends);
        ck_assert_uint_eq(ends.queue->magic, RING_QUEUE_MAGIC);
        ck_assert_uint_eq(ends.queue->abi_major, RING_ABI_MAJOR);
        ck_assert_uint_eq(ends.queue->entry_count, 1024);
        ck_assert_uint_eq(ends.queue->instance_id, 0x1122);
        ck_assert_uint_eq(ends.queue->status, RING_QUEUE_OPEN);
        ck_assert_int_eq(fstat(ends.queue_fd, &status), 0);
        ck_assert_int_eq(status.st_size, 131072);
        ck_assert_int_eq(fstat(ends.ack_fd, &status), 0);
        ck_assert_int_eq(status.st_size, 65536);
        ck_assert_int_ne(fcntl(ends.queue_fd, F_GETFD) & FD_CLOEXEC, 0);
        ck_assert_int_ne(fcntl(ends.ack_fd, F_GETFD) & FD_CLOEXEC, 0);
        ends_deinit(&ends);
}
END_TEST

START_TEST(entries_are_seen_when_flushed) {
        struct ring_entry entry = { .segment = 1, .size_bytes = 64 };
        struct ends ends;

        ends_init(&ends);
        for (uint64_t i = 0; i < 3000; i++) { /* around twice */
                uint64_t acked = i > 1023 ? i - 1023 : 0;

                ck_assert(ring_queue_has_room(ends.writer, acked));
                entry.source_offset = i;
                ring_queue_push(ends.writer, &entry);
                ck_assert_uint_eq(ends.queue->tail, i);
                ck_assert(!ring_queue_flush(ends.writer));
                ck_assert_uint_eq(ends.queue->tail, i + 1);
                ck_assert_uint_eq(ends.entries[i % 1024].source_offset, i);
        }
        ck_assert_uint_eq(ring_queue_pushed(ends.writer), 3000);
        ck_assert(!ring_queue_has_room(ends.writer, 3000 - 1024));
        ck_assert(ring_queue_has_room(ends.writer, 3000 - 1023));
        ends_deinit(&ends);
}
END_TEST

START_TEST(words_of_the_client_are_read) {
        struct ends ends;

        ends_init(&ends);
        ck_assert_uint_eq(ring_queue_acked(ends.writer), 0);
        ends.ack->acked = 17;
        ck_assert_uint_eq(ring_queue_acked(ends.writer), 17);
        ck_assert_uint_eq(ring_queue_set_kick(ends.writer, 20), 17);
        ck_assert_uint_eq(ends.queue->kick_at, 20);
        ends.ack->want = 1;
        ck_assert(ring_queue_flush(ends.writer));
        ends.ack->want = 0;
        ck_assert(!ring_queue_flush(ends.writer));
        ring_queue_end(ends.writer);
        ck_assert_uint_eq(ends.queue->status, RING_QUEUE_CLOSED);
        ends_deinit(&ends);
}
END_TEST

static int reopen(int fd, int flags) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, flags | O_CLOEXEC);
}

START_TEST(the_queue_cannot_be_changed_by_clients) {
        struct ends ends;
        int again;

        ends_init(&ends);
        ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ends.queue_fd, 0),
                         MAP_FAILED);
        ck_assert_int_lt(mprotect((void *)ends.queue, 4096, PROT_READ | PROT_WRITE), 0);
        ck_assert_int_lt(pwrite(ends.queue_fd, "x", 1, 0), 0);
        ck_assert_int_lt(ftruncate(ends.queue_fd, 0), 0);
        ck_assert_int_lt(ftruncate(ends.queue_fd, 1 << 20), 0);
        ck_assert_int_lt(
                fallocate(ends.queue_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
        ck_assert_int_lt(fcntl(ends.queue_fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
        again = reopen(ends.queue_fd, O_RDWR);
        if (again >= 0) {
                ck_assert_int_lt(pwrite(again, "x", 1, 0), 0);
                ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
                                 MAP_FAILED);
                close(again);
        }
        again = reopen(ends.queue_fd, O_RDWR | O_TRUNC);
        ck_assert_int_lt(again, 0);
        ck_assert_uint_eq(ends.queue->magic, RING_QUEUE_MAGIC);
        ends_deinit(&ends);
}
END_TEST

/* A hole reads as 0, and the size cannot change: the daemon's reads never fault. */
START_TEST(the_ack_page_stays_as_large_as_it_is) {
        struct ends ends;

        ends_init(&ends);
        ends.ack->acked = 5;
        ck_assert_int_lt(ftruncate(ends.ack_fd, 0), 0);
        ck_assert_int_lt(ftruncate(ends.ack_fd, 1 << 20), 0);
        ck_assert_int_lt(fcntl(ends.ack_fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
        ck_assert_uint_eq(ring_queue_acked(ends.writer), 5);
        ck_assert_int_eq(
                fallocate(ends.ack_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536), 0);
        ck_assert_uint_eq(ring_queue_acked(ends.writer), 0);
        memset(ends.ack, 0xff, RING_ACK_BYTES);
        ck_assert_uint_eq(ring_queue_acked(ends.writer), UINT64_MAX);
        ck_assert(ring_queue_flush(ends.writer));
        ends_deinit(&ends);
}
END_TEST

RUNNER_MAIN("publish/ring_queue", describes_itself, entries_are_seen_when_flushed,
            words_of_the_client_are_read, the_queue_cannot_be_changed_by_clients,
            the_ack_page_stays_as_large_as_it_is)
