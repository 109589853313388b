/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts are asked for in file order and decoded in file order; only their reads overlap. A record that a part cuts is bridged:
 * its head is carried over, as much of the next part is put behind it as the record needs, and decoding goes on in the next
 * part's own buffer behind it. So the bytes of a part are never moved, except for what lies across a border.
 *
 * At rest (no part under way, none with a decoder) nothing is carried: what was left over is read again when there is more.
 */
#include "daemon/pipeline/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/extent_format.h"
#include "common/name_id.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/refetch.h"
#include "daemon/pipeline/request.h"
#include "daemon/pipeline/residency.h"

#define SLACK_BYTES 65535u /* read behind the listed end: what was appended since the listing */
#define CHUNK_MIN_BYTES 65536u
#define BRIDGE_FIRST_BYTES 65536u
#define PARTS_MOST 32u
#define RATIO_FIRST 2u
#define RETRY_FIRST_NS (10 * 1000000000ull)
#define RETRY_DOUBLINGS_MOST 6u

static void feed_advance(struct feed *feed);
static void feed_on_task(struct decoder_task *task, const struct decoder_event *event);

int feed_new(struct pipeline *pipeline, struct catalog_file *file, struct feed **ret_feed) {
        struct feed *feed = calloc(1, sizeof(*feed));
        int r;

        if (!feed)
                return -ENOMEM;
        feed->pipeline = pipeline;
        feed->file = file;
        feed->identity = (struct block_file){
                .source_id = file->run->source->id,
                .run_id = file->run->id,
                .file_id = file->id,
                .source_url = file->run->source->store->url,
                .run_name = file->run->name.bytes,
                .run_name_size = (uint32_t)file->run->name.size,
                .path = file->path.bytes,
                .path_size = (uint32_t)file->path.size,
        };
        list_init(&feed->cursors);
        list_init(&feed->waiters);
        list_init(&feed->hungry);
        list_init(&feed->failed);
        list_init(&feed->parts);
        list_init(&feed->refetches);
        list_init(&feed->task.node);
        feed->task.owner = feed;
        feed->task.on_event = feed_on_task;
        file->blocks = feed;
        r = readers_add_feed(pipeline, feed);
        if (r < 0) {
                feed_free(feed);
                return r;
        }
        *ret_feed = feed;
        return 0;
}

static struct job *first_part(const struct feed *feed) {
        return list_is_empty(&feed->parts) ? NULL : list_owner(feed->parts.next, struct job, node);
}

static void feed_drop_parts(struct feed *feed) {
        struct job *keep = feed->decoding && !feed->bridging ? first_part(feed) : NULL; /* a decoder reads its bytes */

        list_for_each (node, &feed->parts) {
                struct job *job = list_owner(node, struct job, node);

                if (job != keep)
                        job_end(job);
        }
}

static void feed_drop_carry(struct feed *feed) {
        if (feed->decoding && feed->bridging)
                return; /* a decoder reads it */
        free(feed->carry);
        feed->carry = NULL;
        feed->carry_bytes = feed->carry_space = 0;
}

static void feed_drop_blocks(struct feed *feed) {
        for (size_t i = 0; i < feed->index.count; i++)
                if (feed->index.blocks[i]->resident)
                        residency_remove(feed->pipeline, feed->index.blocks[i]);
        block_index_deinit(&feed->index);
}

bool feed_has_tasks(const struct feed *feed) {
        return feed->decoding || !list_is_empty(&feed->refetches);
}

void feed_free(struct feed *feed) {
        feed->decoding = false;
        list_for_each (node, &feed->refetches)
                list_owner(node, struct job, node)->decoding = false;
        feed_drop_parts(feed);
        refetch_drop_all(feed);
        feed_drop_carry(feed);
        feed_drop_blocks(feed);
        readers_feed_gone(feed);
        requests_feed_settled(feed);
        list_remove(&feed->hungry);
        list_remove(&feed->failed);
        feed->file->blocks = NULL;
        free(feed);
}

/* The lowest byte that is still needed. */
static uint64_t feed_offset(const struct feed *feed) {
        return feed->search_offset ? feed->search_offset : feed->next.offset;
}

static uint64_t feed_left(const struct feed *feed) {
        uint64_t listed = feed->file->listed_bytes;

        if (listed == UINT64_MAX || (feed->probe && feed->issued_offset >= listed))
                return feed->probe ? feed->pipeline->options.part_bytes : 0;
        return listed > feed->issued_offset ? listed - feed->issued_offset : 0;
}

bool feed_is_hungry(const struct feed *feed) {
        return !feed->gone && !feed->discard && !list_is_linked(&feed->failed) && feed_left(feed) > 0;
}

static void feed_set_hungry(struct feed *feed) {
        if (!feed_is_hungry(feed)) {
                list_remove(&feed->hungry);
                return;
        }
        if (!list_is_linked(&feed->hungry))
                list_append(&feed->pipeline->hungry, &feed->hungry);
        if (feed->file->state != CATALOG_LOADING)
                catalog_set_state(feed->file, feed->source_bytes_done ? CATALOG_LOADING : CATALOG_QUEUED, false);
        readers_feed_hungry(feed);
        pipeline_touch(feed->pipeline);
}

static void feed_tell_replaced(struct feed *feed) {
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

/* No part is under way: either all is asked for and the file is settled, or it goes on from where it is. */
static void feed_rest(struct feed *feed) {
        struct catalog_file *file = feed->file;

        feed_drop_carry(feed);
        if (feed->gone || feed->discard || list_is_linked(&feed->failed))
                return;
        if (feed_left(feed) > 0) {
                feed->issued_offset = feed_offset(feed);
                feed_set_hungry(feed);
                return;
        }
        feed->search_offset = 0;
        feed->need_bytes = 0;
        feed->checked = false;
        feed->late = false;
        feed->failures = 0;
        file->failure = (struct store_failure){ 0 };
        if (file->listed_bytes == 0)
                feed_settle(feed, CATALOG_EMPTY);
        else
                feed_settle(feed, feed->has_values ? CATALOG_LOADED : CATALOG_HEADER_ONLY);
}

static void feed_fail(struct feed *feed, const struct store_failure *failure) {
        unsigned doublings = feed->failures < RETRY_DOUBLINGS_MOST ? feed->failures : RETRY_DOUBLINGS_MOST;

        feed_drop_parts(feed);
        feed_drop_carry(feed);
        feed->issued_offset = feed_offset(feed);
        feed->failures++;
        feed->late = true;
        feed->retry_at_ns = uv_hrtime() + (RETRY_FIRST_NS << doublings);
        list_remove(&feed->hungry);
        list_remove(&feed->failed);
        list_append(&feed->pipeline->failed, &feed->failed);
        pipeline_watch_failed(feed->pipeline);
        feed->file->failure = *failure;
        PIPELINE_TELL(feed->pipeline, file_failed, feed->file);
        feed_settle(feed, CATALOG_UNREADABLE);
}

void feed_retry(struct feed *feed) {
        if (!list_is_linked(&feed->failed))
                return;
        list_remove(&feed->failed);
        feed_set_hungry(feed);
}

/* The file is another one than it was: from the beginning, as a new version. */
static void feed_restart(struct feed *feed) {
        struct catalog_file *file = feed->file;

        feed_drop_parts(feed);
        feed_drop_carry(feed);
        refetch_drop_all(feed);
        feed_drop_blocks(feed);
        readers_feed_replaced(feed);
        file->replacements++;
        file->version = 0;
        file->records = file->damaged = file->loaded_bytes = 0;
        file->damage_count = 0;
        feed->next = (struct block_position){ 0 };
        feed->search_offset = feed->issued_offset = feed->need_bytes = 0;
        feed->head_bytes = feed->tail_bytes = 0;
        feed->read_tag[0] = '\0';
        feed->checked = feed->no_ranges = feed->has_values = feed->late = false;
        feed->probe = file->listed_bytes == UINT64_MAX;
        feed->source_bytes_done = feed->extent_bytes_done = 0;
        feed->discard = feed->decoding;
        feed->replaced = true;
        list_remove(&feed->failed);
        if (!feed->discard && feed_left(feed) == 0)
                feed_rest(feed);
        else
                feed_set_hungry(feed);
}

void feed_end(struct feed *feed) {
        struct catalog_file *file = feed->file;
        struct pipeline *pipeline = feed->pipeline;

        if (file->run->file_count == 1)
                PIPELINE_TELL(pipeline, run_gone, file->run);
        feed_free(feed);
        catalog_remove_file(file);
}

void feed_gone(struct feed *feed) {
        feed->gone = true;
        feed_drop_parts(feed);
        feed_drop_carry(feed);
        refetch_drop_all(feed);
        feed_drop_blocks(feed);
        readers_feed_gone(feed);
        list_remove(&feed->hungry);
        list_remove(&feed->failed);
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
        feed_retry(feed);
        if (change == WATCH_SHRANK || (change == WATCH_TOUCHED && !unread && feed->next.offset > 0)) {
                feed_restart(feed);
                return;
        }
        feed->probe = file->listed_bytes == UINT64_MAX || change == WATCH_MAY_HAVE_GROWN;
        feed->checked = feed->next.offset > 0;
        if (list_is_empty(&feed->parts) && !feed->decoding) {
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
        if (feed->source_bytes_done < CHUNK_MIN_BYTES / 4)
                return RATIO_FIRST * source_bytes;
        return (uint64_t)((double)source_bytes * (double)feed->extent_bytes_done / (double)feed->source_bytes_done) + 4096;
}

/* The other way round: bytes of the file that will fill so much of the ring. */
static uint64_t feed_source_bytes(const struct feed *feed, uint64_t ring_bytes) {
        if (feed->source_bytes_done < CHUNK_MIN_BYTES / 4 || feed->extent_bytes_done == 0)
                return ring_bytes / RATIO_FIRST;
        return (uint64_t)((double)ring_bytes * (double)feed->source_bytes_done / (double)feed->extent_bytes_done);
}

static void on_part(void *userdata, const struct fetch_result *result) {
        struct job *job = userdata;
        struct feed *feed = job->feed;

        job->arrived = true;
        job->result = *result;
        feed_advance(feed); /* which may have ended the job */
        pipeline_touch(feed->pipeline);
}

/* Bytes of the next part: what fits the room, at least one record, no more than is left. 0: the room is too small. */
static uint64_t part_size(const struct feed *feed, uint64_t room_bytes, bool at_least_one) {
        uint64_t left = feed_left(feed), fits = feed_source_bytes(feed, room_bytes);
        uint64_t least = min_u64(left, max_u64(CHUNK_MIN_BYTES, feed->need_bytes));
        uint64_t size = min_u64(left, max_u64(feed->pipeline->options.part_bytes, least));

        if (size <= fits)
                return size;
        return fits >= least ? fits : at_least_one ? least : 0;
}

static bool feed_has_part_places(const struct feed *feed) {
        unsigned count = 0;

        for (const struct list *node = feed->parts.next; node != &feed->parts; node = node->next)
                count++;
        return count < PARTS_MOST && !(feed->no_ranges && count > 0) && !(feed->checked && count > 0);
}

/* The larger of what the listing and the server have said. */
static uint64_t file_size_or(const struct feed *feed, uint64_t told_bytes) {
        return feed->file->listed_bytes == UINT64_MAX ? told_bytes : max_u64(told_bytes, feed->file->listed_bytes);
}

int feed_issue(struct feed *feed, uint64_t room_bytes, struct reader *charged) {
        uint64_t size = part_size(feed, room_bytes, charged != NULL);
        struct job *job;
        bool final;
        int r;

        if (size == 0)
                return FEED_E_ROOM;
        if (!feed_has_part_places(feed))
                return FEED_E_BUSY;
        job = job_new(feed);
        if (!job)
                return -ENOMEM;
        job->offset = feed->issued_offset;
        if (feed->no_ranges) {
                job->offset = 0;
                size = file_size_or(feed, feed->whole_bytes);
        } else if (feed->checked && list_is_empty(&feed->parts) && feed->issued_offset == feed->next.offset) {
                job->overlap_bytes = feed->tail_bytes;
                job->offset -= job->overlap_bytes;
        }
        final = feed->no_ranges || size == feed_left(feed);
        job->size_bytes = size + job->overlap_bytes + (final ? SLACK_BYTES : 0);
        r = job_start(job, on_part);
        if (r != 0) {
                job_end(job);
                return r;
        }
        job_commit(job, feed_estimate(feed, size), charged);
        list_append(&feed->parts, &job->node);
        feed->issued_offset = feed->no_ranges ? max_u64(size, feed->file->listed_bytes) : feed->issued_offset + size;
        feed->probe = false;
        catalog_set_state(feed->file, CATALOG_LOADING, false);
        if (!feed_is_hungry(feed))
                list_remove(&feed->hungry);
        return 0;
}

/* Gives up what is under way and asks again from what is needed next. */
static void feed_ask_again(struct feed *feed) {
        feed_drop_parts(feed);
        feed_drop_carry(feed);
        feed->issued_offset = feed_offset(feed);
        if (feed->search_offset > feed->next.offset && feed->checked) {
                feed->search_offset = 0;
                feed->issued_offset = feed->next.offset;
        }
        feed_set_hungry(feed);
}

static void feed_learn_version(struct feed *feed, const struct job *job) {
        size_t bytes = (size_t)min_u64(job->result.size_bytes, sizeof(feed->head));

        if (job->offset > 0 || feed->index.count > 0 || feed->next.offset > 0)
                return;
        memcpy(feed->head, job->result.buffer, bytes);
        feed->head_bytes = (unsigned)bytes;
        feed->file->version = name_id_file_version(feed->head, bytes, feed->file->replacements);
        feed->identity.file_version = feed->file->version;
        feed_tell_replaced(feed);
        readers_version_known(feed);
}

/* What was read before, as far as the part repeats it, is the same as it was. */
static bool part_continues(const struct feed *feed, const struct job *job) {
        uint64_t tail = feed->next.offset - feed->tail_bytes;

        if (feed->tail_bytes == 0 || tail < job->offset)
                return true; /* it repeats nothing */
        return feed->next.offset <= job->offset + job->result.size_bytes &&
               !memcmp(job->result.buffer + (tail - job->offset), feed->tail + sizeof(feed->tail) - feed->tail_bytes, feed->tail_bytes);
}

/* The answers of one version have one tag; a file that grows meanwhile gets another one, and must then prove that it only grew. */
static bool part_is_of_this_version(const struct feed *feed, const struct job *job) {
        return job->overlap_bytes > 0 || feed->no_ranges || feed->next.offset == 0 || !feed->read_tag[0] || !job->result.tag[0] ||
               !strcmp(feed->read_tag, job->result.tag);
}

/* The server sends whole files only. Larger ones than fetch.whole_max cannot be read from it. */
static void feed_read_whole(struct feed *feed, const struct job *job) {
        struct store_failure failure = job->result.failure;
        uint64_t total = job->result.total_bytes;

        if (total <= feed->pipeline->options.whole_max_bytes && (!feed->no_ranges || total > feed->whole_bytes)) {
                feed->no_ranges = true;
                feed->whole_bytes = total;
                feed_ask_again(feed);
                return;
        }
        failure.class = STORE_PERMANENT;
        snprintf(failure.code, sizeof(failure.code), "no ranges");
        snprintf(failure.message, sizeof(failure.message),
                 "the server ignores ranges, and the file is larger than fetch.whole_max (%llu MiB): raise it, or use a server that knows ranges",
                 (unsigned long long)(feed->pipeline->options.whole_max_bytes >> 20));
        feed_fail(feed, &failure);
}

/* The file is shorter than the listing said: the parts behind this one have nothing. */
static void feed_cut(struct feed *feed, struct job *last, uint64_t end) {
        while (last->node.next != &feed->parts)
                job_end(list_owner(last->node.next, struct job, node));
        feed->file->listed_bytes = end;
        feed->issued_offset = end;
}

/* Looks at a part that has arrived, once. False: the feed has gone on without it. */
static bool feed_accept(struct feed *feed, struct job *job) {
        struct catalog_file *file = feed->file;
        uint64_t end = job->offset + job->result.size_bytes;

        if (job->accepted)
                return true;
        if (job->result.failure.class == STORE_NO_RANGE) {
                feed_read_whole(feed, job);
                return false;
        }
        if (job->result.failure.class != STORE_OK && job->result.failure.class != STORE_END) {
                struct store_failure failure = job->result.failure; /* the job goes with it */

                feed_fail(feed, &failure);
                return false;
        }
        if (!part_is_of_this_version(feed, job)) {
                feed->checked = true;
                feed_ask_again(feed);
                return false;
        }
        if (!part_continues(feed, job)) {
                feed_restart(feed);
                return false;
        }
        if (job->result.tag[0])
                memcpy(feed->read_tag, job->result.tag, sizeof(feed->read_tag));
        if (file->listed_bytes == UINT64_MAX) {
                file->listed_bytes = job->result.total_bytes != UINT64_MAX ? job->result.total_bytes : end;
                feed_set_hungry(feed); /* now it is known what is left */
        }
        if (job->result.total_bytes == UINT64_MAX && job->result.size_bytes == job->size_bytes)
                feed->probe = true; /* nobody has said where it ends */
        if (job->result.size_bytes < job->size_bytes && end < file->listed_bytes)
                feed_cut(feed, job, end);
        feed_learn_version(feed, job);
        job->accepted = true;
        return true;
}

struct block_input feed_input(const struct feed *feed, const uint8_t *bytes, uint64_t offset, uint64_t size) {
        const struct pipeline_options *options = &feed->pipeline->options;

        return (struct block_input){
                .file = &feed->identity,
                .bytes = bytes,
                .bytes_offset = offset,
                .size_bytes = size,
                .begin = feed->next,
                .search_offset = feed->search_offset,
                .record_max_bytes = options->record_max_bytes,
                .payload_inline_max_bytes = options->payload_inline_max_bytes,
                .segment_bytes = feed->pipeline->segment_bytes,
        };
}

static void feed_submit(struct feed *feed, const uint8_t *bytes, uint64_t offset, uint64_t size, bool last) {
        feed->task.input = feed_input(feed, bytes, offset, size);
        feed->task.input.last = last;
        feed->decoding = true;
        decoder_pool_submit(feed->pipeline->pool, &feed->task);
        residency_grant(feed->pipeline);
}

/* Puts more of the part behind what is carried: what the record needs, where that is known, else a piece. False: no memory. */
static bool feed_bridge(struct feed *feed, const struct job *job) {
        uint64_t have = feed->carry_offset + feed->carry_bytes - job->offset; /* of the part that is there already */
        uint64_t wanted = feed->need_bytes > feed->carry_bytes ? feed->need_bytes - feed->carry_bytes
                                                               : max_u64(BRIDGE_FIRST_BYTES, feed->carry_bytes);
        uint64_t more = min_u64(wanted, job->result.size_bytes - have);

        if (feed->carry_bytes + more > feed->carry_space) {
                uint8_t *bigger = realloc(feed->carry, feed->carry_bytes + more);

                if (!bigger)
                        return false;
                feed->carry = bigger;
                feed->carry_space = feed->carry_bytes + more;
        }
        memcpy(feed->carry + feed->carry_bytes, job->result.buffer + have, more);
        feed->carry_bytes += more;
        return true;
}

/* Gives the next bytes to a decoder. False: the part has none that are needed. */
static bool feed_decode_part(struct feed *feed, struct job *job) {
        uint64_t end = job->offset + job->result.size_bytes;
        bool last = end >= feed->file->listed_bytes && job->node.next == &feed->parts;

        feed->bridging = feed->carry_bytes > 0;
        if (feed_offset(feed) >= end && !feed->bridging)
                return false;
        if (!feed->bridging) {
                feed_submit(feed, job->result.buffer, job->offset, job->result.size_bytes, last);
                return true;
        }
        if (feed->carry_offset + feed->carry_bytes >= end)
                return false; /* all of it is carried already */
        if (!feed_bridge(feed, job)) {
                feed_ask_again(feed);
                return true;
        }
        feed_submit(feed, feed->carry, feed->carry_offset, feed->carry_bytes, last && feed->carry_offset + feed->carry_bytes == end);
        return true;
}

/* A part is used up: what it leaves over is carried to the next one, if that is under way. */
static void feed_part_done(struct feed *feed, struct job *job) {
        uint64_t offset = feed_offset(feed), end = job->offset + job->result.size_bytes;
        bool more = job->node.next != &feed->parts;

        if (!feed->bridging && more && offset < end) {
                feed_drop_carry(feed);
                feed->carry = malloc(end - offset);
                if (feed->carry) {
                        memcpy(feed->carry, job->result.buffer + (offset - job->offset), end - offset);
                        feed->carry_offset = offset;
                        feed->carry_bytes = feed->carry_space = end - offset;
                }
        }
        job_end(job);
        if (more && !feed->bridging && offset < end && !feed->carry)
                feed_ask_again(feed);
}

/* Goes on with the first part, if it has arrived and no decoder is busy with the file. */
static void feed_advance(struct feed *feed) {
        struct job *job;

        while (!feed->decoding && (job = first_part(feed))) {
                if (!job->arrived)
                        return;
                if (!feed_accept(feed, job))
                        continue;
                if (feed_decode_part(feed, job))
                        continue;
                feed_part_done(feed, job);
        }
        if (!feed->decoding && list_is_empty(&feed->parts))
                feed_rest(feed);
}

/* Remembers the last bytes before `next`, which an overlap is compared with. */
static void feed_learn_tail(struct feed *feed, const struct block_input *input, uint64_t before) {
        uint64_t now = input->begin.offset, moved = now - before;
        size_t size = sizeof(feed->tail);
        const uint8_t *end;

        if (now > input->bytes_offset + input->size_bytes) {
                feed->tail_bytes = 0; /* a record too large to read was skipped: its bytes are not known */
                return;
        }
        end = input->bytes + (now - input->bytes_offset);
        if (moved >= size) {
                memcpy(feed->tail, end - size, size);
                feed->tail_bytes = (unsigned)size;
                return;
        }
        memmove(feed->tail, feed->tail + moved, size - moved);
        memcpy(feed->tail + size - moved, end - moved, moved);
        feed->tail_bytes = (unsigned)min_u64(feed->tail_bytes + moved, size);
}

static void feed_learn_damage(struct feed *feed, const struct block_output *output) {
        struct catalog_file *file = feed->file;

        for (uint32_t i = 0; i < output->damage_count && i < BLOCK_DAMAGE_MOST; i++) {
                struct catalog_damage damage = {
                        .offset = output->damage[i].offset,
                        .size_bytes = output->damage[i].size_bytes,
                        .reason = block_damage_name(output->damage[i].reason),
                };

                if (file->damage_count < CATALOG_DAMAGE_MOST)
                        file->damage[file->damage_count++] = damage;
                PIPELINE_TELL(feed->pipeline, file_damaged, file, &damage);
        }
        file->damaged += output->damage_count;
        feed->pipeline->counters.damaged += output->damage_count;
}

static void feed_learn_extent(struct feed *feed, const struct extent_header *extent, const struct block_output *output) {
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

/* An extent of new bytes: the next block of the file. */
static void feed_publish(struct feed *feed, const struct decoder_event *event) {
        const struct block_output *output = &event->output;
        const struct extent_header *extent;
        struct block *block;

        if (output->extent_bytes == 0) {
                feed_learn_damage(feed, output);
                return;
        }
        extent = (const void *)(ring_segment_memory(feed->pipeline->ring, event->segment) + event->offset_bytes);
        if (catalog_learn(feed->file->run, extent) < 0 || block_index_append(&feed->index, &block) < 0) {
                feed->broken = true;
                return;
        }
        feed_learn_damage(feed, output);
        block->feed = feed;
        block->begin = output->begin;
        block->end = output->end;
        block->bytes_end = extent->end_offset;
        block->size_bytes = (uint32_t)output->extent_bytes;
        block->record_count = output->record_count;
        block->crc32c = extent->crc32c;
        block->damaged = output->damage_count > 0;
        block->late = feed->late;
        block->serial = ++feed->pipeline->serial;
        feed_learn_extent(feed, extent, output);
        residency_add(feed->pipeline, block, event->segment, event->offset_bytes);
        readers_block_published(feed, block);
}

/* What could not be kept for want of memory is read again later. */
static void feed_step_back(struct feed *feed) {
        struct store_failure failure = { .class = STORE_TRANSIENT, .code = "ENOMEM", .message = "out of memory" };

        feed->broken = false;
        feed->next = feed->index.count ? feed->index.blocks[feed->index.count - 1]->end : (struct block_position){ 0 };
        feed->search_offset = 0;
        feed->tail_bytes = 0;
        feed_fail(feed, &failure);
}

/* The bytes of a bridge are decoded: on into the part itself, or, where the item is longer still, more of it is needed. */
static void feed_bridge_done(struct feed *feed) {
        struct job *job = first_part(feed);
        uint64_t offset = feed_offset(feed);

        if (!job || offset >= job->offset + job->overlap_bytes) {
                feed_drop_carry(feed);
                return;
        }
        if (offset > feed->carry_offset) {
                uint64_t used = min_u64(offset - feed->carry_offset, feed->carry_bytes);

                memmove(feed->carry, feed->carry + used, feed->carry_bytes - used);
                feed->carry_offset += used;
                feed->carry_bytes -= used;
        }
        /* Nothing new behind it and no word of how much it needs: the next piece is as large as all that is there. */
        if (feed->need_bytes <= feed->carry_bytes)
                feed->need_bytes = 2 * feed->carry_bytes;
}

static void feed_task_done(struct feed *feed, struct decoder_task *task) {
        struct job *job = first_part(feed);
        uint64_t before = feed->next.offset;

        feed->decoding = false;
        if (feed->discard || feed->gone) {
                feed->discard = false;
                if (!feed->bridging && job)
                        job_end(job);
                feed_drop_carry(feed);
                if (feed->gone && !feed_has_tasks(feed))
                        feed_end(feed);
                else if (!feed->gone && feed_left(feed) == 0)
                        feed_rest(feed);
                else
                        feed_set_hungry(feed);
                return;
        }
        feed_learn_tail(feed, &task->input, before);
        feed->next = task->input.begin;
        feed->search_offset = task->input.search_offset;
        feed->need_bytes = task->result == STAGE_MORE ? task->need_bytes : 0;
        feed->file->loaded_bytes = feed->next.offset;
        if (feed->broken)
                feed_step_back(feed);
        else if (feed->bridging)
                feed_bridge_done(feed);
        else if (job)
                feed_part_done(feed, job);
        feed_advance(feed);
        pipeline_touch(feed->pipeline);
}

static void feed_on_task(struct decoder_task *task, const struct decoder_event *event) {
        struct feed *feed = task->owner;

        if (event->type == DECODER_DONE)
                feed_task_done(feed, task);
        else if (!feed->discard && !feed->gone && !feed->broken)
                feed_publish(feed, event);
}
