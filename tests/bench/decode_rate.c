/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing, both CRCs, decoding and publishing of scalar records as TensorBoard's writer makes them,
 * segment by segment into memory that is there already: records for each second of processor time
 * on one core.
 *
 *      decode_rate [RECORDS [ROUNDS]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "common/crc32c.h"
#include "common/name_id.h"
#include "daemon/pipeline/block_decode.h"

#define SEGMENT_BYTES (1u << 20)
#define SEGMENTS 64
#define RECORD_BYTES_MOST 128

static const char *const tags[] = {
        "train/loss", "train/accuracy", "train/lr",  "val/loss",  "val/accuracy",
        "grad/norm",  "grad/max",       "time/step", "time/data", "loss",
};

struct file {
        uint8_t *bytes;
        uint64_t size;
};

static uint8_t *put(uint8_t *at, const void *bytes, size_t size) {
        memcpy(at, bytes, size);
        return at + size;
}

static uint8_t *put_varint(uint8_t *at, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                *at++ = (uint8_t)(value | 0x80);
        *at++ = (uint8_t)value;
        return at;
}

/*
 * Event{wall_time, step, summary{value{tag, simple_value}}}, fields in the order of their numbers.
 */
static uint64_t put_event(uint8_t *to, uint64_t step, double wall_time, const char *tag,
                          float value) {
        uint8_t tag_size = (uint8_t)strlen(tag);
        uint8_t value_size = (uint8_t)(2 + tag_size + 5);
        uint8_t *at = to;

        *at++ = 0x09;
        at = put(at, &wall_time, 8);
        *at++ = 0x10;
        at = put_varint(at, step);
        at = put(at,
                 (uint8_t[]){ 0x2a, (uint8_t)(value_size + 2), 0x0a, value_size, 0x0a, tag_size },
                 6);
        at = put(at, tag, tag_size);
        *at++ = 0x15;
        at = put(at, &value, 4);
        return (uint64_t)(at - to);
}

static uint64_t put_record(uint8_t *to, uint64_t number) {
        uint64_t step = number / ARRAY_SIZE(tags);
        uint64_t size = put_event(to + 12, step, 1714557600 + 0.25 * (double)step,
                                  tags[number % ARRAY_SIZE(tags)], sinf((float)step));
        uint32_t crc;

        memcpy(to, &size, 8);
        crc = crc32c_mask(crc32c(to, 8));
        memcpy(to + 8, &crc, 4);
        crc = crc32c_mask(crc32c(to + 12, size));
        memcpy(to + 12 + size, &crc, 4);
        return size + 16;
}

static struct file make_file(uint64_t records) {
        struct file file = { malloc(records * RECORD_BYTES_MOST), 0 };

        MUST(file.bytes);
        for (uint64_t i = 0; i < records; i++)
                file.size += put_record(file.bytes + file.size, i);
        return file;
}

static double cpu_seconds(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/*
 * Decodes the whole file, going round the segments as a ring does. Returns the records that came
 * out.
 */
static uint64_t decode_file(const struct file *file, const struct block_file *identity,
                            uint8_t *ring, uint64_t *ret_extents) {
        struct block_position place = { 0 };
        struct block_output output;
        uint64_t records = 0;
        int r = STAGE_FULL;

        for (*ret_extents = 0; r == STAGE_FULL; ++*ret_extents) {
                struct block_input input = {
                        .file = identity,
                        .bytes = file->bytes,
                        .size_bytes = file->size,
                        .begin = place,
                        .last = true,
                        .record_max_bytes = 256u << 20,
                        .payload_inline_max_bytes = 256u << 10,
                        .segment_bytes = SEGMENT_BYTES,
                };

                r = block_decode(&input, ring + *ret_extents % SEGMENTS * SEGMENT_BYTES,
                                 SEGMENT_BYTES, &output);
                records += output.record_count;
                place = output.next;
        }
        MUST(r == 0 && output.damage_count == 0);
        return records;
}

int main(int argc, char **argv) {
        uint64_t records = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000;
        int rounds = argc > 2 ? atoi(argv[2]) : 9;
        struct file file = make_file(records);
        uint8_t *ring = aligned_alloc(4096, SEGMENTS * SEGMENT_BYTES);
        const char *url = "/data/logs";
        struct block_file identity = {
                .source_id = name_id_source(url),
                .run_id = name_id_run(url, "exp/a", 5),
                .file_id = name_id_file(url, "exp/a/events.out.tfevents.1", 27),
                .file_version = name_id_file_version(file.bytes, file.size, 0),
                .source_url = url,
                .run_name = "exp/a",
                .run_name_size = 5,
                .path = "exp/a/events.out.tfevents.1",
                .path_size = 27,
        };
        uint64_t extents = 0;
        double best = 0;

        MUST(ring);
        memset(ring, 1, SEGMENTS * SEGMENT_BYTES);
        for (int i = 0; i < rounds; i++) {
                double begin = cpu_seconds();
                double rate;

                MUST(decode_file(&file, &identity, ring, &extents) == records);
                rate = (double)records / (cpu_seconds() - begin);
                if (rate > best)
                        best = rate;
        }
        printf("{\"records_per_cpu_second\": %.0f, \"bytes_per_cpu_second\": %.0f, \"records\": "
               "%llu, \"bytes\": %llu, "
               "\"extents\": %llu, "
               "\"rounds\": %d}\n",
               best, best * (double)file.size / (double)records, (unsigned long long)records,
               (unsigned long long)file.size, (unsigned long long)extents, rounds);
        free(ring);
        free(file.bytes);
        return 0;
}
