/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All damaged places of a file, however many: the catalog names the first ones only, but the blocks
 * know whether there are any in them. Those are read again, one after the other, in pieces, and
 * decoded up to where they ended. What comes out is of no use but for its damage. Decoding runs on
 * libuv's thread pool.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/pipeline/named_file.h"
#include "daemon/pipeline/request.h"

/* The first piece may hold more places than an answer has: each one is twice the one before. */
#define PIECE_FIRST_BYTES (256ull << 10)
#define PIECE_MOST_BYTES (4ull << 20)
#define TRY_AGAIN_MS 20

struct damage_request {
        struct pipeline_request request;
        uint64_t file_id, file_version;
        void (*on_damage)(void *userdata, int error, const struct store_failure *failure,
                          const struct damaged_place *places, uint32_t count,
                          const struct pipeline_place *next);
        void *userdata;
        struct block_position position; /* what is before has been looked at */
        struct block_position end;      /* of the block that is looked at */
        bool end_is_open;
        uint64_t bytes_end; /* likewise, in the file */
        uint64_t search_offset, need_bytes, piece_bytes;
        uint64_t asked_bytes; /* of the read that is under way */
        enum damage search_damage;
        struct fetch_job *fetch;
        const struct catalog_source *source; /* whose store it reads from */
        struct named_file identity;
        struct block_input input;
        void *memory; /* a segment's: for extents that nobody reads */
        struct damaged_place *places;
        uint32_t place_space, place_count;
        uv_work_t work;
        uv_timer_t timer;
        int result; /* of block_decode() */
        bool working, canceled;
};

static void damage_free(uv_handle_t *handle) {
        struct damage_request *damage = handle->data;
        struct pipeline *pipeline = damage->request.pipeline;

        named_file_deinit(&damage->identity);
        free(damage->memory);
        free(damage->places);
        free(damage);
        pipeline->open_parts--;
        pipeline_part_closed(pipeline);
}

static void damage_end(struct damage_request *damage) {
        damage->fetch = fetch_job_free(damage->fetch);
        request_deinit(&damage->request);
        uv_close((uv_handle_t *)&damage->timer, damage_free);
}

static void damage_cancel(struct pipeline_request *request) {
        struct damage_request *damage = list_owner(request, struct damage_request, request);

        damage->canceled = true;
        if (!damage->working)
                damage_end(damage);
}

static void damage_fail(struct damage_request *damage, int error,
                        const struct store_failure *failure) {
        damage->on_damage(damage->userdata, error, failure, NULL, 0, NULL);
        damage_end(damage);
}

static void damage_answer(struct damage_request *damage, bool has_more) {
        struct pipeline_place next = { damage->position.offset, damage->position.index };

        damage->on_damage(damage->userdata, 0, NULL, damage->places, damage->place_count,
                          has_more ? &next : NULL);
        damage_end(damage);
}

static struct feed *damage_feed(const struct damage_request *damage) {
        struct catalog_file *file = catalog_find_file(&damage->request.pipeline->catalog,
                                                      damage->file_id);
        struct feed *feed = file ? file->blocks : NULL;

        return feed && !feed->gone && file->version == damage->file_version ? feed : NULL;
}

/* The first block with damage that ends behind the place; NULL: there is none. */
static const struct block *next_block(const struct feed *feed, struct block_position place) {
        for (size_t i = block_index_find(&feed->index, place); i < feed->index.count; i++)
                if (feed->index.blocks[i]->damaged)
                        return feed->index.blocks[i];
        return NULL;
}

static void damage_enter(struct damage_request *damage, const struct block *block) {
        if (block_position_compare(damage->position, block->begin) < 0)
                damage->position = block->begin;
        damage->end = block->end;
        damage->end_is_open = block->end_is_open;
        damage->bytes_end = block->bytes_end;
        damage->search_offset = damage->need_bytes = 0;
}

static void damage_read(uv_timer_t *timer);

/* Goes on behind what has been looked at: with a block, with the file's end, or with an answer. */
static void damage_go_on(struct damage_request *damage) {
        struct feed *feed = damage_feed(damage);
        const struct damaged_place *tail;
        const struct block *block;

        if (!feed) {
                damage_fail(damage, PIPELINE_E_VERSION_GONE, NULL);
                return;
        }
        block = next_block(feed, damage->position);
        tail = feed->file->damage ? &feed->file->damage->tail : NULL;
        if (damage->place_count == damage->place_space) {
                damage_answer(damage, true);
        } else if (block) {
                damage_enter(damage, block);
                damage_read(&damage->timer);
        } else {
                if (tail && tail->reason && tail->offset >= damage->position.offset)
                        damage->places[damage->place_count++] = *tail;
                damage_answer(damage, false);
        }
}

static void decode_work(uv_work_t *work) {
        struct damage_request *damage = work->data;
        struct block_input *input = &damage->input;
        struct block_output output;

        do {
                input->places = damage->places + damage->place_count;
                input->place_space = damage->place_space - damage->place_count;
                damage->result = block_decode(input, damage->memory, input->segment_bytes, &output);
                damage->place_count += output.damage_count;
                damage->need_bytes = output.need_bytes;
                input->begin = output.next;
                input->search_offset = output.search_offset;
                input->search_damage = output.search_damage;
        } while (damage->result == STAGE_FULL && damage->place_count < damage->place_space);
}

static void decode_done(uv_work_t *work, int status) {
        struct damage_request *damage = work->data;
        const struct block_input *input = &damage->input;

        (void)status;
        damage->working = false;
        damage->fetch = fetch_job_free(damage->fetch);
        if (damage->canceled) {
                damage_end(damage);
                return;
        }
        damage->position = input->begin;
        damage->search_offset = input->search_offset;
        damage->search_damage = input->search_damage;
        if (damage->result != STAGE_FULL && !input->last &&
            block_position_compare(damage->position, damage->end) < 0) {
                damage_read(&damage->timer);
                return;
        }
        /* Nothing of the block is left, or it is not what it was. */
        if (damage->result != STAGE_FULL)
                damage->position = damage->end;
        damage_go_on(damage);
}

static int damage_decode(struct damage_request *damage, struct feed *feed,
                         const struct fetch_result *result, uint64_t offset) {
        const struct block_file current = feed_identity(feed);
        int r = 0;

        if (!damage->identity.url)
                r = named_file_init(&damage->identity, &current);
        if (!damage->memory)
                damage->memory = aligned_alloc(EXTENT_ALIGNMENT, feed->pipeline->segment_bytes);
        if (r < 0 || !damage->memory)
                return -ENOMEM;
        damage->input = feed_input(feed, result->buffer, offset, result->size_bytes);
        damage->input.file = &damage->identity.file;
        damage->input.begin = damage->position;
        damage->input.end = damage->end;
        damage->input.end_is_open = damage->end_is_open;
        damage->input.search_offset = damage->search_offset;
        damage->input.search_damage = damage->search_damage;
        damage->input.last = offset + result->size_bytes >= damage->bytes_end ||
                             result->size_bytes < damage->asked_bytes;
        damage->work.data = damage;
        return uv_queue_work(feed->pipeline->loop, &damage->work, decode_work, decode_done);
}

static uint64_t piece_offset(const struct damage_request *damage) {
        return damage->search_offset ? damage->search_offset : damage->position.offset;
}

static void on_read(void *userdata, const struct fetch_result *result) {
        struct damage_request *damage = userdata;
        struct feed *feed = damage_feed(damage);
        struct store_failure failure = result->failure; /* the job goes with the answer */
        int r;

        if (!feed) {
                damage_fail(damage, PIPELINE_E_VERSION_GONE, NULL);
                return;
        }
        if (failure.class != STORE_OK && failure.class != STORE_END) {
                damage_fail(damage, PIPELINE_E_UNREADABLE, &failure);
                return;
        }
        r = damage_decode(damage, feed, result, piece_offset(damage));
        if (r < 0)
                damage_fail(damage, r, NULL);
        else
                damage->working = true;
}

static void damage_read(uv_timer_t *timer) {
        struct damage_request *damage = timer->data;
        struct feed *feed = damage_feed(damage);
        struct pipeline *pipeline = damage->request.pipeline;
        uint64_t from = piece_offset(damage), size;
        struct store *store;
        int r;

        if (!feed) {
                damage_fail(damage, PIPELINE_E_VERSION_GONE, NULL);
                return;
        }
        size = min_u64(damage->bytes_end - from, max_u64(damage->piece_bytes, damage->need_bytes));
        damage->source = feed->file->run->source;
        store = damage->source->store;
        if (!fetch_room(pipeline->fetch, store, size)) {
                /* the window and the budget are for all alike */
                uv_timer_start(timer, damage_read, TRY_AGAIN_MS, 0);
                return;
        }
        damage->asked_bytes = size;
        damage->piece_bytes = min_u64(2 * damage->piece_bytes, PIECE_MOST_BYTES);
        r = fetch_job_start(pipeline->fetch, store,
                            &(struct store_read_range){
                                    .name = feed->file->path.bytes,
                                    .name_size = feed->file->path.size,
                                    .offset = from,
                                    .size_bytes = size,
                            },
                            on_read, damage, &damage->fetch);
        if (r < 0)
                damage_fail(damage, r, NULL);
}

static void damage_begin(uv_timer_t *timer) {
        damage_go_on(timer->data);
}

/* What is read already is decoded from a copy of the names. */
static void damage_source_removed(struct pipeline_request *request, struct catalog_source *source,
                                  size_t index) {
        struct damage_request *damage = list_owner(request, struct damage_request, request);

        (void)index;
        if (damage->fetch && damage->source == source && !damage->working)
                damage_fail(damage, PIPELINE_E_VERSION_GONE, NULL);
}

int pipeline_damage(struct pipeline *pipeline, uint64_t file_id, uint64_t file_version,
                    struct pipeline_place from, uint32_t most,
                    void (*on_damage)(void *userdata, int error,
                                      const struct store_failure *failure,
                                      const struct damaged_place *places, uint32_t count,
                                      const struct pipeline_place *next),
                    void *userdata, struct pipeline_request **ret_request) {
        struct damage_request *damage = calloc(1, sizeof(*damage));

        if (damage)
                damage->places = calloc(most, sizeof(damage->places[0]));
        if (!damage || !damage->places) {
                free(damage);
                return -ENOMEM;
        }
        request_init(&damage->request, pipeline, damage_cancel, NULL);
        damage->request.source_removed = damage_source_removed;
        pipeline->open_parts++;
        damage->file_id = file_id;
        damage->file_version = file_version;
        damage->position = (struct block_position){ .offset = from.offset, .index = from.index };
        damage->place_space = most;
        damage->piece_bytes = PIECE_FIRST_BYTES;
        damage->on_damage = on_damage;
        damage->userdata = userdata;
        uv_timer_init(pipeline->loop, &damage->timer);
        damage->timer.data = damage;
        uv_timer_start(&damage->timer, damage_begin, 0, 0);
        *ret_request = &damage->request;
        return 0;
}
