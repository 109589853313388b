/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every file of the project may rely on: scope-bound clean-up, assertions that are never
 * compiled out, and the outcomes that the stages of the data path share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Outcomes of the pure stages (frame, verify, decode, publish). 0 is success, negative values are
 * -errno.
 */
enum stage_outcome {
        STAGE_MORE = 1,    /* the bytes end before the item does: come again with more */
        STAGE_CORRUPT = 2, /* the item is damaged; the stage says how far to skip */
        STAGE_FULL = 3,    /* the output has no room left: come again with new output */
        STAGE_DOUBT = 4,   /* the item looks damaged: come again with bytes that were read again */
};

/*
 * Checks a fact that only a bug of ours can break; ends the process where it is broken. Never
 * applied to bytes that came from a file, a socket or a page that a client can write.
 */
#define MUST(fact) ((fact) ? (void)0 : base_must_failed(#fact, __FILE__, __LINE__))

static inline _Noreturn void base_must_failed(const char *fact, const char *file, int line) {
        fprintf(stderr, "headrace: bug: %s does not hold (%s:%d)\n", fact, file, line);
        abort();
}

/* CLEANUP(f) T v: calls f(&v) when v goes out of scope. */
#define CLEANUP(function) __attribute__((cleanup(function)))

static inline void close_fdp(int *fd) {
        if (*fd >= 0)
                close(*fd);
}

static inline void freep(void *pointer_to_pointer) {
        free(*(void **)pointer_to_pointer);
}

/* Takes the descriptor out of *fd, which is -1 afterwards. */
static inline int steal_fd(int *fd) {
        int taken = *fd;

        *fd = -1;
        return taken;
}

/* Takes the pointer out of *pointer, which is NULL afterwards. */
#define steal_pointer(pointer) \
        ({ \
                __typeof__(*(pointer)) taken_ = *(pointer); \
                *(pointer) = NULL; \
                taken_; \
        })

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

/* Rounds up to a multiple of a power of two. The caller knows that it does not overflow. */
static inline uint64_t align_up(uint64_t value, uint64_t power_of_two) {
        return (value + power_of_two - 1) & ~(power_of_two - 1);
}
