/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/dtype.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/json_line.h"
#include "common/base.h"

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

static const struct dtype {
        const char *name;
        char *(*put)(char *out, const void *element); /* of one part */
        uint32_t bytes, parts;
} dtypes[] = {
        [DTYPE_FLOAT] = { "DT_FLOAT", put_float, 4, 1 },
        [2] = { "DT_DOUBLE", put_double, 8, 1 },
        [3] = { "DT_INT32", put_i32, 4, 1 },
        [4] = { "DT_UINT8", put_u8, 1, 1 },
        [5] = { "DT_INT16", put_i16, 2, 1 },
        [6] = { "DT_INT8", put_i8, 1, 1 },
        [DTYPE_STRING] = { "DT_STRING", NULL, 0, 0 },
        [8] = { "DT_COMPLEX64", put_float, 8, 2 },
        [DTYPE_INT64] = { "DT_INT64", put_i64, 8, 1 },
        [10] = { "DT_BOOL", put_bool, 1, 1 },
        [11] = { "DT_QINT8", put_i8, 1, 1 },
        [12] = { "DT_QUINT8", put_u8, 1, 1 },
        [13] = { "DT_QINT32", put_i32, 4, 1 },
        [DTYPE_BFLOAT16] = { "DT_BFLOAT16", put_bfloat16, 2, 1 },
        [15] = { "DT_QINT16", put_i16, 2, 1 },
        [16] = { "DT_QUINT16", put_u16, 2, 1 },
        [17] = { "DT_UINT16", put_u16, 2, 1 },
        [18] = { "DT_COMPLEX128", put_double, 16, 2 },
        [DTYPE_HALF] = { "DT_HALF", put_half, 2, 1 },
        [22] = { "DT_UINT32", put_u32, 4, 1 },
        [DTYPE_UINT64] = { "DT_UINT64", put_u64, 8, 1 },
};

static const struct dtype *dtype_find(uint8_t dtype) {
        return dtype < ARRAY_SIZE(dtypes) && dtypes[dtype].name ? &dtypes[dtype] : NULL;
}

const char *dtype_name(uint8_t dtype, char text[DTYPE_NAME_SIZE]) {
        const struct dtype *found = dtype_find(dtype);

        if (found)
                return found->name;
        snprintf(text, DTYPE_NAME_SIZE, "DT_%u", dtype);
        return text;
}

uint32_t dtype_bytes(uint8_t dtype) {
        const struct dtype *found = dtype_find(dtype);

        return found ? found->bytes : 0;
}

bool dtype_is_real(uint8_t dtype) {
        const struct dtype *found = dtype_find(dtype);

        return found && found->parts == 1;
}

char *dtype_put(char *out, uint8_t dtype, const void *element) {
        const struct dtype *found = dtype_find(dtype);

        if (!found || !found->put)
                return stpcpy(out, "null");
        if (found->parts == 1)
                return found->put(out, element);
        *out++ = '[';
        out = found->put(out, element);
        *out++ = ',';
        out = found->put(out, (const uint8_t *)element + found->bytes / 2);
        *out++ = ']';
        return out;
}
