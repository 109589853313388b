/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processor could do: one loop that frames, checks both CRCs and finds series, step and
 * number of a file of scalars, with no care for any other file and nothing kept; and for large payloads, a
 * copy of every record and its CRC.
 *
 *      limit_decode FILE [ROUNDS]
 */
#include <string.h>
#include <xxhash.h>

#include "common/crc32c.h"
#include "tests/bench/bench.h"

#define COPY_BYTES (64u << 20)

#define TABLE_SIZE 1024u

struct series {
        const uint8_t *tag;
        uint64_t tag_size;
        uint32_t index; /* 0: no series */
};

struct limit {
        struct bench_file file;
        uint8_t *copy;
        struct series table[TABLE_SIZE];
        uint32_t count;
};

static uint32_t crc_of(const uint8_t *at, uint64_t size) {
        return crc32c_mask(crc32c(at, size));
}

struct found {
        uint64_t wall_time, step, tag_size;
        const uint8_t *tag;
        uint32_t number;
};

/* Which series a tag is: 1 and more, in the order of their first values. */
static uint32_t series_of(struct limit *limit, const struct found *found) {
        uint64_t at = XXH3_64bits(found->tag, found->tag_size);
        struct series *series;

        while ((series = &limit->table[at++ % TABLE_SIZE])->index) {
                if (series->tag_size == found->tag_size &&
                    memcmp(series->tag, found->tag, found->tag_size) == 0)
                        return series->index;
        }
        MUST(limit->count < TABLE_SIZE / 2);
        *series = (struct series){ found->tag, found->tag_size, ++limit->count };
        return series->index;
}

static const uint8_t *varint(const uint8_t *at, uint64_t *ret_value) {
        uint64_t value = *at & 0x7f;

        for (unsigned shift = 7; *at++ >= 0x80; shift += 7)
                value |= (uint64_t)(*at & 0x7f) << shift;
        *ret_value = value;
        return at;
}

/* Value {1: tag, 2: number} */
static void look_at_value(const uint8_t *at, const uint8_t *end, struct found *found) {
        while (at < end) {
                switch (*at++) {
                case 0x0a:
                        at = varint(at, &found->tag_size);
                        found->tag = at;
                        at += found->tag_size;
                        break;
                case 0x15:
                        memcpy(&found->number, at, 4);
                        at += 4;
                        break;
                default:
                        return;
                }
        }
}

/* Event {1: wall time, 2: step, 5: summary {1: value}}; whatever else there is ends the look. */
static void look_at(const uint8_t *at, const uint8_t *end, struct found *found) {
        uint64_t size;

        while (at < end) {
                switch (*at++) {
                case 0x09:
                        memcpy(&found->wall_time, at, 8);
                        at += 8;
                        break;
                case 0x10:
                        at = varint(at, &found->step);
                        break;
                case 0x2a:
                        at = varint(at, &size);
                        at = varint(at + 1, &size);
                        look_at_value(at, at + size, found);
                        at += size;
                        break;
                default:
                        return;
                }
        }
}

static uint64_t scalars(void *context) {
        struct limit *limit = context;
        const uint8_t *at = limit->file.bytes, *end = at + limit->file.size;
        uint64_t records = 0;
        struct found found = { .tag = (const uint8_t *)"" };
        volatile uint64_t kept;
        uint64_t sum = 0;

        while (at < end) {
                uint64_t size;
                uint32_t length_crc, payload_crc;

                memcpy(&size, at, 8);
                memcpy(&length_crc, at + 8, 4);
                if (crc_of(at, 8) != length_crc)
                        break;
                memcpy(&payload_crc, at + 12 + size, 4);
                if (crc_of(at + 12, size) != payload_crc)
                        break;
                look_at(at + 12, at + 12 + size, &found);
                sum += found.step + found.number + found.wall_time + series_of(limit, &found);
                at += 16 + size;
                records++;
        }
        kept = sum;
        (void)kept;
        return records;
}

static uint64_t copies(void *context) {
        const struct limit *limit = context;
        const uint8_t *at = limit->file.bytes, *end = at + limit->file.size;
        uint64_t records = 0, to = 0;

        for (; at < end; records++) {
                uint64_t size;
                uint32_t payload_crc;

                memcpy(&size, at, 8);
                memcpy(&payload_crc, at + 12 + size, 4);
                if (to + size > COPY_BYTES)
                        to = 0;
                memcpy(limit->copy + to, at + 12, size);
                MUST(crc_of(at + 12, size) == payload_crc);
                to += size;
                at += 16 + size;
        }
        return records;
}

int main(int argc, char **argv) {
        int rounds = argc > 2 ? atoi(argv[2]) : 9;
        static struct limit limit;
        double loop, copy;
        uint64_t records;

        if (argc < 2)
                return 2;
        limit.file = bench_file_read(argv[1]);
        limit.copy = malloc(COPY_BYTES);
        MUST(limit.copy);
        memset(limit.copy, 1, COPY_BYTES);
        copy = bench_best(copies, &limit, rounds, &records);
        loop = bench_best(scalars, &limit, rounds, &records);
        printf("{\"records\": %llu, \"bytes\": %llu, \"loop\": %.6f, \"copy\": %.6f}\n",
               (unsigned long long)records, (unsigned long long)limit.file.size, loop, copy);
        free(limit.copy);
        free(limit.file.bytes);
        return 0;
}
