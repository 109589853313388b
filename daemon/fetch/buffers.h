/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for tickets. A ticket is larger than what will arrive (there is slack for bytes appended
 * since the listing), so it is mapped memory of which only touched pages exist. Buffers of common
 * sizes are kept and used again, so that ten thousand small reads do not map, fault and unmap each
 * time; what is kept is bounded, and counts as memory in use.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BUFFERS_SMALLEST_BYTES (64u << 10)
#define BUFFERS_CLASSES 8 /* 64 KiB, 128 KiB ... 8 MiB; larger ones are not kept */

struct buffer_free {
        struct buffer_free *next; /* in the first bytes of the buffer itself */
};

struct buffers {
        struct buffer_free *free[BUFFERS_CLASSES];
        uint64_t kept_bytes, kept_most_bytes;
};

void buffers_init(struct buffers *buffers, uint64_t kept_most_bytes);
void buffers_deinit(struct buffers *buffers);

/* At least size_bytes, with any contents. NULL: no memory. */
uint8_t *buffers_take(struct buffers *buffers, uint64_t size_bytes);

/* size_bytes as it was taken. */
void buffers_give(struct buffers *buffers, uint8_t *buffer, uint64_t size_bytes);

/* Gives memory back to the system until at most that much is kept. */
void buffers_trim(struct buffers *buffers, uint64_t kept_bytes);
