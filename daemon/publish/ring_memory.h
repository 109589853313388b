/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory behind the data fd: a memfd on the best pages that can be had, mapped for writing by
 * the daemon alone and sealed, so that whoever receives the descriptor can neither write, shrink
 * nor grow it.
 */
#pragma once

#include <stdint.h>

#include "common/ring_format.h"

enum ring_huge { RING_HUGE_OFF, RING_HUGE_TRY, RING_HUGE_ON };

struct ring_memory {
        int fd;
        uint8_t *base; /* 2 MiB aligned */
        uint64_t size_bytes;
        enum ring_tier tier;
        char tier_reason[160]; /* why not a better tier; "" if it is the best one wanted */
};

/*
 * Makes and maps size_bytes (a multiple of 2 MiB). With RING_HUGE_ON it fails rather than take
 * small pages. -errno; ret_memory->tier_reason then says what failed, with numbers and the way out.
 */
int ring_memory_init(struct ring_memory *ret_memory, uint64_t size_bytes, enum ring_huge huge);

void ring_memory_deinit(struct ring_memory *memory);

/*
 * Makes a range present, so that its first use cannot fault (SIGBUS) for want of memory. Any
 * thread. -ENOSPC, -ENOMEM: there is no memory for it.
 */
int ring_memory_prepare(const struct ring_memory *memory, uint64_t offset, uint64_t size_bytes);
