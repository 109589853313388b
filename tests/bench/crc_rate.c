/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C of spans by the processor's instruction and by isa-l: nanoseconds a span, so that
 * CRC32C_LONG_SPAN_BYTES is where they cross. One JSON object a length.
 */
#include <string.h>

#include "common/crc32c.h"
#include "tests/bench/bench.h"

#define BUFFER_BYTES (16u << 10) /* stays in the nearest cache */
#define TOTAL_BYTES (64u << 20)  /* in each round */
#define ROUNDS 15

struct span {
        uint8_t *bytes;
        size_t size;
        uint32_t (*crc)(uint32_t crc, const void *bytes, size_t size_bytes);
};

static uint32_t by_instruction(uint32_t crc, const void *bytes, size_t size_bytes) {
        return ~crc32c_short(~crc, bytes, size_bytes);
}

/* Spans stand side by side, as records do; none waits for the one before. */
static uint64_t run(void *context) {
        const struct span *span = context;
        uint64_t count = TOTAL_BYTES / span->size, per_buffer = BUFFER_BYTES / span->size, sum = 0;

        for (uint64_t i = 0; i < count; i++)
                sum += span->crc(0, span->bytes + i % per_buffer * span->size, span->size);
        return sum;
}

int main(void) {
        static const size_t sizes[] = { 8,   16,  32,  48,  64,  96,   128,  160,  192,
                                        224, 256, 320, 384, 512, 1024, 2048, 4096, 16384 };
        struct span span = { .bytes = malloc(BUFFER_BYTES) };

        MUST(span.bytes);
        memset(span.bytes, 0x5a, BUFFER_BYTES);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                double instruction, library;
                uint64_t one, other;

                span.size = sizes[i];
                span.crc = by_instruction;
                instruction = bench_best(run, &span, ROUNDS, &one);
                span.crc = crc32c_extend_long;
                library = bench_best(run, &span, ROUNDS, &other);
                MUST(one == other);
                printf("{\"size\": %zu, \"instruction_ns\": %.2f, \"library_ns\": %.2f}\n",
                       span.size, instruction * 1e9 / (double)(TOTAL_BYTES / span.size),
                       library * 1e9 / (double)(TOTAL_BYTES / span.size));
        }
        free(span.bytes);
        return 0;
}
