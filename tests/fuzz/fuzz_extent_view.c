/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an extent, read as a client does: every record, name and element. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/extent_view.h"
#include "common/meaning.h"
#include "common/metadata.h"

static uint64_t sum;

static void touch(struct extent_string string) {
        for (uint64_t i = 0; i < string.size; i++)
                sum += string.bytes[i];
}

static void read_payload(const struct extent_view *view, const struct extent_record *record) {
        struct extent_payload_view payload;

        if (extent_view_payload(view, record, &payload))
                return;
        for (uint32_t i = 0; i < payload.rank; i++)
                sum += (uint64_t)payload.dimension[i];
        touch((struct extent_string){ payload.elements, payload.elements_size });
        for (uint32_t i = 0; payload.end_offset && i < payload.element_count; i++)
                touch(extent_payload_string(&payload, i));
}

/* Of every class, and of the plugins that rules name. */
static void read_meaning(const struct extent_view *view, const struct extent_record *record) {
        static const char *const plugins[] = { "audio", "graph_keras_model", "" };
        struct extent_payload_view payload;
        bool has_payload = extent_view_payload(view, record, &payload) == 0;

        for (int class = EXTENT_CLASS_UNKNOWN; class <= EXTENT_CLASS_BLOBS; class ++) {
                for (size_t i = 0; i < ARRAY_SIZE(plugins); i++) {
                        struct extent_string plugin = { (const uint8_t *)plugins[i],
                                                        strlen(plugins[i]) };
                        struct meaning meaning;

                        meaning_of(record, has_payload ? &payload : NULL, (enum extent_class) class,
                                   plugin, &meaning);
                        sum += meaning.bits;
                        for (uint32_t k = 0; k < meaning.blob_count; k++)
                                touch(extent_payload_string(&payload, k * meaning.blob_step));
                }
        }
}

static void read_record(const struct extent_view *view, const struct extent_record *record) {
        const struct extent_series *series = extent_view_series_of(view, record);
        struct metadata metadata = { 0 };

        if (series) {
                touch(extent_view_tag(view, series));
                if (metadata_update(&metadata, view, series)) {
                        touch(metadata.plugin);
                        touch(metadata.content);
                        touch(metadata.display_name);
                        touch(metadata.description);
                }
        }
        read_payload(view, record);
        if (record->kind != EXTENT_KIND_MARK)
                read_meaning(view, record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(freep) uint8_t *image = NULL;
        struct extent_view view;

        if (size > 65536 || posix_memalign((void **)&image, 64, size + 1))
                return 0;
        memcpy(image, data, size);
        if (extent_view_init(&view, image, size))
                return 0;
        touch(extent_view_run_name(&view));
        touch(extent_view_file_path(&view));
        sum += extent_view_is_intact(&view);
        for (uint32_t i = 0; i < view.record_count; i++)
                read_record(&view, extent_view_record(&view, i));
        return 0;
}
