/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that measure decoding share: a file in memory, clocks, the best of some rounds. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "common/base.h"

struct bench_file {
        uint8_t *bytes;
        uint64_t size;
};

/* Every byte of the file is in memory of the process then. */
static inline struct bench_file bench_file_read(const char *path) {
        FILE *stream = fopen(path, "re");
        struct bench_file file = { NULL, 0 };

        MUST(stream && fseek(stream, 0, SEEK_END) == 0);
        file.size = (uint64_t)ftell(stream);
        rewind(stream);
        file.bytes = malloc(file.size);
        MUST(file.bytes && fread(file.bytes, 1, file.size, stream) == file.size);
        fclose(stream);
        return file;
}

static inline double bench_clock(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds of CPU time of this thread, the least of the rounds: other programs only add to it. */
static inline double bench_best(uint64_t (*once)(void *context), void *context, int rounds,
                                uint64_t *ret_result) {
        double best = 1e9;

        for (int i = 0; i < rounds; i++) {
                double begin = bench_clock(CLOCK_THREAD_CPUTIME_ID), seconds;

                *ret_result = once(context);
                seconds = bench_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
                if (seconds < best)
                        best = seconds;
        }
        return best;
}

/* Memory as a ring's, of small pages that nobody has touched. */
static inline uint8_t *bench_untouched(uint64_t size) {
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        MUST(memory != MAP_FAILED);
        return memory;
}
