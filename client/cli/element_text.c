/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/element_text.h"

#include <math.h>
#include <string.h>

#include "common/base.h"
#include "common/tensor_type.h"

static char *put_float(char *out, const void *element) {
        float value;

        memcpy(&value, element, sizeof(value));
        return json_line_double(out, value);
}

static char *put_double(char *out, const void *element) {
        double value;

        memcpy(&value, element, sizeof(value));
        return json_line_double(out, value);
}

static char *put_bfloat16(char *out, const void *element) {
        uint16_t half;
        uint32_t bits;
        float value;

        memcpy(&half, element, sizeof(half));
        bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof(value));
        return json_line_double(out, value);
}

static char *put_half(char *out, const void *element) {
        uint16_t bits;
        int exponent;
        double value;

        memcpy(&bits, element, sizeof(bits));
        exponent = bits >> 10 & 31;
        if (exponent == 31)
                value = bits & 1023 ? NAN : INFINITY;
        else if (exponent == 0)
                value = ldexp(bits & 1023, -24);
        else
                value = ldexp((bits & 1023) | 1024, exponent - 25);
        return json_line_double(out, bits >> 15 ? -value : value);
}

#define PUT_WHOLE(name, type, put) \
        static char *name(char *out, const void *element) { \
                type value; \
\
                memcpy(&value, element, sizeof(value)); \
                return put(out, value); \
        }

PUT_WHOLE(put_i8, int8_t, json_line_signed)
PUT_WHOLE(put_i16, int16_t, json_line_signed)
PUT_WHOLE(put_i32, int32_t, json_line_signed)
PUT_WHOLE(put_i64, int64_t, json_line_signed)
PUT_WHOLE(put_u8, uint8_t, json_line_unsigned)
PUT_WHOLE(put_u16, uint16_t, json_line_unsigned)
PUT_WHOLE(put_u32, uint32_t, json_line_unsigned)
PUT_WHOLE(put_u64, uint64_t, json_line_unsigned)

static char *put_bool(char *out, const void *element) {
        return stpcpy(out, *(const uint8_t *)element ? "true" : "false");
}

/* Types that are not here are written as bytes. */
static char *(*const writers[])(char *out, const void *element) = {
        [DT_FLOAT] = put_float,       [DT_DOUBLE] = put_double, [DT_INT32] = put_i32,
        [DT_UINT8] = put_u8,          [DT_INT16] = put_i16,     [DT_INT8] = put_i8,
        [DT_COMPLEX64] = put_float,   [DT_INT64] = put_i64,     [DT_BOOL] = put_bool,
        [DT_QINT8] = put_i8,          [DT_QUINT8] = put_u8,     [DT_QINT32] = put_i32,
        [DT_BFLOAT16] = put_bfloat16, [DT_QINT16] = put_i16,    [DT_QUINT16] = put_u16,
        [DT_UINT16] = put_u16,        [DT_HALF] = put_half,     [DT_COMPLEX128] = put_double,
        [DT_UINT32] = put_u32,        [DT_UINT64] = put_u64,
};

char *element_text_put(char *out, uint8_t dtype, const void *element) {
        uint8_t type = tensor_type_base(dtype);

        if (type >= ARRAY_SIZE(writers) || !writers[type])
                return put_u8(out, element);
        if (type != DT_COMPLEX64 && type != DT_COMPLEX128)
                return writers[type](out, element);
        *out++ = '[';
        out = writers[type](out, element);
        *out++ = ',';
        out = writers[type](out, (const uint8_t *)element + tensor_type_bytes(type) / 2);
        *out++ = ']';
        return out;
}
