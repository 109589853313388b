/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A legacy HistogramProto as TensorBoard's data server shows it: a tensor of doubles, one row
 * {left, right, count} for each bucket. The edges are the bucket limits; the first left edge is the
 * minimum and the last right edge the maximum. Empty buckets stay. Pure, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/extent_format.h"
#include "daemon/decode/event.h"

#define HISTOGRAM_COLUMNS 3

struct histogram {
        uint32_t bucket_count;
        uint64_t payload_bytes;
        double min, max;
        struct event_parts parts;
};

/*
 * Reads the message that these parts merge to. False: it has not as many limits as buckets (or more
 * than a payload can have), and no such form.
 */
bool histogram_read(const struct event_parts *parts, struct histogram *ret_histogram);

/* Writes payload_bytes of payload. */
void histogram_write(const struct histogram *histogram, uint8_t *ret_payload);
