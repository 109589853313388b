/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which fields of TensorBoard's messages hold messages and packed numbers: what a parser looks into
 * before it accepts an Event. All other fields are right by their framing alone. A field of another
 * wire type than its own is an unknown field.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/decode/protobuf.h"

enum event_message {
        EVENT_MESSAGE_VALUE_METADATA, /* SummaryMetadata */
        EVENT_MESSAGE_IMAGE,
        EVENT_MESSAGE_AUDIO,
        EVENT_MESSAGE_HISTOGRAM,
        EVENT_MESSAGE_TENSOR,
        EVENT_MESSAGE_SESSION_LOG,
        EVENT_MESSAGE_LOG_MESSAGE,
        EVENT_MESSAGE_RUN_METADATA, /* TaggedRunMetadata */
        EVENT_MESSAGE_SOURCE_METADATA,
        EVENT_MESSAGE_SHAPE,
        EVENT_MESSAGE_LEAF, /* any message without messages and packed numbers */
        EVENT_MESSAGE_HANDLE,
        EVENT_MESSAGE_HANDLE_SHAPE,
        EVENT_MESSAGE_VARIANT,
};

/* True if a parser would accept these bytes as that message, depth messages deep. */
bool event_schema_accepts(enum event_message message, struct protobuf_bytes bytes, unsigned depth);
