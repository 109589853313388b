/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/publication.h"

#include "common/base.h"
#include "common/extent_format.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/residency.h"

static bool has_damage(const struct block_output *output) {
        return output->damage_count > 0 || output->tail.reason != DAMAGE_NONE;
}

/* There is room for it in the catalog. */
static void learn_damage(struct feed *feed, const struct block_output *output) {
        struct catalog_file *file = feed->file;

        file_damage_pass(file->damage, output->next.offset);
        if (output->damage_count > 0) {
                file_damage_add(file->damage, output->damage_by_reason, output->damage,
                                min_u64(output->damage_count, BLOCK_DAMAGE_MOST));
                feed->pipeline->counters.damaged += output->damage_count;
                PIPELINE_TELL(feed->pipeline, file_damaged, file, &output->damage[0]);
        }
        if (output->tail.reason && file_damage_set_tail(file->damage, &output->tail))
                PIPELINE_TELL(feed->pipeline, file_damaged, file, &output->tail);
}

static void learn_extent(struct feed *feed, const struct extent_header *extent,
                         const struct block_output *output) {
        struct catalog_run *run = feed->file->run;

        feed->file->records += output->record_count;
        feed->has_values |= extent->series_count > 0;
        if (output->has_last_step && (!run->has_last_step || output->last_step > run->last_step)) {
                run->last_step = output->last_step;
                run->has_last_step = true;
        }
        feed->source_bytes_done += extent->end_offset - extent->begin_offset;
        feed->extent_bytes_done += output->extent_bytes;
        feed->pipeline->counters.extents++;
        feed->pipeline->counters.extent_bytes += output->extent_bytes;
        feed->pipeline->counters.records += output->record_count;
}

void publication_add(struct feed *feed, const struct decoder_event *event) {
        const struct block_output *output = &event->output;
        const struct extent_header *extent;
        struct block *block;

        if (has_damage(output) && file_damage_ensure(&feed->file->damage) < 0) {
                feed->broken = true;
                return;
        }
        if (output->extent_bytes == 0) {
                learn_damage(feed, output);
                return;
        }
        extent = (const void *)(ring_segment_memory(feed->pipeline->ring, event->segment) +
                                event->offset_bytes);
        if (catalog_learn(feed->file, extent) < 0 ||
            block_index_append(&feed->index, &feed->pipeline->catalog.cells, &block) < 0) {
                feed->broken = true;
                return;
        }
        learn_damage(feed, output);
        block->feed = feed;
        block->begin = output->begin;
        block->end = output->end;
        block->bytes_end = extent->end_offset;
        block->size_bytes = (uint32_t)output->extent_bytes;
        block->record_count = output->record_count;
        block->crc32c = extent->crc32c;
        block->damaged = output->damage_count > 0;
        block->end_is_open = output->end_is_open;
        block->late = feed->late;
        block->serial = ++feed->pipeline->serial;
        learn_extent(feed, extent, output);
        residency_add(feed->pipeline, block, event->segment, event->offset_bytes);
        readers_block_published(feed, block);
}
