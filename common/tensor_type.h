/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's data types: names, widths, and which of them are numbers. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Values of TensorFlow's enum DataType (types.proto). A reference to a type is DT_REF + it. */
enum tensor_type {
        DT_FLOAT = 1,
        DT_DOUBLE = 2,
        DT_INT32 = 3,
        DT_UINT8 = 4,
        DT_INT16 = 5,
        DT_INT8 = 6,
        DT_STRING = 7,
        DT_COMPLEX64 = 8,
        DT_INT64 = 9,
        DT_BOOL = 10,
        DT_QINT8 = 11,
        DT_QUINT8 = 12,
        DT_QINT32 = 13,
        DT_BFLOAT16 = 14,
        DT_QINT16 = 15,
        DT_QUINT16 = 16,
        DT_UINT16 = 17,
        DT_COMPLEX128 = 18,
        DT_HALF = 19,
        DT_RESOURCE = 20,
        DT_VARIANT = 21,
        DT_UINT32 = 22,
        DT_UINT64 = 23,
        DT_FLOAT8_E5M2 = 24,
        DT_FLOAT8_E4M3FN = 25,
        DT_FLOAT8_E4M3FNUZ = 26,
        DT_FLOAT8_E4M3B11FNUZ = 27,
        DT_FLOAT8_E5M2FNUZ = 28,
        DT_INT4 = 29,
        DT_UINT4 = 30,
        DT_INT2 = 31,
        DT_UINT2 = 32,
        DT_FLOAT4_E2M1FN = 33,
        DT_REF = 100,
};

/* The type that a reference type refers to; any other type as it is. */
static inline uint8_t tensor_type_base(uint8_t type) {
        return type > DT_REF ? type - DT_REF : type;
}

/*
 * Bytes of one element, as in tensor_content: 1 also of the types of less than a byte, as in
 * TensorFlow's memory. 0: strings, resources and variants, whose elements are bytes of any length,
 * and numbers that are no type.
 */
uint32_t tensor_type_bytes(uint8_t type);

/*
 * True if an element is one number that a double can stand for: not complex, not of a few bits, not
 * a reference.
 */
bool tensor_type_is_number(uint8_t type);

#define TENSOR_TYPE_NAME_SIZE 32

/* "DT_FLOAT", "DT_FLOAT_REF"; "DT_34" for a number that is no type. Returns the text. */
const char *tensor_type_name(uint8_t type, char ret_text[TENSOR_TYPE_NAME_SIZE]);
