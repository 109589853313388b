/* SPDX-License-Identifier: Apache-2.0 */
#include "common/meaning.h"

#include <math.h>
#include <string.h>

#include "common/base.h"
#include "common/tensor_type.h"

/* ---- Numbers --------------------------------------------------------------------------------- */

static uint64_t first_element(const struct extent_payload_view *payload) {
        uint64_t bits = 0;

        memcpy(&bits, payload->elements, payload->element_bytes);
        return bits;
}

static bool is_same_float(uint32_t bits, double number) {
        float value;

        memcpy(&value, &bits, sizeof(value));
        return value == (float)number || (isnan(value) && isnan(number));
}

/*
 * The payload has the exact bits, but of a float that was written twice, as content and as a value:
 * `value` is the one that counts, the payload the other.
 */
static void take_number(const struct extent_record *record,
                        const struct extent_payload_view *payload, struct meaning *meaning) {
        float number = (float)record->value;
        uint32_t bits;
        bool is_float = tensor_type_base(record->dtype) == DT_FLOAT;

        meaning->kind = EXTENT_KIND_SCALAR;
        if (payload && payload->element_count == 1 && payload->element_bytes <= 8 &&
            (!is_float || is_same_float((uint32_t)first_element(payload), record->value))) {
                meaning->bits_bytes = (uint8_t)payload->element_bytes;
                meaning->bits = first_element(payload);
        } else if (is_float) {
                memcpy(&bits, &number, sizeof(bits));
                meaning->bits_bytes = sizeof(bits);
                meaning->bits = bits;
        }
}

/* ---- Blobs ----------------------------------------------------------------------------------- */

static bool is_plugin(struct extent_string plugin, const char *name) {
        return plugin.size == strlen(name) && memcmp(plugin.bytes, name, plugin.size) == 0;
}

static bool is_graph(struct extent_string plugin) {
        return is_plugin(plugin, "graph_run_metadata") ||
               is_plugin(plugin, "graph_run_metadata_graph") ||
               is_plugin(plugin, "graph_keras_model");
}

/*
 * Strings of rank 1 are blobs, whether or not they are as many as the shape says; those of audio
 * may have a label behind each; one string alone is a graph. 0: no blobs.
 */
static uint8_t blob_step(const struct extent_payload_view *payload, struct extent_string plugin) {
        if (payload->dtype != DT_STRING)
                return 0;
        if (payload->rank == 1)
                return 1;
        if (payload->rank == 2 && payload->dimension[1] == 2 && is_plugin(plugin, "audio"))
                return 2;
        return payload->rank == 0 && payload->element_count == 1 && is_graph(plugin) ? 1 : 0;
}

/* One string that stands for a whole shape is one blob. What is no strings has none. */
static uint32_t blob_count(const struct extent_payload_view *payload, uint8_t step) {
        if (payload->element_bytes > 0)
                return 0;
        if (payload->repeated && payload->element_count > 0)
                return 1;
        return payload->element_count / step + (payload->element_count % step != 0);
}

static void take_blobs(const struct extent_record *record,
                       const struct extent_payload_view *payload, struct extent_string plugin,
                       struct meaning *meaning) {
        uint8_t step = 1;

        if (record->kind == EXTENT_KIND_TENSOR) {
                step = payload ? blob_step(payload, plugin) : record->dtype == DT_STRING;
                if (step == 0)
                        return;
        }
        meaning->kind = EXTENT_KIND_BLOBS;
        meaning->blob_step = step;
        meaning->blob_count = payload ? blob_count(payload, step) : 0;
}

/* ---- All ------------------------------------------------------------------------------------- */

static bool is_of_class(const struct extent_record *record, uint8_t kind,
                        enum extent_class data_class) {
        static const uint8_t kinds[] = {
                [EXTENT_CLASS_SCALAR] = EXTENT_KIND_SCALAR,
                [EXTENT_CLASS_TENSOR] = EXTENT_KIND_TENSOR,
                [EXTENT_CLASS_BLOBS] = EXTENT_KIND_BLOBS,
        };

        return data_class < ARRAY_SIZE(kinds) && kinds[data_class] == kind &&
               !(record->flags & EXTENT_RECORD_CARRIED);
}

void meaning_of(const struct extent_record *record, const struct extent_payload_view *payload,
                enum extent_class data_class, struct extent_string plugin,
                struct meaning *ret_meaning) {
        *ret_meaning = (struct meaning){ .kind = record->kind, .blob_step = 1 };
        if (record->kind == EXTENT_KIND_SCALAR) {
                uint32_t bytes = tensor_type_bytes(record->dtype);

                ret_meaning->bits = record->payload_offset;
                ret_meaning->bits_bytes = bytes && bytes <= 8 ? (uint8_t)bytes : 8;
        } else if (record->kind == EXTENT_KIND_BLOBS ||
                   (record->kind == EXTENT_KIND_TENSOR && data_class == EXTENT_CLASS_BLOBS)) {
                take_blobs(record, payload, plugin, ret_meaning);
        } else if (data_class == EXTENT_CLASS_SCALAR && record->flags & EXTENT_RECORD_NUMBER) {
                take_number(record, payload, ret_meaning);
        }
        ret_meaning->fits = is_of_class(record, ret_meaning->kind, data_class);
}
