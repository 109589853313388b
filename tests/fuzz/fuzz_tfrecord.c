/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a piece of a file. What comes out lies inside, in order and without gaps, also when
 * the piece is cut in two; the same records come out then.
 */
#include "tests/fuzz/fuzz.h"

#include "common/base.h"
#include "daemon/frame/tfrecord.h"

static struct tfrecord_reader reader_of(const uint8_t *data, size_t size) {
        return (struct tfrecord_reader){
                .bytes = data,
                .size_bytes = size,
                .boundary = UINT64_MAX,
                .record_max_bytes = UINT64_MAX,
        };
}

static int next(struct tfrecord_reader *reader, struct tfrecord *record) {
        uint64_t before = reader->offset;
        int r = tfrecord_next(reader, record);

        if (r == STAGE_MORE) {
                MUST(reader->offset == before);
                return r;
        }
        MUST(record->offset == before && record->size_bytes > 0 &&
             reader->offset == before + record->size_bytes);
        MUST(reader->offset <= reader->bytes_offset + reader->size_bytes);
        if (r == 0)
                MUST(record->payload == reader->bytes + (before - reader->bytes_offset) + 12 &&
                     record->payload_bytes + 16 == record->size_bytes);
        return r;
}

/* The next right record, whatever is skipped before it. */
static int next_right(struct tfrecord_reader *reader, struct tfrecord *record) {
        int r;

        do
                r = next(reader, record);
        while (r == STAGE_CORRUPT);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct tfrecord_reader whole = reader_of(data, size);
        struct tfrecord_reader cut = reader_of(data, size / 2);
        struct tfrecord one, two;

        whole.last = true;
        while (next_right(&whole, &one) == 0) {
                int r = next_right(&cut, &two);

                if (r == STAGE_MORE && cut.size_bytes < size) {
                        cut.size_bytes = size;
                        cut.last = true;
                        r = next_right(&cut, &two);
                }
                MUST(r == 0 && one.offset == two.offset && one.size_bytes == two.size_bytes);
        }
        return 0;
}
