/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/part.h"
#include "daemon/pipeline/part_decode.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/refetch.h"
#include "daemon/pipeline/request.h"
#include "daemon/pipeline/residency.h"
#include "daemon/pipeline/source_removal.h"

#define RATIO_KNOWN_BYTES 16384u /* of the file: then its own ratio counts */
/*
 * Before that: scalars fill a quarter more than their bytes, those with the shortest tags up to twice
 * as much. Of what is large the first is taken, and a segment.
 */
#define RATIO_MOST 2u
#define HEADERS_BYTES 4096u /* of the ring, for what extents hold beside their records */
/* less than that of a record is read again at each growth: it costs no more than its header */
#define AWAITED_LEAST_BYTES 65536u
#define RETRY_FIRST_NS (10 * 1000000000ull)
#define RETRY_DOUBLINGS_MOST 6u
#define RETRY_ARCHIVED_NS (3600 * 1000000000ull)

struct block_file feed_identity(const struct feed *feed) {
        const struct catalog_file *file = feed->file;

        return (struct block_file){
                .source_id = file->run->source->id,
                .run_id = file->run->id,
                .file_id = file->id,
                .file_version = file->version,
                .source_url = file->run->source->store->url,
                .run_name = file->run->name.bytes,
                .run_name_size = (uint32_t)file->run->name.size,
                .path = file->path.bytes,
                .path_size = (uint32_t)file->path.size,
        };
}

int feed_need_work(struct feed *feed) {
        struct feed_work *work;

        if (feed->work)
                return 0;
        work = calloc(1, sizeof(*work));
        if (!work)
                return -ENOMEM;
        work->feed = feed;
        list_init(&work->parts);
        list_init(&work->leaving);
        list_init(&work->refetches);
        list_init(&work->kept);
        list_init(&work->holding);
        work->identity = feed_identity(feed);
        list_init(&work->task.node);
        work->task.owner = feed;
        work->task.on_event = part_decode_on_task;
        list_init(&work->reread.node);
        feed->work = work;
        return 0;
}

/* Nothing of it is under way any more, or it ends. */
static void drop_work(struct feed *feed) {
        if (!feed->work)
                return;
        list_remove(&feed->work->reread.node);
        list_remove(&feed->work->holding);
        free(feed->work->carry);
        free(feed->work);
        feed->work = NULL;
}

static bool is_idle(const struct feed *feed) {
        const struct feed_work *work = feed->work;

        return !feed->decoding && list_is_empty(&work->parts) && list_is_empty(&work->leaving) &&
               list_is_empty(&work->refetches) && list_is_empty(&work->kept);
}

void feed_drop_idle_work(struct feed *feed) {
        if (feed->work && feed->file->settled && is_idle(feed))
                drop_work(feed);
}

int feed_new(struct pipeline *pipeline, struct catalog_file *file, struct feed **ret_feed) {
        struct feed *feed = cells_take(&pipeline->catalog.cells, sizeof(*feed));
        int r;

        if (!feed)
                return -ENOMEM;
        feed->pipeline = pipeline;
        feed->file = file;
        feed->part_bytes = pipeline->options.part_bytes;
        list_init(&feed->cursors);
        list_init(&feed->waiters);
        list_init(&feed->queue);
        file->blocks = feed;
        r = readers_add_feed(pipeline, feed);
        if (r < 0) {
                feed_free(feed);
                return r;
        }
        *ret_feed = feed;
        return 0;
}

static void feed_drop_blocks(struct feed *feed) {
        for (size_t i = 0; i < feed->index.count; i++)
                if (feed->index.blocks[i]->resident)
                        residency_remove(feed->pipeline, feed->index.blocks[i]);
        block_index_deinit(&feed->index, &feed->pipeline->catalog.cells);
}

bool feed_has_tasks(const struct feed *feed) {
        return feed->decoding || (feed->work && (!list_is_empty(&feed->work->refetches) ||
                                                 !list_is_empty(&feed->work->leaving)));
}

/* No decoder has anything of it, as the pool is closed. */
static void take_from_decoders(struct feed_work *work) {
        list_for_each(node, &work->refetches) list_owner(node, struct job, node)->decoding = false;
        list_for_each(node, &work->parts) list_owner(node, struct job, node)->decoding = false;
        list_for_each(node, &work->leaving) {
                struct job *job = list_owner(node, struct job, node);

                job->decoding = false;
                job_end(job);
        }
}

void feed_free(struct feed *feed) {
        feed->decoding = false;
        if (feed->work)
                take_from_decoders(feed->work);
        part_drop_all(feed);
        refetch_drop_all(feed);
        part_decode_drop_carry(feed);
        feed_drop_blocks(feed);
        readers_feed_gone(feed);
        requests_feed_settled(feed);
        list_remove(&feed->queue);
        feed->file->blocks = NULL;
        drop_work(feed);
        cells_give(&feed->pipeline->catalog.cells, feed, sizeof(*feed));
}

uint64_t feed_offset(const struct feed *feed) {
        return feed->search_offset ? feed->search_offset : feed->next.offset;
}

uint64_t feed_left(const struct feed *feed) {
        uint64_t listed = feed->file->listed_bytes;

        if (listed == UINT64_MAX || (feed->probe && feed->issued_offset >= listed))
                return feed->probe ? feed->part_bytes : 0;
        return listed > feed->issued_offset ? listed - feed->issued_offset : 0;
}

bool feed_is_hungry(const struct feed *feed) {
        return !feed->gone && !feed->discard && !feed->failed && feed_left(feed) > 0;
}

/* It waits in no queue. */
static void leave_queue(struct feed *feed) {
        list_remove(&feed->queue);
        feed->failed = false;
}

void feed_not_hungry(struct feed *feed) {
        if (!feed->failed)
                list_remove(&feed->queue);
}

void feed_set_hungry(struct feed *feed) {
        if (!feed_is_hungry(feed)) {
                feed_not_hungry(feed);
                return;
        }
        if (!list_is_linked(&feed->queue) && feed->checked) /* growth goes before what is new */
                list_prepend(&feed->pipeline->hungry, &feed->queue);
        else if (!list_is_linked(&feed->queue))
                list_append(&feed->pipeline->hungry, &feed->queue);
        if (feed->file->state != CATALOG_LOADING)
                catalog_set_state(feed->file,
                                  feed->source_bytes_done ? CATALOG_LOADING : CATALOG_QUEUED,
                                  false);
        readers_feed_hungry(feed);
        pipeline_touch(feed->pipeline);
}

void feed_tell_replaced(struct feed *feed) {
        if (feed->replaced)
                PIPELINE_TELL(feed->pipeline, file_replaced, feed->file);
        feed->replaced = false;
}

static void feed_settle(struct feed *feed, enum catalog_state state) {
        feed_tell_replaced(feed);
        catalog_set_state(feed->file, state, true);
        readers_feed_settled(feed);
        requests_feed_settled(feed);
        PIPELINE_TELL(feed->pipeline, progress, feed->file->run->source);
        pipeline_touch(feed->pipeline);
}

/*
 * Only where answers have the tags of listings (store.has_shared_tags), which a listing of this
 * daemon has told.
 */
const char *feed_guard(const struct feed *feed) {
        return feed->unguarded || feed->file->is_remembered ? NULL : feed->file->tag;
}

bool feed_awaits_record(const struct feed *feed) {
        uint64_t listed = feed->file->listed_bytes;

        return !feed->no_ranges && listed != UINT64_MAX && feed->promised_end > listed &&
               listed - min_u64(listed, feed->next.offset) > AWAITED_LEAST_BYTES;
}

void feed_rest(struct feed *feed) {
        struct catalog_file *file = feed->file;

        part_decode_drop_carry(feed);
        if (feed->gone || feed->discard || feed->failed)
                return;
        if (feed->checked) /* the check begins at next: what is behind is searched again */
                feed->search_offset = 0;
        if (feed_awaits_record(feed))
                feed->issued_offset = max_u64(feed->issued_offset, file->listed_bytes);
        if (feed_left(feed) > 0) {
                feed->issued_offset = feed_offset(feed);
                feed_set_hungry(feed);
                return;
        }
        feed->search_offset = 0;
        if (feed->work)
                feed->work->need_bytes = 0;
        feed->checked = false;
        feed->late = false;
        feed->failures = 0;
        catalog_set_failure(file, NULL);
        if (feed->work && is_idle(feed))
                drop_work(feed);
        if (file->listed_bytes == 0)
                feed_settle(feed, CATALOG_EMPTY);
        else
                feed_settle(feed, feed->has_values ? CATALOG_LOADED : CATALOG_HEADER_ONLY);
}

static bool is_archived(const struct store_failure *failure) {
        return strcmp(failure->code, STORE_CODE_ARCHIVED) == 0;
}

/* When it is tried again. Bringing back takes hours, and each try costs a request. */
static void wait_for_retry(struct feed *feed, bool archived) {
        struct pipeline *pipeline = feed->pipeline;
        uint64_t wait_ns = RETRY_FIRST_NS << feed->failures;

        if (archived)
                wait_ns = RETRY_ARCHIVED_NS;
        else if (feed->failures < RETRY_DOUBLINGS_MOST)
                feed->failures++;
        feed->retry_at_ns = pipeline_now_ns(pipeline) + wait_ns;
        leave_queue(feed);
        feed->failed = true;
        list_append(archived ? &pipeline->archived : &pipeline->failed, &feed->queue);
        pipeline_watch_failed(pipeline);
}

void feed_fail(struct feed *feed, const struct store_failure *failure) {
        struct catalog_file *file = feed->file;
        bool archived = is_archived(failure);
        bool is_known = archived && file->failure && is_archived(file->failure);

        part_drop_all(feed);
        part_decode_drop_carry(feed);
        feed->issued_offset = feed_offset(feed);
        feed->late = true;
        feed->probe |= file->listed_bytes == UINT64_MAX; /* nothing has answered that yet */
        wait_for_retry(feed, archived);
        catalog_set_failure(file, failure);
        if (!file->is_remembered &&
            !is_known) /* it may have gone meanwhile: the listing will say */
                PIPELINE_TELL(feed->pipeline, file_failed, file);
        feed_settle(feed, archived ? CATALOG_ARCHIVED : CATALOG_UNREADABLE);
}

void feed_retry(struct feed *feed) {
        if (!feed->failed)
                return;
        leave_queue(feed);
        feed_set_hungry(feed);
}

void feed_restart(struct feed *feed) {
        struct catalog_file *file = feed->file;

        part_drop_all(feed);
        part_decode_drop_carry(feed);
        refetch_drop_all(feed);
        feed_drop_blocks(feed);
        readers_feed_replaced(feed);
        file->replacements++;
        file->version = 0;
        file->records = file->loaded_bytes = 0;
        free(file->damage);
        file->damage = NULL;
        feed->next = (struct block_position){ 0 };
        feed->search_offset = feed->issued_offset = 0;
        feed->promised_end = 0;
        feed->believed_offset = 0;
        if (feed->work)
                feed->work->need_bytes = feed->work->reread.tries = 0;
        feed->tail_bytes = 0;
        feed->read_tag = 0;
        feed->checked = feed->no_ranges = feed->has_values = feed->late = false;
        feed->probe = file->listed_bytes == UINT64_MAX;
        feed->source_bytes_done = feed->extent_bytes_done = 0;
        feed->discard = feed->decoding;
        feed->replaced = true;
        if (feed->failed)
                leave_queue(feed);
        if (!feed->discard && feed_left(feed) == 0)
                feed_rest(feed);
        else
                feed_set_hungry(feed);
}

void feed_end(struct feed *feed) {
        struct catalog_file *file = feed->file;
        struct catalog_source *source = file->run->source;
        struct pipeline *pipeline = feed->pipeline;

        if (file->run->file_count == 1)
                PIPELINE_TELL(pipeline, run_gone, file->run);
        feed_free(feed);
        catalog_remove_file(file);
        source_removal_look(source);
}

void feed_gone(struct feed *feed) {
        feed->gone = true;
        part_drop_all(feed);
        part_decode_drop_carry(feed);
        refetch_drop_all(feed);
        feed_drop_blocks(feed);
        readers_feed_gone(feed);
        leave_queue(feed);
        catalog_set_state(feed->file, CATALOG_GONE, true);
        requests_feed_settled(feed);
        if (!feed_has_tasks(feed))
                feed_end(feed);
}

/* It is back before it had ended. */
static void feed_revive(struct feed *feed) {
        feed->gone = false;
        catalog_set_state(feed->file, CATALOG_QUEUED, false);
        feed_restart(feed);
        if (readers_add_feed(feed->pipeline, feed) < 0)
                feed_gone(feed);
}

void feed_changed(struct feed *feed, enum watch_change change) {
        struct catalog_file *file = feed->file;
        bool unread = file->listed_bytes == UINT64_MAX || feed->next.offset < file->listed_bytes;

        if (feed->gone) {
                feed_revive(feed);
                return;
        }
        feed->unguarded = false;
        feed_retry(feed);
        if (change == WATCH_RESTORED)
                return; /* what was read of it stands */
        if (change == WATCH_SHRANK ||
            (change == WATCH_TOUCHED && !unread && feed->next.offset > 0) ||
            (change == WATCH_SWAPPED && !unread && feed->tail_bytes == 0)) {
                feed_restart(feed);
                return;
        }
        /* Of what was swapped the last bytes that were read are looked at again, and compared. */
        feed->probe = file->listed_bytes == UINT64_MAX || change == WATCH_MAY_HAVE_GROWN ||
                      (change == WATCH_SWAPPED && !unread);
        feed->checked = feed->next.offset > 0;
        if (!feed_has_parts(feed) && !feed->decoding) {
                feed->issued_offset = feed->next.offset;
                feed->search_offset = 0;
                if (feed_left(feed) == 0) {
                        feed_rest(feed);
                        return;
                }
        }
        feed_set_hungry(feed);
}

struct block *feed_block_at(const struct feed *feed, struct block_position position) {
        size_t at = block_index_find(&feed->index, position);

        return at < feed->index.count ? feed->index.blocks[at] : NULL;
}

uint64_t feed_estimate(const struct feed *feed, uint64_t source_bytes) {
        if (feed->source_bytes_done < RATIO_KNOWN_BYTES)
                return min_u64(RATIO_MOST * source_bytes,
                               source_bytes + source_bytes / 4 + feed->pipeline->segment_bytes);
        return (uint64_t)((double)source_bytes * (double)feed->extent_bytes_done /
                          (double)feed->source_bytes_done) +
               HEADERS_BYTES;
}

uint64_t feed_estimate_under_way(const struct feed *feed) {
        uint64_t offset = feed_offset(feed);

        return feed->issued_offset > offset ? feed_estimate(feed, feed->issued_offset - offset) : 0;
}

uint64_t feed_source_bytes(const struct feed *feed, uint64_t ring_bytes) {
        if (feed->source_bytes_done < RATIO_KNOWN_BYTES || feed->extent_bytes_done == 0)
                return max_u64(ring_bytes / RATIO_MOST,
                               (ring_bytes - min_u64(ring_bytes, feed->pipeline->segment_bytes)) /
                                       5 * 4);
        ring_bytes -= min_u64(ring_bytes, HEADERS_BYTES);
        return (uint64_t)((double)ring_bytes * (double)feed->source_bytes_done /
                          (double)feed->extent_bytes_done);
}

struct block_input feed_input(const struct feed *feed, const uint8_t *bytes, uint64_t offset,
                              uint64_t size) {
        const struct pipeline_options *options = &feed->pipeline->options;
        uint64_t listed = feed->file->listed_bytes;

        return (struct block_input){
                .file = feed->work ? &feed->work->identity : NULL,
                .bytes = bytes,
                .bytes_offset = offset,
                .size_bytes = size,
                .begin = feed->next,
                .search_offset = feed->search_offset,
                .search_damage = feed->search_damage,
                .file_bytes = listed == UINT64_MAX ? 0 : max_u64(listed, offset + size),
                .length_crc_only = options->length_crc_only,
                .record_max_bytes = options->record_max_bytes,
                .payload_inline_max_bytes = options->payload_inline_max_bytes,
                .segment_bytes = feed->pipeline->segment_bytes,
        };
}
