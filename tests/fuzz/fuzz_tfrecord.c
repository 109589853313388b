/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a piece of a file. What comes out lies inside, in order and without gaps, also when
 * the piece is cut in two; the same records and the same damage come out then. The first two bytes
 * say where it is cut. The one that is cut has memory for CRCs of spans, the other has none.
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

static void check_same(const struct tfrecord *one, const struct tfrecord *two) {
        MUST(one->offset == two->offset && one->size_bytes == two->size_bytes);
        MUST(one->damage == two->damage);
}

/* Reads on behind the cut as well. */
static int next_of_cut(struct tfrecord_reader *cut, uint64_t size, struct tfrecord *record) {
        int r = next(cut, record);

        if (r != STAGE_MORE || cut->size_bytes == size)
                return r;
        cut->size_bytes = size;
        cut->last = true;
        cut->has_prefix = false; /* it was made of fewer bytes */
        return next(cut, record);
}

static struct crc_prefix prefix;

/* More of the file comes. Returns whether there was damage. */
static bool cut_in_two(const uint8_t *data, size_t size, size_t at) {
        struct tfrecord_reader whole = reader_of(data, size);
        struct tfrecord_reader cut = reader_of(data, at);
        struct tfrecord one = { 0 }, two = { 0 };
        bool damaged = false;
        int r;

        whole.last = true;
        cut.last = at == size;
        cut.prefix = &prefix;
        while ((r = next(&whole, &one)) != STAGE_MORE) {
                damaged |= r == STAGE_CORRUPT;
                MUST(next_of_cut(&cut, size, &two) == r);
                check_same(&one, &two);
        }
        MUST(next_of_cut(&cut, size, &two) == STAGE_MORE);
        MUST(cut.offset == whole.offset && cut.search_offset == whole.search_offset);
        return damaged || whole.search_offset;
}

/* The file ends at the cut and grows: what is right in it comes out all the same. */
static void grown(const uint8_t *data, size_t size, size_t at) {
        struct tfrecord_reader whole = reader_of(data, size);
        struct tfrecord_reader cut = reader_of(data, at);
        struct tfrecord one = { 0 }, two = { 0 };

        whole.last = cut.last = true;
        while (next(&whole, &one) == 0) {
                MUST(next_of_cut(&cut, size, &two) == 0);
                check_same(&one, &two);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t at;

        if (size < 2)
                return 0;
        at = (data[0] | (size_t)data[1] << 8) % (size - 1);
        data += 2;
        size -= 2;
        if (!cut_in_two(data, size, at))
                grown(data, size, at);
        return 0;
}
