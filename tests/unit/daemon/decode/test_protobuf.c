/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of the wire format, one by one. That they are those of TensorBoard's parser:
 * decode/test_event.
 */
#include "daemon/decode/protobuf.h"

#include "tests/unit/runner.h"

static struct protobuf_reader reader_of(const char *bytes, uint64_t size) {
        return protobuf_reader_of((struct protobuf_bytes){ (const uint8_t *)bytes, size });
}

#define READER(literal) reader_of(literal, sizeof(literal) - 1)

static bool is_refused(struct protobuf_reader reader) {
        struct protobuf_field field;

        while (protobuf_next(&reader, 0, &field))
                ;
        return reader.malformed;
}

START_TEST(varints) {
        struct protobuf_reader reader = READER(
                "\x08\x7f\x08\x80\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
        struct protobuf_field field;

        ck_assert(protobuf_next(&reader, 0, &field));
        ck_assert_uint_eq(field.value, 127);
        ck_assert(protobuf_next(&reader, 0, &field));
        ck_assert_uint_eq(field.value, 128);
        ck_assert(protobuf_next(&reader, 0, &field));
        ck_assert_uint_eq(field.value, UINT64_MAX); /* bits beyond 64 are dropped */
        ck_assert(!protobuf_next(&reader, 0, &field));
        ck_assert(!reader.malformed);
        ck_assert(is_refused(READER("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x01")));
        ck_assert(is_refused(READER("\x08\x80")));
        ck_assert(is_refused(READER("\x08")));
}
END_TEST

START_TEST(keys) {
        ck_assert(is_refused(READER("\x00\x00")));                     /* field 0 */
        ck_assert(is_refused(READER("\x80\x80\x80\x80\x80\x00\x01"))); /* six bytes */
        ck_assert(is_refused(READER("\xf8\xff\xff\xff\x7f\x01")));     /* past 32 bits */
        ck_assert(!is_refused(READER("\xf8\xff\xff\xff\x0f\x01")));
        ck_assert(!is_refused(READER("\x88\x80\x80\x80\x00\x01"))); /* overlong */
        ck_assert(is_refused(READER("\x0e\x00")));                  /* wire types 6 and 7 */
        ck_assert(is_refused(READER("\x0f\x00")));
}
END_TEST

START_TEST(sizes) {
        struct protobuf_reader reader = READER("\x0a\x03"
                                               "abc\x11"
                                               "12345678\x1d"
                                               "1234");
        struct protobuf_field field;

        ck_assert(protobuf_next(&reader, 0, &field));
        ck_assert_uint_eq(field.bytes.size, 3);
        ck_assert(protobuf_next(&reader, 0, &field));
        ck_assert_uint_eq(field.value, 0x3837363534333231u);
        ck_assert(protobuf_next(&reader, 0, &field));
        ck_assert_uint_eq(field.value, 0x34333231u);
        ck_assert(!protobuf_next(&reader, 0, &field) && !reader.malformed);
        ck_assert(is_refused(READER("\x0a\x04"
                                    "abc")));
        ck_assert(is_refused(READER("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")));
        ck_assert(is_refused(READER("\x11"
                                    "1234567")));
        ck_assert(is_refused(READER("\x1d"
                                    "123")));
}
END_TEST

START_TEST(groups) {
        ck_assert(!is_refused(READER("\x0b\x10\x01\x13\x14\x0c\x08\x01")));
        ck_assert(is_refused(READER("\x0b\x10\x01")));     /* not ended */
        ck_assert(is_refused(READER("\x0b\x14")));         /* wrongly ended */
        ck_assert(is_refused(READER("\x0c")));             /* ended only */
        ck_assert(is_refused(READER("\x0b\x00\x00\x0c"))); /* field 0 inside */
}
END_TEST

START_TEST(depth_is_bounded) {
        static char bytes[1 << 20];
        uint64_t half = sizeof(bytes) / 2;

        memset(bytes, 0x0b, half);
        memset(bytes + half, 0x0c, half);
        ck_assert(is_refused(reader_of(bytes, sizeof(bytes))));
        ck_assert(is_refused(reader_of(bytes + half - 101, 202)));
        ck_assert(!is_refused(reader_of(bytes + half - 100, 200)));
}
END_TEST

RUNNER_MAIN("decode/protobuf", varints, keys, sizes, groups, depth_is_bounded)
