/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/events.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/crc32c.h"

static uint8_t *put_varint(uint8_t *at, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                *at++ = (uint8_t)(value | 0x80);
        *at++ = (uint8_t)value;
        return at;
}

static uint8_t *put_bytes(uint8_t *at, uint8_t key, const void *bytes, uint64_t size) {
        *at++ = key;
        at = put_varint(at, size);
        memcpy(at, bytes, size);
        return at + size;
}

/* wall_time (1, double) and step (2, varint) stand in front of each Event. */
static uint8_t *put_head(uint8_t *at, int64_t step) {
        double wall_time = 1714557600.0 + (double)step;

        *at++ = 0x09;
        memcpy(at, &wall_time, 8);
        at += 8;
        *at++ = 0x10;
        return put_varint(at, (uint64_t)step);
}

static void add_record(struct events *events, const uint8_t *payload, uint64_t size) {
        uint8_t *at;
        uint32_t crc;

        if (events->size + size + 16 > events->space) {
                events->space = 2 * events->space + size + 16;
                events->bytes = realloc(events->bytes, events->space);
                MUST(events->bytes);
        }
        events->last_offset = events->size;
        at = events->bytes + events->size;
        memcpy(at, &size, 8);
        crc = crc32c_mask(crc32c(at, 8));
        memcpy(at + 8, &crc, 4);
        memcpy(at + 12, payload, size);
        crc = crc32c_mask(crc32c(payload, size));
        memcpy(at + 12 + size, &crc, 4);
        events->size += size + 16;
}

void events_version(struct events *events) {
        uint8_t payload[64], *at = put_head(payload, 0);

        at = put_bytes(at, 0x1a, "brain.Event:2", 13);
        add_record(events, payload, (uint64_t)(at - payload));
}

/* Summary.Value: tag (1), simple_value (2, float). */
static uint8_t *put_value(uint8_t *at, const char *tag, float number) {
        uint8_t value[256], *end = put_bytes(value, 0x0a, tag, strlen(tag));

        *end++ = 0x15;
        memcpy(end, &number, 4);
        return put_bytes(at, 0x0a, value, (uint64_t)(end + 4 - value));
}

void events_scalar(struct events *events, int64_t step, const char *tag, float number) {
        uint8_t summary[300], payload[400], *end = put_value(summary, tag, number),
                                            *at = put_head(payload, step);

        at = put_bytes(at, 0x2a, summary, (uint64_t)(end - summary));
        add_record(events, payload, (uint64_t)(at - payload));
}

void events_scalars(struct events *events, int64_t step, const char *tag, unsigned count) {
        CLEANUP(freep) uint8_t *summary = malloc(count * (strlen(tag) + 16ull) + 16);
        CLEANUP(freep) uint8_t *payload = malloc(count * (strlen(tag) + 16ull) + 64);
        uint8_t *end = summary, *at = put_head(payload, step);

        for (unsigned i = 0; i < count; i++)
                end = put_value(end, tag, (float)i);
        at = put_bytes(at, 0x2a, summary, (uint64_t)(end - summary));
        add_record(events, payload, (uint64_t)(at - payload));
}

/* Summary.Value: tag (1), tensor (8). */
void events_tensor(struct events *events, int64_t step, const char *tag, const uint8_t *tensor,
                   uint64_t size) {
        CLEANUP(freep) uint8_t *value = malloc(size + 512);
        CLEANUP(freep) uint8_t *summary = malloc(size + 512);
        CLEANUP(freep) uint8_t *payload = malloc(size + 1024);
        uint8_t *end, *at;

        at = put_bytes(value, 0x0a, tag, strlen(tag));
        at = put_bytes(at, 0x42, tensor, size);
        end = put_bytes(summary, 0x0a, value, (uint64_t)(at - value));
        at = put_head(payload, step);
        at = put_bytes(at, 0x2a, summary, (uint64_t)(end - summary));
        add_record(events, payload, (uint64_t)(at - payload));
}

/* TensorProto: dtype (1) DT_STRING = 7, shape (2) empty, string_val (8). */
void events_string(struct events *events, int64_t step, const char *tag, uint64_t bytes) {
        CLEANUP(freep) uint8_t *text = calloc(1, bytes + 1);
        CLEANUP(freep) uint8_t *tensor = malloc(bytes + 64);
        uint8_t *end = tensor;

        memset(text, 's', bytes);
        *end++ = 0x08;
        *end++ = 7;
        end = put_bytes(end, 0x12, "", 0);
        end = put_bytes(end, 0x42, text, bytes);
        events_tensor(events, step, tag, tensor, (uint64_t)(end - tensor));
}

/* Summary.Value: tag (1), tensor (8) as above, metadata (9) with plugin_data (1): plugin_name (1). */
void events_described(struct events *events, int64_t step, const char *tag, const char *plugin) {
        static const uint8_t tensor[] = { 0x08, 7, 0x12, 4, 0x12, 2, 0x08, 1, 0x42, 1, 's' };
        uint8_t data[100], metadata[120], value[300], summary[310], payload[400];
        uint8_t *end = put_bytes(data, 0x0a, plugin, strlen(plugin)), *at;

        end = put_bytes(metadata, 0x0a, data, (uint64_t)(end - data));
        at = put_bytes(value, 0x0a, tag, strlen(tag));
        at = put_bytes(at, 0x42, tensor, sizeof(tensor));
        at = put_bytes(at, 0x4a, metadata, (uint64_t)(end - metadata));
        end = put_bytes(summary, 0x0a, value, (uint64_t)(at - value));
        at = put_head(payload, step);
        at = put_bytes(at, 0x2a, summary, (uint64_t)(end - summary));
        add_record(events, payload, (uint64_t)(at - payload));
}

void events_free(struct events *events) {
        free(events->bytes);
        *events = (struct events){ 0 };
}
