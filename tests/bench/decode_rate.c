/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long each stage of the data path takes for a file in memory: seconds of CPU time of one
 * thread, each stage with those before it, into ring segments that are there already.
 *
 *      decode_rate FILE [ROUNDS]
 */
#include <string.h>

#include "daemon/decode/event.h"
#include "daemon/decode/payload.h"
#include "daemon/frame/tfrecord.h"
#include "tests/bench/block_bench.h"

#define SEGMENTS 64

/* Adds up every word; nothing can read less. */
static uint64_t read_bytes(void *context) {
        const struct bench_file *file = &((struct block_bench *)context)->file;
        volatile uint64_t kept;
        uint64_t sum = 0, word;

        for (uint64_t at = 0; at + 8 <= file->size; at += 8) {
                memcpy(&word, file->bytes + at, 8);
                sum += word;
        }
        kept = sum;
        (void)kept;
        return file->size;
}

static struct tfrecord_reader frames_of(const struct block_bench *bench, bool length_crc_only) {
        return (struct tfrecord_reader){
                .bytes = bench->file.bytes,
                .size_bytes = bench->file.size,
                .boundary = UINT64_MAX,
                .record_max_bytes = 256u << 20,
                .length_crc_only = length_crc_only,
                .last = true,
        };
}

static uint64_t count_records(struct tfrecord_reader frames) {
        struct tfrecord record;
        uint64_t records = 0;

        while (tfrecord_next(&frames, &record) == 0)
                records++;
        return records;
}

static uint64_t frame(void *context) {
        return count_records(frames_of(context, true));
}

static uint64_t verify(void *context) {
        return count_records(frames_of(context, false));
}

/* Returns how many values there are; their payloads are planned, not written. */
static uint64_t decode(void *context) {
        struct tfrecord_reader frames = frames_of(context, false);
        struct tfrecord record;
        struct event_cursor cursor;
        struct event event;
        const struct event_value *value;
        struct payload payload;
        uint64_t values = 0;

        while (tfrecord_next(&frames, &record) == 0) {
                MUST(event_decode(record.payload, record.payload_bytes, &event) == 0);
                event_cursor_init(&cursor, &event);
                for (; (value = event_cursor_next(&cursor)); values++)
                        payload_plan(value, &payload);
        }
        return values;
}

static uint64_t publish(void *context) {
        struct block_bench *bench = context;

        bench->length_crc_only = false;
        return block_bench_decode(bench, 0, bench->file.size);
}

static uint64_t publish_length_only(void *context) {
        struct block_bench *bench = context;

        bench->length_crc_only = true;
        return block_bench_decode(bench, 0, bench->file.size);
}

/* As publish(), each time into pages that nobody has touched. */
static uint64_t publish_untouched(void *context) {
        struct block_bench bench = *(struct block_bench *)context;
        uint64_t size = (uint64_t)bench.segments * BLOCK_BENCH_SEGMENT_BYTES, records;

        bench.ring = bench_untouched(size);
        records = publish(&bench);
        munmap(bench.ring, size);
        return records;
}

static const struct {
        const char *name;
        uint64_t (*once)(void *context);
} stages[] = {
        { "read", read_bytes },
        { "frame", frame },
        { "verify", verify },
        { "decode", decode },
        { "publish", publish },
        { "publish_length_only", publish_length_only },
        { "publish_untouched", publish_untouched },
};

int main(int argc, char **argv) {
        int rounds = argc > 2 ? atoi(argv[2]) : 9;
        uint64_t ring_bytes = (uint64_t)SEGMENTS * BLOCK_BENCH_SEGMENT_BYTES;
        uint8_t *ring = bench_untouched(ring_bytes);
        struct block_bench bench;
        uint64_t result;

        if (argc < 2)
                return 2;
        memset(ring, 1, ring_bytes);
        block_bench_init(&bench, bench_file_read(argv[1]), ring, SEGMENTS);
        printf("{\"bytes\": %llu, \"records\": %llu", (unsigned long long)bench.file.size,
               (unsigned long long)publish(&bench));
        for (size_t i = 0; i < ARRAY_SIZE(stages); i++)
                printf(", \"%s\": %.6f", stages[i].name,
                       bench_best(stages[i].once, &bench, rounds, &result));
        printf("}\n");
        munmap(ring, ring_bytes);
        free(bench.file.bytes);
        return 0;
}
