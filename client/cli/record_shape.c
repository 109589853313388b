/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/record_shape.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/cli/dtype.h"
#include "common/base.h"

static bool is_graph(struct hr_text plugin) {
        static const char *const names[] = { "graph_run_metadata", "graph_run_metadata_graph",
                                             "graph_keras_model" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                if (strcmp(plugin.bytes, names[i]) == 0)
                        return true;
        }
        return false;
}

/*
 * TensorBoard takes rank-1 strings for blobs, audio with a label behind each, and one string alone
 * for a graph. 0: no blobs.
 */
static uint32_t blob_step(const struct hr_payload *payload, const struct hr_series *series) {
        if (payload->dtype != DTYPE_STRING || payload->malformed || !payload->rank_known)
                return 0;
        if (payload->rank == 1)
                return 1;
        if (payload->rank == 2 && payload->shape[1] == 2 &&
            strcmp(series->plugin.bytes, "audio") == 0)
                return 2;
        return payload->rank == 0 && payload->element_count == 1 && is_graph(series->plugin) ? 1
                                                                                             : 0;
}

static void reverse(uint8_t *out, const void *bytes, size_t size) {
        const uint8_t *at = bytes;

        for (size_t i = 0; i < size; i++)
                out[i] = at[size - 1 - i];
}

static void take_scalar(struct record_shape *shape, const void *bits, uint32_t size) {
        shape->kind = HR_KIND_SCALAR;
        shape->bits_size = (uint8_t)size;
        reverse(shape->bits, bits, size);
}

/*
 * A number of unknown rank is malformed as a tensor; as a point of a scalar series TensorBoard's
 * data server takes it.
 */
static bool is_one_number(const struct hr_payload *payload) {
        return payload->element_count == 1 && (!payload->malformed || !payload->rank_known) &&
               payload->elements_size == payload->element_bytes && dtype_is_real(payload->dtype);
}

/*
 * The bits of a float that was written twice, as content and as a value: `value` is the one that
 * counts, the payload the other.
 */
static void take_number(struct record_shape *shape, const struct hr_record *record) {
        float number = (float)record->value, element;

        if (shape->payload.dtype == DTYPE_FLOAT) {
                memcpy(&element, shape->payload.elements, sizeof(element));
                if (!(element == number || (isnan(element) && isnan(number)))) {
                        take_scalar(shape, &number, sizeof(number));
                        return;
                }
        }
        take_scalar(shape, shape->payload.elements, shape->payload.element_bytes);
}

int record_shape_init(struct record_shape *shape, struct hr_connection *connection,
                      const struct hr_batch *batch, const struct hr_record *record, bool fetch) {
        const struct hr_series *series = hr_record_series(batch, record);
        int r;

        *shape = (struct record_shape){ .kind = record->kind == HR_KIND_BLOBS ? HR_KIND_BLOBS
                                                                              : HR_KIND_TENSOR,
                                        .blob_step = 1 };
        if (record->kind == HR_KIND_SCALAR) {
                uint32_t size = dtype_bytes(record->dtype);

                take_scalar(shape, &record->payload_offset, size && size <= 8 ? size : 8);
                return 0;
        }
        if (record->flags & HR_RECORD_EXTERNAL && !fetch)
                return 0;
        r = hr_payload(connection, batch, record, &shape->payload);
        if (r)
                return r == -ENOENT ? 0 : r;
        shape->has_payload = true;
        if (record->kind == HR_KIND_BLOBS)
                return 0;
        if (series->data_class == HR_CLASS_SCALAR && is_one_number(&shape->payload)) {
                take_number(shape, record);
        } else if (series->data_class == HR_CLASS_BLOBS && blob_step(&shape->payload, series)) {
                shape->kind = HR_KIND_BLOBS;
                shape->blob_step = blob_step(&shape->payload, series);
        }
        return 0;
}

bool record_shape_needs_bits(const struct hr_record *record) {
        return isnan(record->value) || record->dtype == DTYPE_INT64 ||
               record->dtype == DTYPE_UINT64;
}

bool record_shape_is_number(const struct record_shape *shape) {
        const struct hr_payload *payload = &shape->payload;

        return shape->has_payload && !payload->malformed && payload->element_count == 1 &&
               dtype_is_real(payload->dtype) && payload->dtype != DTYPE_BFLOAT16 &&
               payload->dtype != DTYPE_HALF && payload->elements_size == payload->element_bytes;
}

uint32_t record_shape_blob_count(const struct record_shape *shape) {
        return (shape->payload.element_count + shape->blob_step - 1) / shape->blob_step;
}
