/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metadata.h"

#include <string.h>

#include "common/base.h"

#define TEXT(literal) \
        { (const uint8_t *)(literal), sizeof(literal) - 1 }

/* What a kind of value stands for by itself. */
struct written_kind {
        struct extent_string plugin, content;
        uint8_t data_class;
};

static const struct written_kind written_kinds[] = {
        [EXTENT_WRITTEN_SIMPLE_VALUE] = { TEXT("scalars"), TEXT(""), EXTENT_CLASS_SCALAR },
        /* converted_to_tensor */
        [EXTENT_WRITTEN_IMAGE] = { TEXT("images"), TEXT("\x10\x01"), EXTENT_CLASS_BLOBS },
        [EXTENT_WRITTEN_HISTOGRAM] = { TEXT("histograms"), TEXT(""), EXTENT_CLASS_TENSOR },
        /* converted_to_tensor */
        [EXTENT_WRITTEN_AUDIO] = { TEXT("audio"), TEXT("\x18\x01"), EXTENT_CLASS_BLOBS },
        [EXTENT_WRITTEN_OLD_HISTOGRAM] = { TEXT(""), TEXT(""), EXTENT_CLASS_UNKNOWN },
        [EXTENT_WRITTEN_GRAPH] = { TEXT("graphs"), TEXT(""), EXTENT_CLASS_BLOBS },
        [EXTENT_WRITTEN_RUN_METADATA] = { TEXT("graph_tagged_run_metadata"), TEXT(""),
                                          EXTENT_CLASS_BLOBS },
};

static const struct {
        struct extent_string plugin;
        uint8_t data_class;
} plugin_classes[] = {
        { TEXT("scalars"), EXTENT_CLASS_SCALAR },
        { TEXT("histograms"), EXTENT_CLASS_TENSOR },
        { TEXT("text"), EXTENT_CLASS_TENSOR },
        { TEXT("hparams"), EXTENT_CLASS_TENSOR },
        { TEXT("pr_curves"), EXTENT_CLASS_TENSOR },
        { TEXT("mesh"), EXTENT_CLASS_TENSOR },
        { TEXT("custom_scalars"), EXTENT_CLASS_TENSOR },
        { TEXT("images"), EXTENT_CLASS_BLOBS },
        { TEXT("audio"), EXTENT_CLASS_BLOBS },
        { TEXT("graph_run_metadata"), EXTENT_CLASS_BLOBS },
        { TEXT("graph_run_metadata_graph"), EXTENT_CLASS_BLOBS },
        { TEXT("graph_keras_model"), EXTENT_CLASS_BLOBS },
};

static const struct written_kind *kind_of(unsigned written_as) {
        if (written_as >= ARRAY_SIZE(written_kinds) || !written_kinds[written_as].data_class)
                return NULL;
        return &written_kinds[written_as];
}

static bool is_given_class(uint32_t data_class) {
        return data_class >= EXTENT_CLASS_SCALAR && data_class <= EXTENT_CLASS_BLOBS;
}

static enum extent_class class_of_plugin(struct extent_string plugin) {
        for (size_t i = 0; i < ARRAY_SIZE(plugin_classes); i++)
                if (plugin.size == plugin_classes[i].plugin.size &&
                    memcmp(plugin.bytes, plugin_classes[i].plugin.bytes, plugin.size) == 0)
                        return plugin_classes[i].data_class;
        return EXTENT_CLASS_UNKNOWN;
}

enum extent_class metadata_class(uint32_t data_class, struct extent_string plugin,
                                 enum extent_written_as written_as) {
        const struct written_kind *kind = kind_of(written_as);

        if (is_given_class(data_class))
                return data_class;
        return kind ? kind->data_class : class_of_plugin(plugin);
}

/* What the series of one extent says, alone. */
static struct metadata metadata_of(const struct extent_view *view,
                                   const struct extent_series *series) {
        const struct written_kind *kind = kind_of(series->written_as);
        struct metadata said = {
                .plugin = extent_view_plugin(view, series),
                .content = extent_view_content(view, series),
                .display_name = extent_view_display_name(view, series),
                .description = extent_view_description(view, series),
                .written_as = series->written_as,
                .is_given = series->flags & EXTENT_SERIES_METADATA || kind,
        };

        said.data_class = metadata_class(series->data_class, said.plugin, series->written_as);
        if (kind && !is_given_class(series->data_class)) {
                said.plugin = kind->plugin;
                said.content = kind->content;
        }
        return said;
}

bool metadata_update(struct metadata *metadata, const struct extent_view *view,
                     const struct extent_series *series) {
        struct metadata said;

        if (metadata->data_class)
                return false;
        said = metadata_of(view, series);
        if (!said.data_class && (!said.is_given || metadata->is_given))
                return false;
        *metadata = said;
        return true;
}
