/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory between the daemon and its clients. docs/RING.md describes it; this header is its
 * layout.
 *
 *   data fd    super block, table of segment generations, padding, segments   written by the daemon
 *   queue fd   tail, kick_at, status, and 1024 entries of 64 bytes            written by the daemon
 *   ack fd     acked, want                                                    written by the client
 *
 * Positions (tail, acked, kick_at) count entries since the session began and only grow. Every word
 * has one writer.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC 0x31474e4952524821ull /* "!HRRING1" */
#define RING_QUEUE_MAGIC 0x31455545555152ull
#define RING_ABI_MAJOR 1
#define RING_ABI_MINOR 0
#define RING_AREA_BYTES 65536u /* areas are multiples of this: machines with large pages */
#define RING_TABLE_OFFSET 4096u
#define RING_SEGMENTS_ALIGNMENT (2u << 20)
#define RING_SEGMENT_MIN_BYTES (64u << 10)
#define RING_SEGMENT_MAX_BYTES (1u << 20)
#define RING_QUEUE_ENTRIES 1024u
#define RING_QUEUE_ENTRIES_OFFSET RING_AREA_BYTES
#define RING_QUEUE_BYTES (2 * RING_AREA_BYTES)
#define RING_ACK_BYTES RING_AREA_BYTES

enum ring_tier {
        RING_TIER_HUGETLBFS = 1,
        RING_TIER_MEMFD_HUGE = 2,
        RING_TIER_THP = 3,
        RING_TIER_4K = 4,
};

enum ring_state {
        RING_STATE_STARTING = 1,
        RING_STATE_SERVING = 2,
        RING_STATE_DRAINING = 3,
        RING_STATE_GONE = 4,
};

struct ring_super {
        uint64_t magic;
        uint16_t abi_major;
        uint16_t abi_minor;
        uint32_t features_compatible;   /* unknown bits are ignored */
        uint32_t features_incompatible; /* unknown bits refuse the mapping */
        uint32_t tier;
        uint64_t instance_id; /* random, of this start of the daemon */
        uint64_t size_bytes;  /* of the data fd */
        uint64_t table_offset;
        uint64_t segments_offset;
        uint64_t segment_bytes;
        uint64_t start_time_ns; /* CLOCK_REALTIME */
        uint32_t segment_count;
        _Atomic uint32_t segments_ready; /* release by the daemon, acquire by clients */
        _Atomic uint32_t state;          /* likewise */
        uint32_t reserved[11];
};

static_assert(sizeof(struct ring_super) == 128, "layout");
static_assert(offsetof(struct ring_super, instance_id) == 24, "layout");
static_assert(offsetof(struct ring_super, segment_count) == 72, "layout");

/* Counts how often the segment was recycled; entry i of the table at table_offset. */
struct ring_segment {
        _Atomic uint64_t generation;
};

enum ring_entry_flag {
        /* the block had been published before this session came, or was fetched again */
        RING_ENTRY_REPLAY = 1,
        RING_ENTRY_LATE = 2, /* of a file that had been settled without these records */
        /* no extent: lost_count records of a standing version can no longer be read */
        RING_ENTRY_LOST = 4,
        /* no extent: withdraw the file's points; generation is the new file version */
        RING_ENTRY_REPLACED = 8,
        /* no extent: the file left storage; withdraw its points; generation is its version */
        RING_ENTRY_GONE = 16,
        RING_ENTRY_END = 32,     /* no extent: the stream is complete */
        RING_ENTRY_DAMAGED = 64, /* the extent's range holds damaged records */
};

struct ring_entry {
        uint32_t segment;
        uint32_t offset_bytes; /* of the extent in its segment */
        uint32_t size_bytes;   /* 0: no extent */
        uint32_t first_record; /* only [first_record, +record_count) is for this session */
        uint32_t record_count;
        uint32_t flags;
        uint64_t generation;
        uint64_t file_id;
        uint64_t run_id;
        uint64_t source_offset; /* begin of the block in its file */
        uint64_t lost_count;
};

static_assert(sizeof(struct ring_entry) == 64, "layout");
static_assert(offsetof(struct ring_entry, generation) == 24, "layout");

enum ring_queue_status {
        RING_QUEUE_OPEN = 0,
        RING_QUEUE_CLOSED = 1, /* the daemon ended the session */
};

struct ring_queue {
        uint64_t magic;
        uint16_t abi_major;
        uint16_t abi_minor;
        uint32_t entry_count;
        uint64_t entries_offset;
        uint64_t instance_id;
        uint8_t reserved0[32];
        _Atomic uint64_t tail; /* release by the daemon, acquire by the client */
        uint8_t reserved1[56];
        _Atomic uint64_t kick_at; /* the client sends a wake frame when acked reaches it */
        _Atomic uint32_t status;
        uint8_t reserved2[52];
};

static_assert(sizeof(struct ring_queue) == 192, "layout");
static_assert(offsetof(struct ring_queue, tail) == 64, "layout");
static_assert(offsetof(struct ring_queue, kick_at) == 128, "layout");

struct ring_ack {
        _Atomic uint64_t acked; /* release by the client, acquire by the daemon */
        uint8_t reserved0[56];
        _Atomic uint32_t want; /* 1: the client sleeps, wake it */
        uint8_t reserved1[60];
        uint64_t released[16]; /* reserved */
};

static_assert(sizeof(struct ring_ack) == 256, "layout");
static_assert(offsetof(struct ring_ack, want) == 64, "layout");
