/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/shared_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/include/headrace.h"
#include "common/base.h"
#include "common/extent_format.h"

/*
 * Without the first a truncation could fault a reader; the others keep other clients from changing
 * what we read.
 */
#define SEALS_ACK (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SEALS_DATA (SEALS_ACK | F_SEAL_FUTURE_WRITE)

static int map_fail(struct shared_map *map, int r, const char *problem) {
        map->problem = problem;
        return r;
}

/* Maps a sealed memory file whole. */
static int map_file(int fd, int seals, uint64_t least_bytes, int protection,
                    const void **ret_memory, uint64_t *ret_bytes) {
        int have = fcntl(fd, F_GET_SEALS);
        struct stat info;
        void *memory;

        if (have < 0 || (have & seals) != seals || fstat(fd, &info) < 0 ||
            (uint64_t)info.st_size < least_bytes)
                return -EBADF;
        memory = mmap(NULL, (size_t)info.st_size, protection, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED)
                return -errno;
        *ret_memory = memory;
        *ret_bytes = (uint64_t)info.st_size;
        return 0;
}

/* True if [offset, +count * size) lies in an area. */
static bool is_inside(uint64_t area_bytes, uint64_t offset, uint64_t count, uint64_t size) {
        uint64_t bytes;

        return !__builtin_mul_overflow(count, size, &bytes) && offset <= area_bytes &&
               bytes <= area_bytes - offset;
}

static const char *take_super(struct shared_map *map, uint64_t *ret_instance_id) {
        struct ring_super super;

        memcpy(&super, map->data, sizeof(super));
        if (super.magic != RING_MAGIC)
                return "the data fd is no ring";
        if (super.abi_major != RING_ABI_MAJOR || super.features_incompatible)
                return "the ring is of another version";
        if (super.size_bytes != map->data_bytes)
                return "the ring's size is not that of its memory";
        if (super.segment_count == 0 || super.segment_bytes < RING_SEGMENT_MIN_BYTES ||
            super.segment_bytes % EXTENT_ALIGNMENT || super.segments_offset % EXTENT_ALIGNMENT ||
            super.table_offset % sizeof(uint64_t))
                return "the ring's segments make no sense";
        if (!is_inside(map->data_bytes, super.segments_offset, super.segment_count,
                       super.segment_bytes) ||
            !is_inside(map->data_bytes, super.table_offset, super.segment_count,
                       sizeof(struct ring_segment)))
                return "the ring's segments are outside of its memory";
        map->segments_offset = super.segments_offset;
        map->segment_bytes = super.segment_bytes;
        map->segment_count = super.segment_count;
        map->table_offset = super.table_offset;
        *ret_instance_id = super.instance_id;
        return NULL;
}

static const char *take_queue(struct shared_map *map, uint64_t instance_id) {
        uint64_t entries_offset = map->queue->entries_offset;
        uint32_t entry_count = map->queue->entry_count;

        if (map->queue->magic != RING_QUEUE_MAGIC)
                return "the queue fd is no queue";
        if (map->queue->abi_major != RING_ABI_MAJOR)
                return "the queue is of another version";
        if (map->queue->instance_id != instance_id)
                return "the queue is of another ring";
        if (entry_count == 0 || (entry_count & (entry_count - 1)) ||
            entries_offset % sizeof(struct ring_entry) ||
            !is_inside(map->queue_bytes, entries_offset, entry_count, sizeof(struct ring_entry)))
                return "the queue's entries are outside of its memory";
        map->entry_count = entry_count;
        map->entries = (const struct ring_entry *)((const uint8_t *)map->queue + entries_offset);
        return NULL;
}

static int map_take(struct shared_map *map, const int fds[3]) {
        const void *data = NULL, *queue = NULL, *ack = NULL;
        uint64_t instance_id = 0;
        int r;

        if ((r = map_file(fds[0], SEALS_DATA, sizeof(struct ring_super), PROT_READ, &data,
                          &map->data_bytes)) < 0)
                return map_fail(map, r, "the data fd is not sealed, or too small");
        map->data = data;
        if ((r = map_file(fds[1], SEALS_DATA, sizeof(struct ring_queue), PROT_READ, &queue,
                          &map->queue_bytes)) < 0)
                return map_fail(map, r, "the queue fd is not sealed, or too small");
        map->queue = queue;
        if ((r = map_file(fds[2], SEALS_ACK, sizeof(struct ring_ack), PROT_READ | PROT_WRITE, &ack,
                          &map->ack_bytes)) < 0)
                return map_fail(map, r, "the ack fd is not sealed, or too small");
        map->ack = (struct ring_ack *)(uintptr_t)ack;
        MUST(data && queue && ack);
        if ((map->problem = take_super(map, &instance_id)) ||
            (map->problem = take_queue(map, instance_id)))
                return -EBADF;
        return 0;
}

int shared_map_open(struct shared_map *map, const int fds[3]) {
        int r;

        *map = (struct shared_map){ 0 };
        r = map_take(map, fds);
        if (r < 0) {
                const char *problem = map->problem;

                shared_map_close(map);
                map->problem = problem;
        }
        return r;
}

void shared_map_close(struct shared_map *map) {
        if (map->data)
                munmap((void *)(uintptr_t)map->data, map->data_bytes);
        if (map->queue)
                munmap((void *)(uintptr_t)map->queue, map->queue_bytes);
        if (map->ack)
                munmap(map->ack, map->ack_bytes);
        *map = (struct shared_map){ 0 };
}

/* Reads the tail again: acquires what the daemon released with it. */
static int map_look(struct shared_map *map) {
        uint64_t tail = atomic_load_explicit(&map->queue->tail, memory_order_acquire);

        if (tail < map->tail || tail - map->acked > map->entry_count)
                return map_fail(map, -EPROTO, "the queue's tail is out of range");
        map->tail = tail;
        return 0;
}

static int map_find_extent(struct shared_map *map, const struct ring_entry *entry,
                           const uint8_t **ret_extent) {
        const struct ring_segment *table = (const struct ring_segment *)(map->data +
                                                                         map->table_offset);

        if (entry->size_bytes == 0) {
                *ret_extent = NULL;
                return 0;
        }
        if (entry->segment >= map->segment_count || entry->offset_bytes % EXTENT_ALIGNMENT ||
            !is_inside(map->segment_bytes, entry->offset_bytes, 1, entry->size_bytes))
                return map_fail(map, -EPROTO, "an entry lies outside of its segment");
        if (atomic_load_explicit(&table[entry->segment].generation, memory_order_relaxed) !=
            entry->generation)
                return map_fail(map, -EPROTO, "an entry's segment was recycled under it");
        *ret_extent = map->data + map->segments_offset + entry->segment * map->segment_bytes +
                      entry->offset_bytes;
        return 0;
}

int shared_map_next(struct shared_map *map, struct ring_entry *ret_entry,
                    const uint8_t **ret_extent) {
        int r;

        if (map->taken == map->tail && (r = map_look(map)) < 0)
                return r;
        if (map->taken == map->tail)
                return HR_AGAIN;
        *ret_entry = map->entries[map->taken & (map->entry_count - 1)];
        map->taken++;
        return map_find_extent(map, ret_entry, ret_extent);
}

bool shared_map_acknowledge(struct shared_map *map) {
        uint64_t before = map->acked, kick_at;

        if (before == map->taken)
                return false;
        map->acked = map->taken;
        /* Pairs with the daemon's acquire: it may recycle what we have read. */
        atomic_store_explicit(&map->ack->acked, map->acked, memory_order_release);
        /* Pairs with the daemon's fence between its store of kick_at and its reading of acked. */
        atomic_thread_fence(memory_order_seq_cst);
        kick_at = atomic_load_explicit(&map->queue->kick_at, memory_order_relaxed);
        return before < kick_at && kick_at <= map->acked;
}

bool shared_map_sleep(struct shared_map *map) {
        atomic_store_explicit(&map->ack->want, 1, memory_order_relaxed);
        /* Pairs with the daemon's fence between its store of the tail and its reading of want. */
        atomic_thread_fence(memory_order_seq_cst);
        return atomic_load_explicit(&map->queue->tail, memory_order_acquire) == map->tail;
}

void shared_map_awake(struct shared_map *map) {
        atomic_store_explicit(&map->ack->want, 0, memory_order_relaxed);
}

bool shared_map_is_closed(const struct shared_map *map) {
        return atomic_load_explicit(&map->queue->status, memory_order_acquire) != RING_QUEUE_OPEN;
}
