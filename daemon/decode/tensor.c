/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three passes over the message: its type, shape and content; how many values stand in the field
 * that the type uses; the values. tensor_content wins over typed fields; a single typed value fills
 * the shape.
 */
#include "daemon/decode/tensor.h"

#include <math.h>
#include <string.h>

#include "daemon/decode/protobuf.h"

#define TENSOR_DEPTH 3

#define DT_FLOAT 1

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

static const struct tensor_storage storages[] = {
        [1] = { 5, PROTOBUF_FIXED32, 4, 1, NUMBER_FLOAT },
        [2] = { 6, PROTOBUF_FIXED64, 8, 1, NUMBER_FLOAT },
        [3] = { 7, PROTOBUF_VARINT, 4, 1, NUMBER_SIGNED },
        [4] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_UNSIGNED },
        [5] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_SIGNED },
        [6] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_SIGNED },
        [7] = { 8, PROTOBUF_BYTES, 0, 1, NUMBER_NONE },
        [8] = { 9, PROTOBUF_FIXED32, 8, 2, NUMBER_NONE },
        [9] = { 10, PROTOBUF_VARINT, 8, 1, NUMBER_SIGNED },
        [10] = { 11, PROTOBUF_VARINT, 1, 1, NUMBER_BOOL },
        [11] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_SIGNED },
        [12] = { 7, PROTOBUF_VARINT, 1, 1, NUMBER_UNSIGNED },
        [13] = { 7, PROTOBUF_VARINT, 4, 1, NUMBER_SIGNED },
        [14] = { 13, PROTOBUF_VARINT, 2, 1, NUMBER_BFLOAT16 },
        [15] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_SIGNED },
        [16] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_UNSIGNED },
        [17] = { 7, PROTOBUF_VARINT, 2, 1, NUMBER_UNSIGNED },
        [18] = { 12, PROTOBUF_FIXED64, 16, 2, NUMBER_NONE },
        [19] = { 13, PROTOBUF_VARINT, 2, 1, NUMBER_HALF },
        [22] = { 16, PROTOBUF_VARINT, 4, 1, NUMBER_UNSIGNED },
        [23] = { 17, PROTOBUF_VARINT, 8, 1, NUMBER_UNSIGNED },
};

static const struct tensor_storage *storage_of(uint32_t dtype) {
        return dtype < ARRAY_SIZE(storages) && storages[dtype].number ? &storages[dtype] : NULL;
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
        return (struct values){ .storage = tensor->storage, .parts = tensor->parts };
}

static bool next_packed(struct values *values, struct protobuf_field *value) {
        if (values->packed.at >= values->packed.end)
                return false;
        if (values->storage->type == PROTOBUF_VARINT)
                return protobuf_varint(&values->packed, &value->value);
        return protobuf_fixed(&values->packed, values->storage->type == PROTOBUF_FIXED32 ? 4 : 8,
                              &value->value);
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

/* One value for the whole shape, as far as that can be written. */
static bool repeat(struct tensor *tensor, uint64_t count) {
        uint64_t each = tensor->storage->width ? tensor->storage->width
                                               : sizeof(uint64_t) + tensor->string_bytes;

        if (count > REPEATED_BYTES_MAX / each)
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

/*
 * True if there are as many elements as the shape says (whatever is there, if the rank is unknown).
 */
static bool find_elements(struct tensor *tensor, const struct shape *shape) {
        uint64_t wanted = shape->zero ? 0 : shape->count;
        uint64_t found;

        if (shape->negative || shape->rank > TENSOR_RANK_MAX ||
            (shape->overflows && !shape->zero) || !tensor->storage)
                return false;
        if (!count_elements(tensor, &found))
                return false;
        if (shape->rank_unknown)
                wanted = found;
        if (wanted > UINT32_MAX)
                return false;
        if (found != wanted && (found != 1 || tensor->content.size || !repeat(tensor, wanted)))
                return false;
        tensor->element_count = (uint32_t)wanted;
        return true;
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
static bool is_number_typed(const struct tensor *tensor) {
        uint64_t unused;

        if (tensor->content.size == 0)
                return true;
        return tensor->dtype == DT_FLOAT &&
               (tensor->rank == 0 || tensor->rank == EXTENT_RANK_UNKNOWN) &&
               count_typed(tensor, &unused) == 1;
}

static void read_number(struct tensor *tensor) {
        struct values values = values_of(tensor);
        uint8_t element[16];
        const uint8_t *from = element;

        if (tensor->element_count != 1 || !tensor->storage->kind)
                return;
        if (!is_number_typed(tensor))
                from = tensor->content.at;
        else if (!write_element(&values, element))
                return;
        tensor->value = number_value(tensor->storage, from);
}

void tensor_read(const struct event_parts *parts, struct tensor *ret_tensor) {
        struct shape shape = { .count = 1 };
        uint32_t dtype;
        bool fits;

        /* Not the dimensions: most tensors have few. */
        memset(ret_tensor, 0, offsetof(struct tensor, dimension));
        ret_tensor->parts = *parts;
        dtype = read_head(*parts, &shape, ret_tensor);
        ret_tensor->dtype = dtype <= UINT8_MAX ? (uint8_t)dtype : 0;
        ret_tensor->rank = shape.rank_unknown || shape.rank > TENSOR_RANK_MAX ? EXTENT_RANK_UNKNOWN
                                                                              : (uint8_t)shape.rank;
        ret_tensor->storage = storage_of(dtype);
        fits = find_elements(ret_tensor, &shape);
        ret_tensor->malformed = !fits || shape.rank_unknown;
        ret_tensor->payload_bytes = extent_payload_data_offset(ret_tensor->rank);
        if (!fits)
                return;
        ret_tensor->payload_bytes += elements_bytes(ret_tensor, ret_tensor->element_count);
        read_number(ret_tensor);
}

static void write_repeated(const struct tensor *tensor, struct values *values, uint8_t *elements) {
        unsigned width = tensor->storage->width;
        uint8_t element[16];

        if (tensor->element_count == 0 || !write_element(values, element))
                return;
        for (uint32_t i = 0; i < tensor->element_count; i++)
                memcpy(elements + (uint64_t)i * width, element, width);
}

static void write_numbers(const struct tensor *tensor, uint8_t *elements) {
        struct values values = values_of(tensor);

        if (tensor->content.size) {
                memcpy(elements, tensor->content.at, tensor->content.size);
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

void tensor_write(const struct tensor *tensor, uint8_t *ret_payload) {
        struct extent_payload *head = (void *)ret_payload;
        uint64_t data_offset = extent_payload_data_offset(tensor->rank);
        uint64_t rank = tensor->rank == EXTENT_RANK_UNKNOWN ? 0 : tensor->rank;

        memset(ret_payload, 0, data_offset);
        head->dtype = tensor->dtype;
        head->rank = tensor->rank;
        head->flags = tensor->malformed ? EXTENT_RECORD_MALFORMED : 0;
        head->element_count = tensor->element_count;
        memcpy(head->dimension, tensor->dimension, rank * sizeof(int64_t));
        if (tensor->element_count == 0)
                return;
        if (tensor->storage->width)
                write_numbers(tensor, ret_payload + data_offset);
        else
                write_strings(tensor, ret_payload + data_offset);
}
