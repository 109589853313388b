/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits to be written to one socket: frames in order, each a short head, an optional body and
 * descriptors. Bodies are owned (freed when they are written) or borrowed (extents in the ring,
 * which the reader's pins keep in place). Nothing is copied: heads and bodies of many frames go out
 * in one sendmsg(). Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ring_format.h"
#include "common/wire_format.h"

struct output_frame;

struct output {
        struct output_frame *first, **last;
        uint64_t answer_bytes;    /* of owned bodies, until their frame is written whole */
        uint64_t payload_bytes;   /* likewise, of those that count as payloads */
        uint64_t entries_waiting; /* frames of entries, until they are written whole */
        bool wake_waits;          /* a wake frame is in the queue */
};

/* What one frame is made of. */
struct output_part {
        const void *head; /* copied */
        size_t head_size; /* at most OUTPUT_HEAD_MAX */
        const void *body; /* may be NULL */
        size_t body_size;
        /* freed when the frame is written or dropped; NULL: the body is borrowed */
        void *take_memory;
        uint64_t answer_bytes, payload_bytes; /* how it is counted while it waits */
        bool is_wake, is_entry;
        int *take_fds; /* closed likewise; the array itself is the caller's */
        unsigned fd_count;
};

#define OUTPUT_HEAD_MAX (sizeof(struct wire_header) + sizeof(struct ring_entry))

/* Positive outcome of output_send(): the socket takes no more now. */
#define OUTPUT_E_BLOCKED 1

void output_init(struct output *output);
void output_deinit(struct output *output); /* drops everything */

/* Puts a frame behind the others. Takes memory and descriptors, on failure too. -ENOMEM. */
int output_add(struct output *output, const struct output_part *part);

/* Writes to the socket without blocking: 0 when all is written, OUTPUT_E_BLOCKED, -errno. */
int output_send(struct output *output, int fd);

bool output_is_empty(const struct output *output);
