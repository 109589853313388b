/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the message: how many buckets there are, and what is in them. */
#include "daemon/decode/histogram.h"

#include <string.h>

#include "common/tensor_type.h"
#include "daemon/decode/protobuf.h"

#define HISTOGRAM_DEPTH 3

#define MIN PROTOBUF_KEY(1, PROTOBUF_FIXED64)
#define MAX PROTOBUF_KEY(2, PROTOBUF_FIXED64)
#define LIMIT 6
#define BUCKET 7

/* Numbers of one field, one after the other: packed, or one alone. */
struct numbers {
        const uint8_t *at;
        uint64_t count;
};

/* True if the field holds some of these numbers. */
static bool numbers_of(const struct protobuf_field *field, uint32_t number,
                       struct numbers *ret_numbers) {
        if (field->key == PROTOBUF_KEY(number, PROTOBUF_BYTES))
                *ret_numbers = (struct numbers){ field->bytes.at,
                                                 field->bytes.size / sizeof(double) };
        else if (field->key == PROTOBUF_KEY(number, PROTOBUF_FIXED64))
                *ret_numbers = (struct numbers){ (const void *)&field->value, 1 };
        else
                return false;
        return true;
}

bool histogram_read(const struct event_parts *parts, struct histogram *ret_histogram) {
        struct event_parts rest = *parts;
        uint64_t limits = 0, buckets = 0;
        struct protobuf_field field;
        struct protobuf_bytes part;
        struct numbers numbers;

        *ret_histogram = (struct histogram){ .parts = *parts };
        while (event_parts_next(&rest, &part)) {
                struct protobuf_reader reader = protobuf_reader_of(part);

                while (protobuf_next(&reader, HISTOGRAM_DEPTH, &field)) {
                        if (field.key == MIN)
                                memcpy(&ret_histogram->min, &field.value, sizeof(double));
                        else if (field.key == MAX)
                                memcpy(&ret_histogram->max, &field.value, sizeof(double));
                        else if (numbers_of(&field, LIMIT, &numbers))
                                limits += numbers.count;
                        else if (numbers_of(&field, BUCKET, &numbers))
                                buckets += numbers.count;
                }
        }
        if (limits != buckets || buckets > UINT32_MAX / HISTOGRAM_COLUMNS)
                return false;
        ret_histogram->bucket_count = (uint32_t)buckets;
        ret_histogram->payload_bytes = extent_payload_data_offset(2) +
                                       buckets * HISTOGRAM_COLUMNS * sizeof(double);
        return true;
}

/* Numbers into every third place. Returns the place behind the last. */
static double *put_column(double *place, struct numbers numbers) {
        for (uint64_t i = 0; i < numbers.count; i++, place += HISTOGRAM_COLUMNS)
                memcpy(place, numbers.at + i * sizeof(double), sizeof(double));
        return place;
}

static void put_columns(const struct histogram *histogram, double *row) {
        struct event_parts rest = histogram->parts;
        double *right = row + 1, *count = row + 2;
        struct protobuf_field field;
        struct protobuf_bytes part;
        struct numbers numbers;

        while (event_parts_next(&rest, &part)) {
                struct protobuf_reader reader = protobuf_reader_of(part);

                while (protobuf_next(&reader, HISTOGRAM_DEPTH, &field)) {
                        if (numbers_of(&field, LIMIT, &numbers))
                                right = put_column(right, numbers);
                        else if (numbers_of(&field, BUCKET, &numbers))
                                count = put_column(count, numbers);
                }
        }
}

void histogram_write(const struct histogram *histogram, uint8_t *ret_payload) {
        struct extent_payload *head = (void *)ret_payload;
        uint64_t data_offset = extent_payload_data_offset(2);
        double *row = (void *)(ret_payload + data_offset), left = histogram->min;
        uint32_t count = histogram->bucket_count;

        memset(ret_payload, 0, data_offset);
        head->dtype = DT_DOUBLE;
        head->rank = 2;
        head->element_count = count * HISTOGRAM_COLUMNS;
        head->dimension[0] = count;
        head->dimension[1] = HISTOGRAM_COLUMNS;
        if (count == 0)
                return;
        put_columns(histogram, row);
        row[(count - 1) * HISTOGRAM_COLUMNS + 1] = histogram->max;
        for (uint32_t i = 0; i < count; i++, row += HISTOGRAM_COLUMNS) {
                row[0] = left;
                left = row[1];
        }
}
