/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value of one TFRecord, read again: first what is likely to hold it, then, if its header says
 * that it is longer, the rest. Decoding runs on libuv's thread pool, as a payload may be as large
 * as the budget.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/pipeline/named_file.h"
#include "daemon/pipeline/request.h"

#define FIRST_READ_BYTES (1ull << 20)
#define FRAMING_BYTES 16u
#define HEADER_BYTES 12u
#define TRY_AGAIN_MS 20

struct payload_request {
        struct pipeline_request request;
        uint64_t file_id, file_version;
        struct block_position position;
        void (*on_payload)(void *userdata, int error, const struct store_failure *failure,
                           void *take_memory, uint64_t size_bytes);
        void *userdata;
        uint64_t read_bytes;
        struct fetch_job *fetch;
        const struct catalog_source *source; /* whose store it reads from */
        struct fetch_result result;
        struct named_file identity;
        struct block_input input;
        uv_work_t work;
        uv_timer_t timer;
        int error;
        void *memory;
        uint64_t size_bytes;
        bool working, canceled;
};

static void payload_free(uv_handle_t *handle) {
        struct payload_request *payload = handle->data;

        free(payload->memory);
        named_file_deinit(&payload->identity);
        payload->request.pipeline->open_parts--;
        pipeline_part_closed(payload->request.pipeline);
        free(payload);
}

static void payload_end(struct payload_request *payload) {
        payload->fetch = fetch_job_free(payload->fetch);
        request_deinit(&payload->request);
        uv_close((uv_handle_t *)&payload->timer, payload_free);
}

static void payload_cancel(struct pipeline_request *request) {
        struct payload_request *payload = list_owner(request, struct payload_request, request);

        payload->canceled = true;
        if (!payload->working)
                payload_end(payload);
}

static void payload_answer(struct payload_request *payload, int error,
                           const struct store_failure *failure) {
        void *memory = steal_pointer(&payload->memory);

        if (!payload->canceled)
                payload->on_payload(payload->userdata, error, failure, memory,
                                    error ? 0 : payload->size_bytes);
        else
                free(memory);
        payload_end(payload);
}

static void payload_fail(struct payload_request *payload, const char *code, const char *message) {
        struct store_failure failure = { .class = STORE_PERMANENT };

        snprintf(failure.code, sizeof(failure.code), "%s", code);
        snprintf(failure.message, sizeof(failure.message), "%s", message);
        payload_answer(payload, PIPELINE_E_UNREADABLE, &failure);
}

static void decode_work(uv_work_t *work) {
        struct payload_request *payload = work->data;

        payload->error = block_decode_value(&payload->input, &payload->memory,
                                            &payload->size_bytes);
}

static void decode_done(uv_work_t *work, int status) {
        struct payload_request *payload = work->data;

        (void)status;
        payload->working = false;
        if (payload->canceled)
                payload_end(payload);
        else if (payload->error == STAGE_CORRUPT || payload->error == STAGE_MORE)
                payload_fail(payload, "damaged", "no such value can be decoded there");
        else
                payload_answer(payload, payload->error, NULL);
}

static struct feed *payload_feed(const struct payload_request *payload) {
        struct catalog_file *file = catalog_find_file(&payload->request.pipeline->catalog,
                                                      payload->file_id);
        struct feed *feed = file ? file->blocks : NULL;

        return feed && !feed->gone && file->version == payload->file_version ? feed : NULL;
}

static void payload_decode(struct payload_request *payload, struct feed *feed) {
        const struct block_file current = feed_identity(feed);
        int r = named_file_init(&payload->identity, &current);

        payload->input = feed_input(feed, payload->result.buffer, payload->position.offset,
                                    payload->result.size_bytes);
        payload->input.file = &payload->identity.file;
        payload->input.begin = payload->position;
        payload->input.search_offset = 0;
        payload->input.last = true;
        payload->work.data = payload;
        if (r == 0)
                r = uv_queue_work(feed->pipeline->loop, &payload->work, decode_work, decode_done);
        if (r < 0)
                payload_answer(payload, r, NULL);
        else
                payload->working = true;
}

static void payload_read(uv_timer_t *timer);

/*
 * What the TFRecord's header says; 0: it is cut off. Whether the header is right is the decoder's
 * matter.
 */
static uint64_t record_bytes(const struct fetch_result *result) {
        uint64_t length;

        if (result->size_bytes < HEADER_BYTES)
                return 0;
        memcpy(&length, result->buffer, sizeof(length));
        return length > UINT64_MAX - FRAMING_BYTES ? UINT64_MAX : length + FRAMING_BYTES;
}

static void on_read(void *userdata, const struct fetch_result *result) {
        struct payload_request *payload = userdata;
        struct feed *feed = payload_feed(payload);
        struct store_failure failure = result->failure; /* the job goes with the answer */
        uint64_t needed;

        if (!feed) {
                payload_answer(payload, PIPELINE_E_VERSION_GONE, NULL);
                return;
        }
        if (result->failure.class != STORE_OK) {
                payload_answer(payload, PIPELINE_E_UNREADABLE, &failure);
                return;
        }
        payload->result = *result;
        needed = record_bytes(result);
        if (needed > feed->pipeline->options.record_max_bytes + FRAMING_BYTES) {
                payload_fail(payload, "too large", "the record is larger than record_max");
        } else if (needed > result->size_bytes && result->size_bytes == payload->read_bytes) {
                payload->read_bytes = needed;
                payload->fetch = fetch_job_free(payload->fetch);
                payload_read(&payload->timer);
        } else {
                payload_decode(payload, feed);
        }
}

static void payload_read(uv_timer_t *timer) {
        struct payload_request *payload = timer->data;
        struct feed *feed = payload_feed(payload);
        struct pipeline *pipeline = payload->request.pipeline;
        struct store *store;
        int r;

        if (!feed) {
                payload_answer(payload, PIPELINE_E_VERSION_GONE, NULL);
                return;
        }
        payload->source = feed->file->run->source;
        store = payload->source->store;
        if (!fetch_room(pipeline->fetch, store, payload->read_bytes)) {
                /* the window and the budget are for all alike */
                uv_timer_start(timer, payload_read, TRY_AGAIN_MS, 0);
                return;
        }
        r = fetch_job_start(pipeline->fetch, store,
                            &(struct store_read_range){
                                    .name = feed->file->path.bytes,
                                    .name_size = feed->file->path.size,
                                    .offset = payload->position.offset,
                                    .size_bytes = payload->read_bytes,
                            },
                            on_read, payload, &payload->fetch);
        if (r < 0)
                payload_answer(payload, r, NULL);
}

/* What is read already is decoded from a copy of the names. */
static void payload_source_removed(struct pipeline_request *request, struct catalog_source *source,
                                   size_t index) {
        struct payload_request *payload = list_owner(request, struct payload_request, request);

        (void)index;
        if (payload->fetch && payload->source == source && !payload->working)
                payload_answer(payload, PIPELINE_E_VERSION_GONE, NULL);
}

int pipeline_payload(struct pipeline *pipeline, uint64_t file_id, uint64_t file_version,
                     uint64_t offset, uint32_t index,
                     void (*on_payload)(void *userdata, int error,
                                        const struct store_failure *failure, void *take_memory,
                                        uint64_t size_bytes),
                     void *userdata, struct pipeline_request **ret_request) {
        struct payload_request *payload = calloc(1, sizeof(*payload));

        if (!payload)
                return -ENOMEM;
        request_init(&payload->request, pipeline, payload_cancel, NULL);
        payload->request.source_removed = payload_source_removed;
        pipeline->open_parts++;
        payload->file_id = file_id;
        payload->file_version = file_version;
        payload->position = (struct block_position){ .offset = offset, .index = index };
        payload->on_payload = on_payload;
        payload->userdata = userdata;
        payload->read_bytes = FIRST_READ_BYTES;
        uv_timer_init(pipeline->loop, &payload->timer);
        payload->timer.data = payload;
        uv_timer_start(&payload->timer, payload_read, 0, 0);
        *ret_request = &payload->request;
        return 0;
}
