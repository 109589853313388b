/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/decode/payload.h"

#include <string.h>

#define DT_FLOAT 1
#define DT_STRING 7

static void plan_scalar(const struct event_value *value, struct payload *payload) {
        float number;

        memcpy(&number, &value->simple_value, sizeof(number));
        payload->kind = EXTENT_KIND_SCALAR;
        payload->dtype = DT_FLOAT;
        payload->value = number;
        payload->bits = value->simple_value;
}

static void plan_tensor(const struct event_value *value, struct payload *payload) {
        tensor_read(&value->parts, &payload->tensor);
        payload->kind = EXTENT_KIND_TENSOR;
        payload->dtype = payload->tensor.dtype;
        payload->flags = payload->tensor.malformed ? EXTENT_RECORD_MALFORMED : 0;
        payload->value = payload->tensor.value;
        payload->bytes = payload->tensor.payload_bytes;
}

/* A value with nothing in it is a tensor of no floats: that is how hyperparameters arrive. */
static void plan_nothing(const struct event_value *value, struct payload *payload) {
        (void)value;
        payload->kind = EXTENT_KIND_TENSOR;
        payload->dtype = DT_FLOAT;
        payload->bytes = extent_payload_data_offset(1);
}

static void plan_blob(const struct event_value *value, struct payload *payload) {
        payload->kind = EXTENT_KIND_BLOBS;
        payload->dtype = DT_STRING;
        payload->bytes = extent_payload_data_offset(1) + sizeof(uint64_t) +
                         event_value_blob_size(value);
}

static void plan_carried(const struct event_value *value, struct payload *payload) {
        plan_blob(value, payload);
        payload->flags = EXTENT_RECORD_CARRIED;
}

static void (*const plans[])(const struct event_value *value, struct payload *payload) = {
        [EXTENT_WRITTEN_NONE] = plan_nothing,          [EXTENT_WRITTEN_SIMPLE_VALUE] = plan_scalar,
        [EXTENT_WRITTEN_TENSOR] = plan_tensor,         [EXTENT_WRITTEN_IMAGE] = plan_carried,
        [EXTENT_WRITTEN_HISTOGRAM] = plan_carried,     [EXTENT_WRITTEN_AUDIO] = plan_carried,
        [EXTENT_WRITTEN_OLD_HISTOGRAM] = plan_carried, [EXTENT_WRITTEN_GRAPH] = plan_blob,
        [EXTENT_WRITTEN_RUN_METADATA] = plan_blob,
};

void payload_plan(const struct event_value *value, struct payload *ret_payload) {
        ret_payload->flags = 0;
        ret_payload->value = 0;
        ret_payload->bits = 0;
        ret_payload->bytes = 0;
        ret_payload->from = value;
        plans[value->written_as](value, ret_payload);
}

static void write_blob(const struct payload *payload, struct extent_payload *head,
                       uint8_t *elements) {
        uint64_t *end_offset = (void *)elements;

        head->element_count = 1;
        head->dimension[0] = 1;
        *end_offset = payload->bytes - extent_payload_data_offset(1) - sizeof(uint64_t);
        event_value_blob_copy(payload->from, elements + sizeof(uint64_t));
}

void payload_write(const struct payload *payload, uint8_t *ret_memory) {
        struct extent_payload *head = (void *)ret_memory;
        uint64_t data_offset = extent_payload_data_offset(1);

        if (payload->from->written_as == EXTENT_WRITTEN_TENSOR) {
                tensor_write(&payload->tensor, ret_memory);
                return;
        }
        memset(ret_memory, 0, data_offset);
        head->dtype = payload->dtype;
        head->rank = 1;
        if (payload->kind == EXTENT_KIND_BLOBS)
                write_blob(payload, head, ret_memory + data_offset);
}
