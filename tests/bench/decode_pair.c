/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two decoders beside one: the parts of one file, each with the one that is free, as decoding ahead
 * does it (daemon/pipeline/part_ahead.h). Prints for each round the time and the CPU time of one
 * thread, and those of two together.
 *
 *      decode_pair FILE [ROUNDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "daemon/frame/tfrecord.h"
#include "tests/bench/block_bench.h"

#define DECODERS 2
#define SEGMENTS 32 /* for each decoder */
#define PART_BYTES (1u << 20)
#define PARTS_MOST 4096

struct parts {
        uint64_t border[PARTS_MOST + 1];
        uint32_t count;
        _Atomic uint32_t next;
};

struct decoder {
        struct block_bench bench;
        struct parts *parts;
        uint64_t records;
        double cpu_seconds;
};

/* Parts begin with the first record behind a multiple of the size. */
static void find_parts(const struct bench_file *file, struct parts *parts) {
        uint64_t at = 0;

        for (parts->count = 0; at < file->size && parts->count < PARTS_MOST; parts->count++) {
                uint64_t end = min_u64(at + PART_BYTES, file->size);
                uint64_t next = tfrecord_skip_whole(file->bytes, at, end);

                parts->border[parts->count] = at;
                at = next > at ? next : at + tfrecord_size(file->bytes + at);
        }
        MUST(at == file->size);
        parts->border[parts->count] = at;
}

static void *run(void *context) {
        struct decoder *decoder = context;
        struct parts *parts = decoder->parts;
        double begin = bench_clock(CLOCK_THREAD_CPUTIME_ID);
        uint32_t part;

        decoder->records = 0;
        while ((part = atomic_fetch_add(&parts->next, 1)) < parts->count)
                decoder->records += block_bench_decode(&decoder->bench, parts->border[part],
                                                       parts->border[part + 1]);
        decoder->cpu_seconds = bench_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
        return NULL;
}

/* Returns seconds. */
static double run_some(struct decoder *decoders, int count, double *ret_cpu_seconds,
                       uint64_t *ret_records) {
        double begin = bench_clock(CLOCK_MONOTONIC);
        pthread_t threads[DECODERS];

        atomic_store(&decoders[0].parts->next, 0);
        *ret_cpu_seconds = 0;
        *ret_records = 0;
        for (int i = 0; i < count; i++)
                MUST(pthread_create(&threads[i], NULL, run, &decoders[i]) == 0);
        for (int i = 0; i < count; i++) {
                pthread_join(threads[i], NULL);
                *ret_cpu_seconds += decoders[i].cpu_seconds;
                *ret_records += decoders[i].records;
        }
        return bench_clock(CLOCK_MONOTONIC) - begin;
}

static void run_round(struct decoder *decoders) {
        double cpu[DECODERS], seconds[DECODERS];
        uint64_t records[DECODERS];

        for (int i = 0; i < DECODERS; i++)
                seconds[i] = run_some(decoders, i + 1, &cpu[i], &records[i]);
        MUST(records[0] == records[1]);
        printf("{\"records\": %llu, \"one_seconds\": %.6f, \"one_cpu\": %.6f, "
               "\"two_seconds\": %.6f, \"two_cpu\": %.6f}\n",
               (unsigned long long)records[0], seconds[0], cpu[0], seconds[1], cpu[1]);
}

int main(int argc, char **argv) {
        int rounds = argc > 2 ? atoi(argv[2]) : 9;
        uint64_t ring_bytes = (uint64_t)SEGMENTS * BLOCK_BENCH_SEGMENT_BYTES;
        struct decoder decoders[DECODERS];
        struct bench_file file;
        struct parts parts;

        if (argc < 2)
                return 2;
        file = bench_file_read(argv[1]);
        find_parts(&file, &parts);
        for (int i = 0; i < DECODERS; i++) {
                uint8_t *ring = bench_untouched(ring_bytes);

                memset(ring, 1, ring_bytes);
                block_bench_init(&decoders[i].bench, file, ring, SEGMENTS);
                decoders[i].parts = &parts;
        }
        for (int i = 0; i < rounds; i++)
                run_round(decoders);
        for (int i = 0; i < DECODERS; i++)
                munmap(decoders[i].bench.ring, ring_bytes);
        free(file.bytes);
        return 0;
}
