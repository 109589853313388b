/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and shapes that real writers do not make. All dtypes and storages: pipeline/test_goldens
 * and decode/test_event.
 */
#include "daemon/decode/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner.h"

/* A Value's field 8 and the TensorProto in it. */
struct message {
        uint8_t bytes[4096];
        uint64_t size;
};

static void put(struct message *message, const void *bytes, uint64_t size) {
        memcpy(message->bytes + message->size, bytes, size);
        message->size += size;
}

static void put_varint(struct message *message, uint64_t value) {
        do {
                uint8_t byte = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);

                put(message, &byte, 1);
        } while (value >>= 7);
}

static void put_number(struct message *message, uint32_t number, uint64_t value) {
        put_varint(message, PROTOBUF_KEY(number, PROTOBUF_VARINT));
        put_varint(message, value);
}

static void put_bytes(struct message *message, uint32_t number, const void *bytes, uint64_t size) {
        put_varint(message, PROTOBUF_KEY(number, PROTOBUF_BYTES));
        put_varint(message, size);
        put(message, bytes, size);
}

static void put_shape(struct message *message, const int64_t *dimension, unsigned rank) {
        struct message shape = { .size = 0 };

        for (unsigned i = 0; i < rank; i++) {
                struct message one = { .size = 0 };

                put_number(&one, 1, (uint64_t)dimension[i]);
                put_bytes(&shape, 2, one.bytes, one.size);
        }
        put_bytes(message, 2, shape.bytes, shape.size);
}

static struct tensor *read_message(const struct message *message, struct message *outer) {
        struct tensor *tensor = malloc(sizeof(*tensor));

        outer->size = 0;
        put_bytes(outer, 8, message->bytes, message->size);
        tensor_read(&(struct event_parts){ { outer->bytes, outer->size },
                                           PROTOBUF_KEY(8, PROTOBUF_BYTES),
                                           2 },
                    tensor);
        return tensor;
}

static double number_of(uint8_t dtype, const void *content, uint64_t size) {
        struct message message = { .size = 0 }, outer;
        struct tensor *tensor;
        double value;

        put_number(&message, 1, dtype);
        put_bytes(&message, 4, content, size);
        tensor = read_message(&message, &outer);
        ck_assert(!tensor->malformed);
        ck_assert_uint_eq(tensor->element_count, 1);
        ck_assert_uint_eq(tensor->payload_bytes, 64 + size);
        value = tensor->value;
        free(tensor);
        return value;
}

static double half(uint16_t bits) {
        return number_of(19, &bits, 2);
}

static double bfloat16(uint16_t bits) {
        return number_of(14, &bits, 2);
}

/* Expected: numpy.uint16(bits).view(numpy.float16) */
START_TEST(half_floats) {
        ck_assert_double_eq(half(0x3c00), 1);
        ck_assert_double_eq(half(0xc000), -2);
        ck_assert_double_eq(half(0x7bff), 65504);
        ck_assert_double_eq(half(0x0400), 6.103515625e-05);
        ck_assert_double_eq(half(0x0001), 5.960464477539063e-08);
        ck_assert_double_eq(half(0x03ff), 6.097555160522461e-05);
        ck_assert_double_eq(half(0x3555), 0.333251953125);
        ck_assert(half(0x7c00) == INFINITY && half(0xfc00) == -INFINITY && isnan(half(0x7e01)));
        ck_assert(half(0x8000) == 0 && signbit(half(0x8000)));
        ck_assert_double_eq(bfloat16(0x3f80), 1);
        ck_assert_double_eq(bfloat16(0xc2f7), -123.5);
        ck_assert(isnan(bfloat16(0x7fc0)));
}
END_TEST

START_TEST(integers) {
        ck_assert_double_eq(number_of(6, "\xff", 1), -1);
        ck_assert_double_eq(number_of(4, "\xff", 1), 255);
        ck_assert_double_eq(number_of(5, "\x00\x80", 2), -32768);
        ck_assert_double_eq(number_of(17, "\x00\x80", 2), 32768);
        ck_assert_double_eq(number_of(3, "\xfe\xff\xff\xff", 4), -2);
        ck_assert_double_eq(number_of(22, "\xfe\xff\xff\xff", 4), 4294967294.0);
        ck_assert_double_eq(number_of(9, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), -1);
        ck_assert_double_eq(number_of(23, "\xff\xff\xff\xff\xff\xff\xff\xff", 8),
                            18446744073709551615.0);
        ck_assert_double_eq(number_of(10, "\x01", 1), 1);
        ck_assert_double_eq(number_of(2, "\x00\x00\x00\x00\x00\x00\xf8\xbf", 8), -1.5);
        /* complex: no number */
        ck_assert_double_eq(number_of(8, "\x00\x00\x80\x3f\x00\x00\x80\x3f", 8), 0);
}
END_TEST

/* Whatever a shape promises, it is told in no time and takes no more than what is there. */
static void check_absurd(const int64_t *dimension, unsigned rank, uint32_t dtype) {
        struct message message = { .size = 0 }, outer;
        uint8_t payload[4096];
        struct tensor *tensor;

        put_number(&message, 1, dtype);
        put_shape(&message, dimension, rank);
        put_bytes(&message, 5, "\x00\x00\x80\x3f", 4);
        put_bytes(&message, 8, "string", 6);
        tensor = read_message(&message, &outer);
        ck_assert(tensor->malformed && !tensor->is_number);
        ck_assert_uint_le(tensor->element_count, 1); /* what is there */
        ck_assert_uint_le(tensor->payload_bytes, 8 + 8 * 254 + 63 + 8 + 6);
        tensor_write(tensor, payload);
        free(tensor);
}

START_TEST(absurd_shapes) {
        int64_t many[300];

        for (int i = 0; i < 300; i++)
                many[i] = 1;
        check_absurd((int64_t[]){ INT64_MAX }, 1, 1);
        check_absurd((int64_t[]){ 1ll << 40 }, 1, 1);
        check_absurd((int64_t[]){ 1ll << 40 }, 1, 7);
        check_absurd((int64_t[]){ 1ll << 33, 1ll << 33 }, 2, 1);
        check_absurd((int64_t[]){ 1ll << 32, 1ll << 32 }, 2, 1); /* 2^64: 0 if it wrapped */
        check_absurd((int64_t[]){ -1 }, 1, 1);
        check_absurd((int64_t[]){ -1, -1 }, 2, 1);
        check_absurd((int64_t[]){ INT64_MIN, 0 }, 2, 1);
        check_absurd((int64_t[]){ 2, 3 }, 2, 20); /* a resource */
        check_absurd((int64_t[]){ 1 }, 1, 1000);
        check_absurd(many, 255, 1);
        check_absurd(many, 300, 1);
}
END_TEST

START_TEST(no_elements_in_a_huge_shape) {
        struct message message = { .size = 0 }, outer;
        struct tensor *tensor;

        put_number(&message, 1, 1);
        put_shape(&message, (int64_t[]){ 1ll << 62, 1ll << 62, 0 }, 3);
        tensor = read_message(&message, &outer);
        ck_assert(!tensor->malformed);
        ck_assert_uint_eq(tensor->element_count, 0);
        ck_assert_uint_eq(tensor->payload_bytes, 64);
        free(tensor);
}
END_TEST

/* One value for a shape is written as often as that, up to a bound. */
START_TEST(value_that_fills_its_shape) {
        struct message message = { .size = 0 }, outer;
        struct tensor *tensor;
        float *elements;
        uint8_t *payload;

        put_number(&message, 1, 1);
        put_shape(&message, (int64_t[]){ 3, 5 }, 2);
        put_bytes(&message, 5, "\x00\x00\xc0\x3f", 4);
        tensor = read_message(&message, &outer);
        ck_assert(!tensor->malformed);
        ck_assert_uint_eq(tensor->payload_bytes, 64 + 60);
        payload = aligned_alloc(64, 128);
        tensor_write(tensor, payload);
        elements = (void *)(payload + 64);
        for (int i = 0; i < 15; i++)
                ck_assert_float_eq(elements[i], 1.5f);
        free(payload);
        free(tensor);
        message.size = 0;
        put_number(&message, 1, 1);
        put_shape(&message, (int64_t[]){ 1 << 26 }, 1);
        put_bytes(&message, 5, "\x00\x00\xc0\x3f", 4);
        tensor = read_message(&message, &outer);
        ck_assert_uint_eq(tensor->payload_bytes, 64 + (1u << 28));
        free(tensor);
        message.size = 0;
        put_number(&message, 1, 1);
        put_shape(&message, (int64_t[]){ (1 << 26) + 1 }, 1);
        put_bytes(&message, 5, "\x00\x00\xc0\x3f", 4);
        tensor = read_message(&message, &outer);
        ck_assert(tensor->malformed);
        free(tensor);
}
END_TEST

START_TEST(rank_that_nobody_knows) {
        static const uint8_t unknown[] = { 0x18, 0x01 };
        struct message message = { .size = 0 }, outer;
        struct tensor *tensor;

        put_number(&message, 1, 1);
        put_bytes(&message, 2, unknown, 2);
        put_bytes(&message, 5, "\x00\x00\xc0\x3f", 4);
        tensor = read_message(&message, &outer);
        ck_assert(tensor->malformed);
        ck_assert_uint_eq(tensor->rank, EXTENT_RANK_UNKNOWN);
        ck_assert_uint_eq(tensor->element_count, 1); /* carried all the same */
        ck_assert_double_eq(tensor->value, 1.5);
        free(tensor);
}
END_TEST

/*
 * TensorBoard's data server shows the typed value of such a scalar, as a tensor the content counts.
 */
START_TEST(scalar_with_content_and_typed_value) {
        struct message message = { .size = 0 }, outer;
        struct tensor *tensor;
        uint8_t *payload = aligned_alloc(64, 128);

        put_number(&message, 1, 1);
        put_bytes(&message, 4, "\x00\x00\xc0\x3f", 4);
        put_bytes(&message, 5, "\x00\x00\x80\x3f", 4);
        tensor = read_message(&message, &outer);
        ck_assert_double_eq(tensor->value, 1);
        tensor_write(tensor, payload);
        ck_assert_mem_eq(payload + 64, "\x00\x00\xc0\x3f", 4);
        free(payload);
        free(tensor);
        /* Content that does not fit changes nothing of it: the data server does not look at it. */
        message.size = 0;
        put_number(&message, 1, 1);
        put_bytes(&message, 4, "\x00\x00\xc0\x3f\x00\x00\xc0\x3f", 8);
        put_bytes(&message, 5, "\x00\x00\x80\x3f", 4);
        tensor = read_message(&message, &outer);
        ck_assert(tensor->malformed && tensor->is_number);
        ck_assert_double_eq(tensor->value, 1);
        ck_assert_uint_eq(tensor->element_count, 2);
        free(tensor);
}
END_TEST

/*
 * The point of a scalar series as TensorFlow writes it, with each byte of its message changed to any
 * other, and the same behind an empty version number: one is read at once, the other field by field.
 */
static void check_alike(const uint8_t *bytes, uint64_t size) {
        struct message message = { .size = 0 }, outer, longer_outer;
        uint8_t *one = aligned_alloc(64, 1024), *other = aligned_alloc(64, 1024);
        struct tensor *tensor, *longer;

        put(&message, bytes, size);
        tensor = read_message(&message, &outer);
        message.size = 0;
        put_number(&message, 3, 0);
        put(&message, bytes, size);
        longer = read_message(&message, &longer_outer);
        ck_assert_uint_eq(tensor->dtype, longer->dtype);
        ck_assert_uint_eq(tensor->rank, longer->rank);
        ck_assert_int_eq(tensor->malformed, longer->malformed);
        ck_assert_int_eq(tensor->is_number, longer->is_number);
        ck_assert_mem_eq(&tensor->value, &longer->value, sizeof(double));
        ck_assert_uint_eq(tensor->element_count, longer->element_count);
        ck_assert_uint_eq(tensor->payload_bytes, longer->payload_bytes);
        if (tensor->payload_bytes <= 1024) {
                memset(one, 0xaa, 1024);
                memset(other, 0xaa, 1024);
                tensor_write(tensor, one);
                tensor_write(longer, other);
                ck_assert_mem_eq(one, other, 1024);
        }
        free(tensor);
        free(longer);
        free(one);
        free(other);
}

START_TEST(point_is_read_alike_either_way) {
        static const char *const points[] = {
                "\x08\x01\x12\x00\x2a\x04\x00\x00\xc0\x3f",
                "\x08\x01\x12\x00\x22\x04\x00\x00\xc0\x3f",
        };
        uint8_t bytes[10];

        for (size_t i = 0; i < ARRAY_SIZE(points); i++)
                for (size_t at = 0; at < sizeof(bytes); at++)
                        for (unsigned byte = 0; byte < 256; byte++) {
                                memcpy(bytes, points[i], sizeof(bytes));
                                bytes[at] = (uint8_t)byte;
                                check_alike(bytes, sizeof(bytes));
                        }
}
END_TEST

/* Two occurrences of the field merge: the later values stand behind the earlier ones. */
START_TEST(point_in_two_parts) {
        struct message message = { .size = 0 };
        struct tensor *tensor = malloc(sizeof(*tensor));

        put_bytes(&message, 8, "\x08\x01\x12\x00\x2a\x04\x00\x00\xc0\x3f", 10);
        put_bytes(&message, 8, "\x2a\x04\x00\x00\x80\x3f", 6);
        tensor_read(&(struct event_parts){ { message.bytes, message.size },
                                           PROTOBUF_KEY(8, PROTOBUF_BYTES),
                                           2 },
                    tensor);
        ck_assert_uint_eq(tensor->element_count, 2);
        ck_assert(tensor->malformed && !tensor->is_number);
        free(tensor);
}
END_TEST

RUNNER_MAIN("decode/tensor", half_floats, integers, absurd_shapes, no_elements_in_a_huge_shape,
            value_that_fills_its_shape, rank_that_nobody_knows, scalar_with_content_and_typed_value,
            point_is_read_alike_either_way, point_in_two_parts)
