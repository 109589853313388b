/* SPDX-License-Identifier: Apache-2.0 */
/* A range of a file through block_decode(), segment after segment, as the daemon's decoders do it. */
#pragma once

#include "common/name_id.h"
#include "daemon/pipeline/block_decode.h"
#include "tests/bench/bench.h"

#define BLOCK_BENCH_SEGMENT_BYTES (1u << 20)

struct block_bench {
        struct bench_file file;
        struct block_file identity;
        uint8_t *ring;
        uint32_t segments; /* of the ring; it goes round */
        bool length_crc_only;
        uint64_t extents; /* of the last call */
};

static inline void block_bench_init(struct block_bench *bench, struct bench_file file,
                                    uint8_t *ring, uint32_t segments) {
        static const char url[] = "/data/logs", run[] = "exp/a",
                          path[] = "exp/a/events.out.tfevents.1";

        *bench = (struct block_bench){
                .file = file,
                .identity = { .source_id = name_id_source(url),
                              .run_id = name_id_run(url, run, sizeof(run) - 1),
                              .file_id = name_id_file(url, path, sizeof(path) - 1),
                              .file_version = name_id_file_version(file.bytes, file.size, 0),
                              .source_url = url,
                              .run_name = run,
                              .run_name_size = sizeof(run) - 1,
                              .path = path,
                              .path_size = sizeof(path) - 1 },
                .ring = ring,
                .segments = segments,
        };
}

/* [begin, end) are borders of records. Returns the records that came out: all that there are. */
static inline uint64_t block_bench_decode(struct block_bench *bench, uint64_t begin, uint64_t end) {
        struct block_position place = { begin, 0 };
        struct block_resume resume = { 0 };
        struct block_output output;
        uint64_t records = 0;
        int r = STAGE_FULL;

        for (bench->extents = 0; r == STAGE_FULL; bench->extents++) {
                uint64_t segment = bench->extents % bench->segments;
                struct block_input input = {
                        .file = &bench->identity,
                        .bytes = bench->file.bytes + begin,
                        .bytes_offset = begin,
                        .size_bytes = end - begin,
                        .begin = place,
                        .resume = resume,
                        .last = true,
                        .length_crc_only = bench->length_crc_only,
                        .record_max_bytes = 256u << 20,
                        .payload_inline_max_bytes = 256u << 10,
                        .segment_bytes = BLOCK_BENCH_SEGMENT_BYTES,
                };

                r = block_decode(&input, bench->ring + segment * BLOCK_BENCH_SEGMENT_BYTES,
                                 BLOCK_BENCH_SEGMENT_BYTES, &output);
                records += output.record_count;
                place = output.next;
                resume = output.resume;
        }
        MUST(r == 0 && output.damage_count == 0);
        return records;
}
