/* SPDX-License-Identifier: Apache-2.0 */
/* Event files that tests make: framing and Events as TensorFlow writes them, field by field. */
#pragma once

#include <stdint.h>

struct events {
        uint8_t *bytes;
        uint64_t size, space;
        uint64_t last_offset; /* of the last TFRecord */
};

void events_version(struct events *events); /* file_version "brain.Event:2" */
void events_scalar(struct events *events, int64_t step, const char *tag, float value);
/* One Event with that many values, of the tag and of steps alike. */
void events_scalars(struct events *events, int64_t step, const char *tag, unsigned count);
/* A value with that TensorProto. */
void events_tensor(struct events *events, int64_t step, const char *tag, const uint8_t *tensor,
                   uint64_t size);
/* A string tensor of one element of that many bytes. */
void events_string(struct events *events, int64_t step, const char *tag, uint64_t bytes);
/* A string tensor of one element, with metadata that names the plugin. */
void events_described(struct events *events, int64_t step, const char *tag, const char *plugin);
void events_free(struct events *events);
