/* SPDX-License-Identifier: Apache-2.0 */
/* docs/TENSORBOARD.md says what each kind of value becomes. */
#include "daemon/decode/payload.h"

#include <string.h>

#include "common/tensor_type.h"

static void plan_scalar(const struct event_value *value, struct payload *payload) {
        float number;

        memcpy(&number, &value->simple_value, sizeof(number));
        payload->kind = EXTENT_KIND_SCALAR;
        payload->dtype = DT_FLOAT;
        payload->value = number;
        payload->bits = value->simple_value;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static void write_tensor(const struct payload *payload, uint8_t *memory) {
        if (payload->last.size)
                tensor_write_head(&payload->tensor, memory);
        else
                tensor_write(&payload->tensor, memory);
}

static void plan_tensor(const struct event_value *value, struct payload *payload) {
        tensor_read(&value->parts, &payload->tensor);
        payload->kind = EXTENT_KIND_TENSOR;
        payload->dtype = payload->tensor.dtype;
        payload->flags = (payload->tensor.malformed ? EXTENT_RECORD_MALFORMED : 0) |
                         (payload->tensor.is_number ? EXTENT_RECORD_NUMBER : 0);
        payload->value = payload->tensor.value;
        payload->bytes = payload->tensor.payload_bytes;
        payload->last = tensor_verbatim(&payload->tensor);
        payload->write = write_tensor;
}

static void write_nothing(const struct payload *payload, uint8_t *memory) {
        struct extent_payload *head = (void *)memory;

        memset(memory, 0, payload->bytes);
        head->dtype = payload->dtype;
        head->rank = 1;
}

/* A value with nothing in it is a tensor of no floats: that is how hyperparameters arrive. */
static void plan_nothing(const struct event_value *value, struct payload *payload) {
        (void)value;
        payload->kind = EXTENT_KIND_TENSOR;
        payload->dtype = DT_FLOAT;
        payload->bytes = extent_payload_data_offset(1);
        payload->write = write_nothing;
}

/* ---- Blobs ----------------------------------------------------------------------------------- */

/* Head and end offsets of a string tensor of rank 1. Returns where the strings begin. */
static uint8_t *write_ends(const struct protobuf_bytes *blob, uint32_t count, uint8_t *memory) {
        uint64_t data_offset = extent_payload_data_offset(1), end = 0;
        struct extent_payload *head = (void *)memory;
        uint64_t *end_offset = (void *)(memory + data_offset);

        memset(memory, 0, data_offset);
        head->dtype = DT_STRING;
        head->rank = 1;
        head->element_count = count;
        head->dimension[0] = count;
        for (uint32_t i = 0; i < count; i++)
                end_offset[i] = end += blob[i].size;
        return (uint8_t *)(end_offset + count);
}

static void write_blobs(const struct payload *payload, uint8_t *memory) {
        const struct payload_blobs *blobs = &payload->blobs;
        uint8_t *at = write_ends(blobs->blob, blobs->count, memory);

        for (uint32_t i = 0; i + 1 < blobs->count; at += blobs->blob[i++].size)
                protobuf_copy(at, blobs->blob[i]);
}

static void begin_blobs(struct payload *payload) {
        payload->kind = EXTENT_KIND_BLOBS;
        payload->dtype = DT_STRING;
        payload->bytes = extent_payload_data_offset(1);
        payload->blobs.count = 0;
        payload->write = write_blobs;
}

/* The one that is added last is not copied by write_blobs(). */
static void add_blob(struct payload *payload, struct protobuf_bytes bytes) {
        payload->blobs.blob[payload->blobs.count++] = bytes;
        payload->last = bytes;
        payload->bytes += sizeof(uint64_t) + bytes.size;
}

static void add_number(struct payload *payload, int32_t number) {
        char *text = payload->blobs.number[payload->blobs.count];
        int size = snprintf(text, sizeof(payload->blobs.number[0]), "%d", number);

        add_blob(payload, (struct protobuf_bytes){ (const uint8_t *)text, (uint64_t)size });
}

static void plan_blob(const struct event_value *value, struct payload *payload) {
        begin_blobs(payload);
        add_blob(payload, value->data);
}

static void plan_image(const struct event_value *value, struct payload *payload) {
        struct media image;

        media_read_image(&value->parts, &image);
        begin_blobs(payload);
        add_number(payload, image.width);
        add_number(payload, image.height);
        add_blob(payload, image.encoded);
        payload->flags = EXTENT_RECORD_CONVERTED;
}

static void plan_audio(const struct event_value *value, struct payload *payload) {
        struct media audio;

        media_read_audio(&value->parts, &audio);
        begin_blobs(payload);
        add_blob(payload, audio.encoded);
        payload->flags = EXTENT_RECORD_CONVERTED;
}

static void plan_old_histogram(const struct event_value *value, struct payload *payload) {
        plan_blob(value, payload);
        payload->flags = EXTENT_RECORD_CARRIED;
}

/* ---- Histograms ------------------------------------------------------------------------------ */

static void write_histogram(const struct payload *payload, uint8_t *memory) {
        histogram_write(&payload->histogram, memory);
}

/* The bytes of the message, joined: the lists of a histogram that do not fit stay as they are. */
static void write_message(const struct payload *payload, uint8_t *memory) {
        struct protobuf_bytes whole = { NULL, event_value_message_size(payload->from) };

        event_value_message_copy(payload->from, write_ends(&whole, 1, memory));
}

static void plan_message(const struct event_value *value, struct payload *payload) {
        payload->kind = EXTENT_KIND_BLOBS;
        payload->dtype = DT_STRING;
        payload->flags = EXTENT_RECORD_CARRIED;
        payload->bytes = extent_payload_data_offset(1) + sizeof(uint64_t) +
                         event_value_message_size(value);
        payload->write = write_message;
}

static void plan_histogram(const struct event_value *value, struct payload *payload) {
        if (!histogram_read(&value->parts, &payload->histogram)) {
                plan_message(value, payload);
                return;
        }
        payload->kind = EXTENT_KIND_TENSOR;
        payload->dtype = DT_DOUBLE;
        payload->flags = EXTENT_RECORD_CONVERTED;
        payload->bytes = payload->histogram.payload_bytes;
        payload->write = write_histogram;
}

static void (*const plans[])(const struct event_value *value, struct payload *payload) = {
        [EXTENT_WRITTEN_NONE] = plan_nothing,
        [EXTENT_WRITTEN_SIMPLE_VALUE] = plan_scalar,
        [EXTENT_WRITTEN_TENSOR] = plan_tensor,
        [EXTENT_WRITTEN_IMAGE] = plan_image,
        [EXTENT_WRITTEN_HISTOGRAM] = plan_histogram,
        [EXTENT_WRITTEN_AUDIO] = plan_audio,
        [EXTENT_WRITTEN_OLD_HISTOGRAM] = plan_old_histogram,
        [EXTENT_WRITTEN_GRAPH] = plan_blob,
        [EXTENT_WRITTEN_RUN_METADATA] = plan_blob,
};

void payload_plan(const struct event_value *value, struct payload *ret_payload) {
        ret_payload->flags = 0;
        ret_payload->value = 0;
        ret_payload->bits = 0;
        ret_payload->bytes = 0;
        ret_payload->last.size = 0;
        ret_payload->from = value;
        plans[value->written_as](value, ret_payload);
}

void payload_write_first(const struct payload *payload, uint8_t *ret_memory) {
        payload->write(payload, ret_memory);
}

void payload_write(const struct payload *payload, uint8_t *ret_memory) {
        payload->write(payload, ret_memory);
        protobuf_copy(ret_memory + payload->bytes - payload->last.size, payload->last);
}
