/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three passes over the message: its type, shape and content; how many values stand in the field
 * that the type uses; the values. tensor_content wins over typed fields; a single typed value fills
 * the shape.
 */
#include "daemon/decode/tensor.h"

#include <math.h>
#include <string.h>

#include "common/tensor_type.h"
#include "daemon/decode/protobuf.h"

#define TENSOR_DEPTH 3

#define POINT_BYTES 10 /* of a tensor that is one float */

/* float8_val: not repeated, one byte for each element. */
#define BYTE_FIELD 18

/* What a message of a few bytes may be made into by repeating its one value. */
#define REPEATED_BYTES_MAX (1u << 28)

enum number_kind {
        NUMBER_NONE = 0,
        NUMBER_SIGNED,
        NUMBER_UNSIGNED,
        NUMBER_FLOAT,
        NUMBER_BOOL,
        NUMBER_HALF,
        NUMBER_BFLOAT16
};

struct tensor_storage {
        uint8_t number; /* of the typed field */
        uint8_t type;   /* of one value there: enum protobuf_type */
        uint8_t width;  /* bytes of an element; 0: strings */
        uint8_t values; /* of an element: 2 for complex numbers */
        uint8_t kind;   /* enum number_kind */
};

/* Types of less than a byte have a byte for each element, and no number. */
static const struct tensor_storage storages[] = {
        [DT_FLOAT] = { 5, PROTOBUF_FIXED32, 4, 1, NUMBER_FLOAT },
        [DT_DOUBLE] = { 6, PROTOBUF_FIXED64, 8, 1, NUMBER_FLOAT },
        [DT_INT32] = { 7, PROTOBUF_VARINT, 4, 1, NUMBER_SIGNED },
        [DT_UINT8] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_UNSIGNED },
        [DT_INT16] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_SIGNED },
        [DT_INT8] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_SIGNED },
        [DT_STRING] = { 8, PROTOBUF_BYTES, 0, 1, NUMBER_NONE },
        [DT_COMPLEX64] = { 9, PROTOBUF_FIXED32, 8, 2, NUMBER_NONE },
        [DT_INT64] = { 10, PROTOBUF_VARINT, 8, 1, NUMBER_SIGNED },
        [DT_BOOL] = { 11, PROTOBUF_VARINT, 1, 1, NUMBER_BOOL },
        [DT_QINT8] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_SIGNED },
        [DT_QUINT8] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_UNSIGNED },
        [DT_QINT32] = { 7, PROTOBUF_VARINT, 4, 1, NUMBER_SIGNED },
        [DT_BFLOAT16] = { 13, PROTOBUF_VARINT, 2, 1, NUMBER_BFLOAT16 },
        [DT_QINT16] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_SIGNED },
        [DT_QUINT16] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_UNSIGNED },
        [DT_UINT16] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_UNSIGNED },
        [DT_COMPLEX128] = { 12, PROTOBUF_FIXED64, 16, 2, NUMBER_NONE },
        [DT_HALF] = { 13, PROTOBUF_VARINT, 2, 1, NUMBER_HALF },
        /* The messages as they were written. */
        [DT_RESOURCE] = { 14, PROTOBUF_BYTES, 0, 1, NUMBER_NONE },
        [DT_VARIANT] = { 15, PROTOBUF_BYTES, 0, 1, NUMBER_NONE },
        [DT_UINT32] = { 16, PROTOBUF_VARINT, 4, 1, NUMBER_UNSIGNED },
        [DT_UINT64] = { 17, PROTOBUF_VARINT, 8, 1, NUMBER_UNSIGNED },
        [DT_FLOAT8_E5M2] = { BYTE_FIELD, PROTOBUF_BYTES, 1, 1, NUMBER_NONE },
        [DT_FLOAT8_E4M3FN] = { BYTE_FIELD, PROTOBUF_BYTES, 1, 1, NUMBER_NONE },
        [DT_FLOAT8_E4M3FNUZ] = { BYTE_FIELD, PROTOBUF_BYTES, 1, 1, NUMBER_NONE },
        [DT_FLOAT8_E4M3B11FNUZ] = { BYTE_FIELD, PROTOBUF_BYTES, 1, 1, NUMBER_NONE },
        [DT_FLOAT8_E5M2FNUZ] = { BYTE_FIELD, PROTOBUF_BYTES, 1, 1, NUMBER_NONE },
        [DT_INT4] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_NONE },
        [DT_UINT4] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_NONE },
        [DT_INT2] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_NONE },
        [DT_UINT2] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_NONE },
        [DT_FLOAT4_E2M1FN] = { BYTE_FIELD, PROTOBUF_BYTES, 1, 1, NUMBER_NONE },
};

static const struct tensor_storage *storage_of(uint8_t dtype) {
        uint8_t base = tensor_type_base(dtype);

        return base < ARRAY_SIZE(storages) && storages[base].number ? &storages[base] : NULL;
}

/* What the message says of its shape, before any of it is believed. */
struct shape {
        uint32_t rank;
        bool rank_unknown, negative, zero, overflows;
        uint64_t count;
};

static void add_dimension(struct protobuf_bytes bytes, struct shape *shape, struct tensor *tensor) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;
        int64_t size = 0;

        while (protobuf_next(&reader, TENSOR_DEPTH + 2, &field))
                if (field.key == PROTOBUF_KEY(1, PROTOBUF_VARINT))
                        size = (int64_t)field.value;
        if (shape->rank < TENSOR_RANK_MAX)
                tensor->dimension[shape->rank] = size;
        shape->rank++;
        shape->negative |= size < 0;
        shape->zero |= size == 0;
        if (size > 0 && __builtin_mul_overflow(shape->count, (uint64_t)size, &shape->count)) {
                shape->overflows = true;
                shape->count = 1;
        }
}

static void add_shape(struct protobuf_bytes bytes, struct shape *shape, struct tensor *tensor) {
        struct protobuf_reader reader = protobuf_reader_of(bytes);
        struct protobuf_field field;

        while (protobuf_next(&reader, TENSOR_DEPTH + 1, &field)) {
                if (field.key == PROTOBUF_KEY(2, PROTOBUF_BYTES))
                        add_dimension(field.bytes, shape, tensor);
                else if (field.key == PROTOBUF_KEY(3, PROTOBUF_VARINT))
                        shape->rank_unknown = field.value != 0;
        }
}

static uint32_t read_head(struct event_parts parts, struct shape *shape, struct tensor *tensor) {
        struct protobuf_bytes part;
        struct protobuf_field field;
        uint32_t dtype = 0;

        while (event_parts_next(&parts, &part)) {
                struct protobuf_reader reader = protobuf_reader_of(part);

                while (protobuf_next(&reader, TENSOR_DEPTH, &field)) {
                        if (field.key == PROTOBUF_KEY(1, PROTOBUF_VARINT))
                                dtype = (uint32_t)field.value;
                        else if (field.key == PROTOBUF_KEY(2, PROTOBUF_BYTES))
                                add_shape(field.bytes, shape, tensor);
                        else if (field.key == PROTOBUF_KEY(4, PROTOBUF_BYTES))
                                tensor->content = field.bytes;
                        else if (field.key == PROTOBUF_KEY(BYTE_FIELD, PROTOBUF_BYTES))
                                tensor->byte_values = field.bytes;
                }
        }
        return dtype;
}

/* Goes through the values of the typed field: packed, one by one, or both. */
struct values {
        const struct tensor_storage *storage;
        struct event_parts parts;
        struct protobuf_reader part, packed;
};

static struct values values_of(const struct tensor *tensor) {
        if (tensor->storage->number == BYTE_FIELD)
                return (struct values){ .storage = tensor->storage,
                                        .packed = protobuf_reader_of(tensor->byte_values) };
        return (struct values){ .storage = tensor->storage, .parts = tensor->parts };
}

static bool next_packed(struct values *values, struct protobuf_field *value) {
        if (values->packed.at >= values->packed.end)
                return false;
        switch (values->storage->type) {
        case PROTOBUF_VARINT:
                return protobuf_varint(&values->packed, &value->value);
        case PROTOBUF_BYTES:
                return protobuf_fixed(&values->packed, 1, &value->value);
        default:
                return protobuf_fixed(&values->packed,
                                      values->storage->type == PROTOBUF_FIXED32 ? 4 : 8,
                                      &value->value);
        }
}

static bool next_value(struct values *values, struct protobuf_field *ret_value) {
        const struct tensor_storage *storage = values->storage;
        struct protobuf_bytes part;

        while (!next_packed(values, ret_value)) {
                if (!protobuf_next(&values->part, TENSOR_DEPTH, ret_value)) {
                        if (!event_parts_next(&values->parts, &part))
                                return false;
                        values->part = protobuf_reader_of(part);
                } else if (ret_value->key == PROTOBUF_KEY(storage->number, storage->type)) {
                        return true;
                } else if (ret_value->key == PROTOBUF_KEY(storage->number, PROTOBUF_BYTES)) {
                        values->packed = protobuf_reader_of(ret_value->bytes);
                }
        }
        return true;
}

/* Elements that stand in the typed field. */
static uint64_t count_typed(const struct tensor *tensor, uint64_t *ret_string_bytes) {
        struct values values = values_of(tensor);
        struct protobuf_field value;
        uint64_t count = 0;

        *ret_string_bytes = 0;
        for (; next_value(&values, &value); count++)
                if (tensor->storage->width == 0)
                        *ret_string_bytes += value.bytes.size;
        return count / tensor->storage->values;
}

static uint64_t elements_bytes(const struct tensor *tensor, uint64_t count) {
        if (tensor->storage->width)
                return count * tensor->storage->width;
        return count * sizeof(uint64_t) + tensor->string_bytes;
}

/* One typed value stands for the whole shape, as far as that can be written. */
static bool repeat(struct tensor *tensor, uint64_t count) {
        uint64_t each = tensor->storage->width ? tensor->storage->width
                                               : sizeof(uint64_t) + tensor->string_bytes;

        if (tensor->content.size || count > REPEATED_BYTES_MAX / each)
                return false;
        tensor->repeats = true;
        tensor->string_bytes *= count;
        return true;
}

/* Elements that the message really holds. False: content that ends inside of one. */
static bool count_elements(struct tensor *tensor, uint64_t *ret_count) {
        unsigned width = tensor->storage->width;

        if (tensor->content.size && width) {
                *ret_count = tensor->content.size / width;
                return tensor->content.size % width == 0;
        }
        tensor->content.size = 0;
        *ret_count = count_typed(tensor, &tensor->string_bytes);
        return true;
}

/* False: no number of elements is this shape. */
static bool shape_count(const struct shape *shape, uint64_t *ret_count) {
        *ret_count = shape->zero ? 0 : shape->count;
        return !shape->negative && !shape->rank_unknown && shape->rank <= TENSOR_RANK_MAX &&
               (!shape->overflows || shape->zero) && *ret_count <= UINT32_MAX;
}

/* True if there are as many elements as the shape says. If not, it has those that are there. */
static bool find_elements(struct tensor *tensor, const struct shape *shape) {
        uint64_t wanted = 0, found;
        bool fits;

        if (!tensor->storage)
                return false;
        fits = count_elements(tensor, &found) && shape_count(shape, &wanted);
        if (fits && found == 1 && wanted != 1 && repeat(tensor, wanted))
                found = wanted;
        tensor->element_count = (uint32_t)min_u64(found, UINT32_MAX);
        return fits && found == wanted;
}

static double half_value(uint16_t bits) {
        int exponent = bits >> 10 & 0x1f;
        double fraction = bits & 0x3ff;
        double magnitude;

        if (exponent == 0)
                magnitude = ldexp(fraction, -24);
        else if (exponent == 0x1f)
                magnitude = fraction > 0 ? NAN : INFINITY;
        else
                magnitude = ldexp(fraction + 1024, exponent - 25);
        return bits & 0x8000 ? -magnitude : magnitude;
}

static double float_value(uint32_t bits) {
        float value;

        memcpy(&value, &bits, sizeof(value));
        return value;
}

static double number_value(const struct tensor_storage *storage, const uint8_t *element) {
        unsigned unused_bits = 64 - 8 * storage->width;
        uint64_t bits = 0;
        double wide;

        memcpy(&bits, element, storage->width);
        switch (storage->kind) {
        case NUMBER_SIGNED:
                return (double)((int64_t)(bits << unused_bits) >> unused_bits);
        case NUMBER_FLOAT:
                if (storage->width == 4)
                        return float_value((uint32_t)bits);
                memcpy(&wide, &bits, sizeof(wide));
                return wide;
        case NUMBER_HALF:
                return half_value((uint16_t)bits);
        case NUMBER_BFLOAT16:
                return float_value((uint32_t)bits << 16);
        default:
                return (double)bits;
        }
}

/* One element of a fixed-size type from its typed values. False: there is none left. */
static bool write_element(struct values *values, uint8_t *ret_element) {
        const struct tensor_storage *storage = values->storage;
        unsigned width = storage->width / storage->values;
        struct protobuf_field value;

        for (unsigned i = 0; i < storage->values; i++) {
                if (!next_value(values, &value))
                        return false;
                if (storage->kind == NUMBER_BOOL)
                        value.value = value.value != 0;
                memcpy(ret_element + i * width, &value.value, width);
        }
        return true;
}

/*
 * A float without dimensions that has content and one typed value says two things: as a tensor
 * TensorBoard shows the content, as a point of a scalar series its data server shows the typed
 * value. So do payload and number.
 */
static bool is_typed_number(const struct tensor *tensor, const struct shape *shape) {
        uint64_t unused;

        return tensor->dtype == DT_FLOAT && shape->rank == 0 && tensor->content.size &&
               count_typed(tensor, &unused) == 1;
}

/* A tensor of unknown rank has no shape to fit; its one element is a number all the same. */
static bool is_one_element(const struct tensor *tensor, const struct shape *shape) {
        return tensor->element_count == 1 && (!tensor->malformed || shape->rank_unknown);
}

/* Where the bytes of the one number are: *element is room for a typed one. NULL: it is none. */
static const uint8_t *find_number(const struct tensor *tensor, const struct shape *shape,
                                  uint8_t element[16]) {
        struct values values;

        if (!tensor_type_is_number(tensor->dtype))
                return NULL;
        if (!is_typed_number(tensor, shape)) {
                if (!is_one_element(tensor, shape))
                        return NULL;
                if (tensor->content.size)
                        return tensor->content.at;
        }
        values = values_of(tensor);
        return write_element(&values, element) ? element : NULL;
}

static void read_number(struct tensor *tensor, const struct shape *shape) {
        uint8_t element[16];
        const uint8_t *number = find_number(tensor, shape, element);

        tensor->is_number = number != NULL;
        if (number)
                tensor->value = number_value(tensor->storage, number);
}

/*
 * One float without dimensions, as TensorFlow writes each point of a scalar series: type, an empty
 * shape, and four bytes that are packed values or content, which is the same then.
 */
static bool is_point(const uint8_t *bytes) {
        return bytes[0] == PROTOBUF_KEY(1, PROTOBUF_VARINT) && bytes[1] == DT_FLOAT &&
               bytes[2] == PROTOBUF_KEY(2, PROTOBUF_BYTES) && bytes[3] == 0 &&
               (bytes[4] == PROTOBUF_KEY(5, PROTOBUF_BYTES) ||
                bytes[4] == PROTOBUF_KEY(4, PROTOBUF_BYTES)) &&
               bytes[5] == sizeof(float);
}

static bool read_point(struct event_parts parts, struct tensor *tensor) {
        struct protobuf_bytes part, another;
        float number;

        if (!event_parts_next(&parts, &part) || part.size != POINT_BYTES || !is_point(part.at) ||
            event_parts_next(&parts, &another))
                return false;
        memcpy(&number, part.at + POINT_BYTES - sizeof(number), sizeof(number));
        tensor->dtype = DT_FLOAT;
        tensor->storage = &storages[DT_FLOAT];
        tensor->content.at = part.at + POINT_BYTES - sizeof(number);
        tensor->content.size = sizeof(number);
        tensor->element_count = 1;
        tensor->payload_bytes = extent_payload_data_offset(0) + sizeof(number);
        tensor->value = number;
        tensor->is_number = true;
        return true;
}

void tensor_read(const struct event_parts *parts, struct tensor *ret_tensor) {
        struct shape shape = { .count = 1 };
        uint32_t dtype;

        /* Not the dimensions: most tensors have few. */
        memset(ret_tensor, 0, offsetof(struct tensor, dimension));
        if (read_point(*parts, ret_tensor))
                return;
        ret_tensor->parts = *parts;
        dtype = read_head(*parts, &shape, ret_tensor);
        ret_tensor->dtype = dtype <= UINT8_MAX ? (uint8_t)dtype : 0;
        ret_tensor->rank = shape.rank_unknown || shape.rank > TENSOR_RANK_MAX ? EXTENT_RANK_UNKNOWN
                                                                              : (uint8_t)shape.rank;
        ret_tensor->storage = storage_of(ret_tensor->dtype);
        ret_tensor->malformed = !find_elements(ret_tensor, &shape);
        ret_tensor->payload_bytes = extent_payload_data_offset(ret_tensor->rank);
        if (ret_tensor->element_count > 0)
                ret_tensor->payload_bytes += elements_bytes(ret_tensor, ret_tensor->element_count);
        read_number(ret_tensor, &shape);
}

static void write_repeated(const struct tensor *tensor, struct values *values, uint8_t *elements) {
        unsigned width = tensor->storage->width;
        uint8_t element[16];

        if (tensor->element_count == 0 || !write_element(values, element))
                return;
        for (uint32_t i = 0; i < tensor->element_count; i++)
                memcpy(elements + (uint64_t)i * width, element, width);
}

struct protobuf_bytes tensor_verbatim(const struct tensor *tensor) {
        if (tensor->element_count == 0 || !tensor->storage->width || !tensor->content.size)
                return (struct protobuf_bytes){ NULL, 0 };
        return (struct protobuf_bytes){ tensor->content.at,
                                        (uint64_t)tensor->element_count * tensor->storage->width };
}

static void write_numbers(const struct tensor *tensor, uint8_t *elements) {
        struct values values = values_of(tensor);

        if (tensor->content.size) {
                protobuf_copy(elements, tensor_verbatim(tensor));
                return;
        }
        if (tensor->repeats) {
                write_repeated(tensor, &values, elements);
                return;
        }
        for (uint32_t i = 0; i < tensor->element_count; i++)
                if (!write_element(&values, elements + (uint64_t)i * tensor->storage->width))
                        return;
}

static void write_strings(const struct tensor *tensor, uint8_t *elements) {
        struct values values = values_of(tensor);
        struct protobuf_field value = { 0 };
        uint64_t *end_offset = (void *)elements;
        uint8_t *bytes = elements + (uint64_t)tensor->element_count * sizeof(uint64_t);
        uint64_t end = 0;

        for (uint32_t i = 0; i < tensor->element_count; i++) {
                if ((i == 0 || !tensor->repeats) && !next_value(&values, &value))
                        return;
                protobuf_copy(bytes + end, value.bytes);
                end += value.bytes.size;
                end_offset[i] = end;
        }
}

void tensor_write_head(const struct tensor *tensor, uint8_t *ret_payload) {
        struct extent_payload *head = (void *)ret_payload;
        uint64_t data_offset = extent_payload_data_offset(tensor->rank);
        uint64_t rank = tensor->rank == EXTENT_RANK_UNKNOWN ? 0 : tensor->rank;

        memset(ret_payload, 0, data_offset);
        head->dtype = tensor->dtype;
        head->rank = tensor->rank;
        head->flags = (tensor->malformed ? EXTENT_PAYLOAD_MALFORMED : 0) |
                      (tensor->repeats ? EXTENT_PAYLOAD_REPEATED : 0);
        head->element_count = tensor->element_count;
        memcpy(head->dimension, tensor->dimension, rank * sizeof(int64_t));
}

void tensor_write(const struct tensor *tensor, uint8_t *ret_payload) {
        uint64_t data_offset = extent_payload_data_offset(tensor->rank);

        tensor_write_head(tensor, ret_payload);
        if (tensor->element_count == 0)
                return;
        if (tensor->storage->width)
                write_numbers(tensor, ret_payload + data_offset);
        else
                write_strings(tensor, ret_payload + data_offset);
}
