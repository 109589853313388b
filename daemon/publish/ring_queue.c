/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both areas are memfds. The queue is sealed against future writing after the daemon has mapped it,
 * so that the one writable mapping of it is ours for ever. The acknowledgement page must stay
 * writable for the client and is mapped for reading here; sealing its size is what keeps SIGBUS
 * away.
 *
 * Two store-load races decide who wakes whom, each closed by a sequentially consistent fence on
 * both sides:
 *   daemon: tail, fence, want      client: want, fence, tail      (the client sleeps)
 *   daemon: kick_at, fence, acked  client: acked, fence, kick_at  (the daemon sleeps)
 */
#include "daemon/publish/ring_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SEALS_OF_SIZE (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct ring_queue_writer {
        struct ring_queue *queue;
        const struct ring_ack *ack;
        struct ring_entry *entries;
        uint64_t pushed;
};

/* A memfd of that size whose pages are there: writing to it later cannot fail. */
static int area_create(const char *name, uint64_t size_bytes, int *ret_fd) {
        unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
        CLEANUP(close_fdp) int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

        if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 does not know the flag */
                fd = memfd_create(name, flags);
        if (fd < 0 || ftruncate(fd, (off_t)size_bytes) < 0 ||
            fallocate(fd, 0, 0, (off_t)size_bytes) < 0)
                return -errno;
        *ret_fd = steal_fd(&fd);
        return 0;
}

/* Maps the area and then seals it. NULL: errno says why. */
static void *area_map(int fd, uint64_t size_bytes, int protection, int seals) {
        void *memory = mmap(NULL, size_bytes, protection, MAP_SHARED, fd, 0);

        if (memory == MAP_FAILED)
                return NULL;
        if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
                int error = errno;

                munmap(memory, size_bytes);
                errno = error;
                return NULL;
        }
        return memory;
}

static void queue_init(struct ring_queue *queue, uint64_t instance_id) {
        queue->magic = RING_QUEUE_MAGIC;
        queue->abi_major = RING_ABI_MAJOR;
        queue->abi_minor = RING_ABI_MINOR;
        queue->entry_count = RING_QUEUE_ENTRIES;
        queue->entries_offset = RING_QUEUE_ENTRIES_OFFSET;
        queue->instance_id = instance_id;
        atomic_init(&queue->kick_at, UINT64_MAX);
        atomic_init(&queue->status, RING_QUEUE_OPEN);
}

static void writer_freep(struct ring_queue_writer **writer) {
        ring_queue_free(*writer);
}

int ring_queue_new(uint64_t instance_id, struct ring_queue_writer **ret_writer, int *ret_queue_fd,
                   int *ret_ack_fd) {
        CLEANUP(writer_freep) struct ring_queue_writer *writer = calloc(1, sizeof(*writer));
        CLEANUP(close_fdp) int queue_fd = -1;
        CLEANUP(close_fdp) int ack_fd = -1;
        int r;

        if (!writer)
                return -ENOMEM;
        r = area_create("headrace-queue", RING_QUEUE_BYTES, &queue_fd);
        if (!r)
                r = area_create("headrace-ack", RING_ACK_BYTES, &ack_fd);
        if (r)
                return r;
        writer->queue = area_map(queue_fd, RING_QUEUE_BYTES, PROT_READ | PROT_WRITE,
                                 SEALS_OF_SIZE | F_SEAL_FUTURE_WRITE);
        if (!writer->queue)
                return -errno;
        writer->ack = area_map(ack_fd, RING_ACK_BYTES, PROT_READ, SEALS_OF_SIZE);
        if (!writer->ack)
                return -errno;
        writer->entries = (struct ring_entry *)((uint8_t *)writer->queue +
                                                RING_QUEUE_ENTRIES_OFFSET);
        queue_init(writer->queue, instance_id);

        *ret_writer = steal_pointer(&writer);
        *ret_queue_fd = steal_fd(&queue_fd);
        *ret_ack_fd = steal_fd(&ack_fd);
        return 0;
}

struct ring_queue_writer *ring_queue_free(struct ring_queue_writer *writer) {
        if (!writer)
                return NULL;
        if (writer->queue)
                munmap(writer->queue, RING_QUEUE_BYTES);
        if (writer->ack)
                munmap((void *)writer->ack, RING_ACK_BYTES);
        free(writer);
        return NULL;
}

bool ring_queue_has_room(const struct ring_queue_writer *writer, uint64_t acked) {
        return writer->pushed - acked < RING_QUEUE_ENTRIES;
}

void ring_queue_push(struct ring_queue_writer *writer, const struct ring_entry *entry) {
        writer->entries[writer->pushed % RING_QUEUE_ENTRIES] = *entry;
        writer->pushed++;
}

bool ring_queue_flush(struct ring_queue_writer *writer) {
        /*
         * Pairs with the client's acquire of tail: the entries, and the extents that they point at.
         */
        atomic_store_explicit(&writer->queue->tail, writer->pushed, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        return atomic_load_explicit(&writer->ack->want, memory_order_relaxed) != 0;
}

uint64_t ring_queue_set_kick(struct ring_queue_writer *writer, uint64_t kick_at) {
        atomic_store_explicit(&writer->queue->kick_at, kick_at, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        return ring_queue_acked(writer);
}

uint64_t ring_queue_acked(const struct ring_queue_writer *writer) {
        /*
         * Pairs with the client's release of acked: it has finished reading what it acknowledges.
         */
        return atomic_load_explicit(&writer->ack->acked, memory_order_acquire);
}

void ring_queue_end(struct ring_queue_writer *writer) {
        /*
         * Pairs with the client's acquire of status: a tail that is read after it is the last one.
         */
        atomic_store_explicit(&writer->queue->status, RING_QUEUE_CLOSED, memory_order_release);
}

uint64_t ring_queue_pushed(const struct ring_queue_writer *writer) {
        return writer->pushed;
}
