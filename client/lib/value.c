/* SPDX-License-Identifier: Apache-2.0 */
/* Values of records, in the form that the class of their series gives them. */
#include <errno.h>

#include "client/include/headrace.h"
#include "client/lib/link.h"
#include "client/lib/payload.h"
#include "common/meaning.h"

int hr_value(struct hr_connection *connection, const struct hr_batch *batch,
             const struct hr_record *record, bool fetch, struct hr_value *ret_value) {
        const struct hr_series *series = hr_record_series(batch, record);
        struct extent_payload_view payload;
        struct meaning meaning;
        bool has_payload = false;
        int r;

        if (!series)
                return link_fail(connection, -ENOENT, "the record has no value");
        if (record->payload_size && record->kind != HR_KIND_SCALAR &&
            (fetch || !(record->flags & HR_RECORD_EXTERNAL))) {
                r = payload_find(connection, batch, record, &payload);
                if (r)
                        return r;
                has_payload = true;
        }
        meaning_of((const struct extent_record *)record, has_payload ? &payload : NULL,
                   (enum extent_class)series->data_class,
                   (struct extent_string){ (const uint8_t *)series->plugin.bytes,
                                           series->plugin.size },
                   &meaning);
        *ret_value = (struct hr_value){
                .kind = meaning.kind,
                .fits = meaning.fits,
                .has_payload = has_payload,
                .bits_bytes = meaning.bits_bytes,
                .blob_count = meaning.blob_count,
                .number = record->value,
                .bits = meaning.bits,
                .blob_step_ = meaning.blob_step,
        };
        if (has_payload)
                payload_show(&payload, &ret_value->payload);
        return 0;
}

struct hr_text hr_value_blob(const struct hr_value *value, uint32_t index) {
        if (index >= value->blob_count)
                return (struct hr_text){ NULL, 0 };
        return hr_payload_string(&value->payload, index * value->blob_step_);
}
