/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tensor_type.h"

#include <stdio.h>

#include "common/base.h"

static const struct {
        const char *name;
        uint8_t bytes;
        bool is_number;
} types[] = {
        [DT_FLOAT] = { "DT_FLOAT", 4, true },
        [DT_DOUBLE] = { "DT_DOUBLE", 8, true },
        [DT_INT32] = { "DT_INT32", 4, true },
        [DT_UINT8] = { "DT_UINT8", 1, true },
        [DT_INT16] = { "DT_INT16", 2, true },
        [DT_INT8] = { "DT_INT8", 1, true },
        [DT_STRING] = { "DT_STRING", 0, false },
        [DT_COMPLEX64] = { "DT_COMPLEX64", 8, false },
        [DT_INT64] = { "DT_INT64", 8, true },
        [DT_BOOL] = { "DT_BOOL", 1, true },
        [DT_QINT8] = { "DT_QINT8", 1, true },
        [DT_QUINT8] = { "DT_QUINT8", 1, true },
        [DT_QINT32] = { "DT_QINT32", 4, true },
        [DT_BFLOAT16] = { "DT_BFLOAT16", 2, true },
        [DT_QINT16] = { "DT_QINT16", 2, true },
        [DT_QUINT16] = { "DT_QUINT16", 2, true },
        [DT_UINT16] = { "DT_UINT16", 2, true },
        [DT_COMPLEX128] = { "DT_COMPLEX128", 16, false },
        [DT_HALF] = { "DT_HALF", 2, true },
        [DT_RESOURCE] = { "DT_RESOURCE", 0, false },
        [DT_VARIANT] = { "DT_VARIANT", 0, false },
        [DT_UINT32] = { "DT_UINT32", 4, true },
        [DT_UINT64] = { "DT_UINT64", 8, true },
        [DT_FLOAT8_E5M2] = { "DT_FLOAT8_E5M2", 1, false },
        [DT_FLOAT8_E4M3FN] = { "DT_FLOAT8_E4M3FN", 1, false },
        [DT_FLOAT8_E4M3FNUZ] = { "DT_FLOAT8_E4M3FNUZ", 1, false },
        [DT_FLOAT8_E4M3B11FNUZ] = { "DT_FLOAT8_E4M3B11FNUZ", 1, false },
        [DT_FLOAT8_E5M2FNUZ] = { "DT_FLOAT8_E5M2FNUZ", 1, false },
        [DT_INT4] = { "DT_INT4", 1, false },
        [DT_UINT4] = { "DT_UINT4", 1, false },
        [DT_INT2] = { "DT_INT2", 1, false },
        [DT_UINT2] = { "DT_UINT2", 1, false },
        [DT_FLOAT4_E2M1FN] = { "DT_FLOAT4_E2M1FN", 1, false },
};

uint32_t tensor_type_bytes(uint8_t type) {
        uint8_t base = tensor_type_base(type);

        return base < ARRAY_SIZE(types) ? types[base].bytes : 0;
}

bool tensor_type_is_number(uint8_t type) {
        return type < ARRAY_SIZE(types) && types[type].is_number;
}

const char *tensor_type_name(uint8_t type, char ret_text[TENSOR_TYPE_NAME_SIZE]) {
        uint8_t base = tensor_type_base(type);

        if (base >= ARRAY_SIZE(types) || !types[base].name)
                snprintf(ret_text, TENSOR_TYPE_NAME_SIZE, "DT_%u", type);
        else
                snprintf(ret_text, TENSOR_TYPE_NAME_SIZE, "%s%s", types[base].name,
                         base == type ? "" : "_REF");
        return ret_text;
}
