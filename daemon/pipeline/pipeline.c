/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiring. Whatever happens (an answer, an extent, an acknowledgement, a listing) touches the
 * pipeline; one pass in the next turn of the loop then lets every reader deliver, gives the
 * decoders segments, and sends the jobs that may go out.
 */
#include "daemon/pipeline/pipeline.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/core/log.h"
#include "daemon/discover/filter.h"
#include "daemon/pipeline/hold.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/request.h"
#include "daemon/pipeline/reread.h"
#include "daemon/pipeline/residency.h"
#include "daemon/pipeline/schedule.h"
#include "daemon/pipeline/source_removal.h"
#include "daemon/pipeline/unread.h"

#define DECODERS_MOST 16u
#define RETRY_LOOK_MS 1000
#define TRIM_LEAST 1000u /* files listed and extents published since the last time */

/*
 * A long listing and a load leave holes on the heap, which go back to the system when nothing is
 * under way: not after each poll, as that looks through all of the heap.
 */
static void trim_after_load(struct pipeline *pipeline) {
        uint64_t done = pipeline->counters.extents + pipeline->catalog.files.count;

        if (pipeline->committed_bytes > 0)
                return;
        if (done > pipeline->trimmed_at + TRIM_LEAST) {
#ifdef __GLIBC__
                malloc_trim(0);
#endif
                pipeline->trimmed_at = done;
        } else if (done < pipeline->trimmed_at) {
                pipeline->trimmed_at = done;
        }
}

static void on_pass(uv_idle_t *idle) {
        struct pipeline *pipeline = idle->data;

        uv_idle_stop(idle);
        if (pipeline->closing)
                return;
        pipeline->ahead_marked = false;
        requests_listed(pipeline, NULL);
        list_for_each(node, &pipeline->readers) reader_pump(list_owner(node, struct reader, node));
        residency_grant(pipeline);
        reread_start_due(pipeline);
        schedule(pipeline);
        list_for_each(node, &pipeline->readers)
                reader_set_kick(list_owner(node, struct reader, node));
        trim_after_load(pipeline);
}

void pipeline_touch(struct pipeline *pipeline) {
        if (!pipeline->closing && !uv_is_active((uv_handle_t *)&pipeline->pass))
                uv_idle_start(&pipeline->pass, on_pass);
}

static void on_room(void *userdata) {
        pipeline_touch(userdata);
}

static void on_batch(void *userdata) {
        residency_grant(userdata);
        pipeline_touch(userdata);
}

static void on_segment(void *userdata, const struct decoder_event *event) {
        struct pipeline *pipeline = userdata;
        struct ring_status status;

        if (event->type == DECODER_SEGMENT_FULL) {
                ring_close(pipeline->ring, event->segment);
                return;
        }
        ring_stop_growing(pipeline->ring, event->segment);
        ring_status(pipeline->ring, &status);
        pipeline->segments_usable = status.segments_used;
        log_warning("no memory for more of the ring", "segments=%u of=%u", status.segments_used,
                    status.segment_count);
}

void pipeline_retry_due(struct pipeline *pipeline) {
        uint64_t now = pipeline_now_ns(pipeline);

        list_for_each(node, &pipeline->failed) {
                struct feed *feed = list_owner(node, struct feed, queue);

                if (feed->retry_at_ns <= now)
                        feed_retry(feed);
        }
        list_for_each(node, &pipeline->archived) {
                struct feed *feed = list_owner(node, struct feed, queue);

                if (feed->retry_at_ns > now)
                        break;
                feed_retry(feed);
        }
}

static void on_retry(uv_timer_t *timer) {
        struct pipeline *pipeline = timer->data;

        pipeline_retry_due(pipeline);
        pipeline_watch_failed(pipeline);
}

/*
 * Failed files are looked at from time to time, while there are any; of archived ones it is known
 * when.
 */
void pipeline_watch_failed(struct pipeline *pipeline) {
        uint64_t now = pipeline_now_ns(pipeline), wait_ms = RETRY_LOOK_MS;

        if (list_is_empty(&pipeline->failed)) {
                const struct feed *first = list_owner(pipeline->archived.next, struct feed, queue);

                if (list_is_empty(&pipeline->archived)) {
                        uv_timer_stop(&pipeline->retry);
                        return;
                }
                if (first->retry_at_ns > now)
                        wait_ms = max_u64(wait_ms, (first->retry_at_ns - now) / 1000000);
        }
        if (!uv_is_active((uv_handle_t *)&pipeline->retry) ||
            uv_timer_get_due_in(&pipeline->retry) > wait_ms)
                uv_timer_start(&pipeline->retry, on_retry, wait_ms, 0);
}

static int on_file_changed(void *userdata, struct catalog_file *file, enum watch_change change) {
        struct pipeline *pipeline = userdata;

        if (!file->blocks)
                return unread_listed(pipeline, file);
        feed_changed(file->blocks, change);
        return 0;
}

static void on_file_gone(void *userdata, struct catalog_file *file) {
        if (file->blocks)
                feed_gone(file->blocks);
        else
                unread_gone(userdata, file);
}

static void on_listed(void *userdata, struct catalog_source *source, bool complete) {
        struct pipeline *pipeline = userdata;

        if (!complete && source->state == CATALOG_SOURCE_FAILING)
                PIPELINE_TELL(pipeline, source_failing, source);
        if (complete && source->was_failing)
                PIPELINE_TELL(pipeline, source_recovered, source);
        source->was_failing = source->state == CATALOG_SOURCE_FAILING;
        requests_listed(pipeline, source);
        PIPELINE_TELL(pipeline, progress, source);
        pipeline_touch(pipeline);
}

static const struct watch_events watch_events = { on_file_changed, on_file_gone, on_listed };

static unsigned decoder_count(const struct pipeline *pipeline) {
        unsigned wanted = pipeline->options.decoders, most = pipeline->segment_count / 16;
        long cores = sysconf(_SC_NPROCESSORS_ONLN);

        if (wanted == 0)
                wanted = cores > 0 ? (unsigned)cores : 1;
        wanted = wanted < DECODERS_MOST ? wanted : DECODERS_MOST;
        return wanted < most ? wanted : most;
}

/*
 * Memory for the least that the decoders and one reader need: a ring that does not even have that
 * is refused, not a standstill later.
 */
static int prepare_least(const struct pipeline *pipeline) {
        uint32_t least = 2 * decoder_count(pipeline) + 1 + READER_FLOOR_SEGMENTS;
        unsigned long long needed = least * pipeline->segment_bytes;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < least; i++)
                r = ring_segment_prepare(pipeline->ring, i);
        if (r < 0)
                log_error("no memory for the ring",
                          "needed=%llu reason=%s; try a smaller ring (-m)", needed, strerror(-r));
        return r;
}

static int pipeline_init(struct pipeline *pipeline) {
        struct pipeline_options *options = &pipeline->options;
        struct fetch_options fetch = {
                .inflight_bytes_max = options->inflight_bytes,
                .connections_max = options->connections_max,
                .window_start = options->window_start,
                .requests_per_second_max = options->requests_per_second_max,
                .bytes_per_second_max = options->bytes_per_second_max,
                .tries_max = 10,
                .give_up_ns = 120 * 1000000000ull,
        };
        CLEANUP(freep) char *error = NULL;
        struct ring_status status;
        int r;

        r = ring_new(options->ring_bytes, options->huge, &pipeline->ring, &error);
        if (r < 0) {
                log_error("cannot make the ring", "size=%llu reason=%s",
                          (unsigned long long)options->ring_bytes, error ? error : strerror(-r));
                return r;
        }
        ring_status(pipeline->ring, &status);
        pipeline->segment_count = pipeline->segments_usable = status.segment_count;
        pipeline->segment_bytes = status.segment_bytes;
        if (options->record_max_bytes == 0)
                options->record_max_bytes = options->inflight_bytes;
        options->payload_inline_max_bytes = (uint32_t)min_u64(options->payload_inline_max_bytes,
                                                              pipeline->segment_bytes / 2);
        r = prepare_least(pipeline);
        if (r == 0)
                r = residency_init(pipeline);
        if (r == 0)
                r = fetch_new(pipeline->loop, &fetch, &pipeline->fetch);
        if (r == 0)
                r = decoder_pool_new(pipeline->loop, pipeline->ring, decoder_count(pipeline),
                                     on_segment, on_batch, pipeline, &pipeline->pool);
        if (r == 0)
                fetch_on_room(pipeline->fetch, on_room, pipeline);
        return r;
}

int pipeline_new(uv_loop_t *loop, const struct pipeline_options *options,
                 struct pipeline **ret_pipeline) {
        struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
        int r;

        if (!pipeline)
                return -ENOMEM;
        pipeline->loop = loop;
        pipeline->options = *options;
        catalog_init(&pipeline->catalog);
        list_init(&pipeline->readers);
        list_init(&pipeline->hungry);
        list_init(&pipeline->unread);
        list_init(&pipeline->failed);
        list_init(&pipeline->archived);
        list_init(&pipeline->removals);
        list_init(&pipeline->requests);
        list_init(&pipeline->ahead);
        uv_idle_init(loop, &pipeline->pass);
        uv_timer_init(loop, &pipeline->retry);
        hold_init(pipeline);
        reread_init(pipeline);
        pipeline->pass.data = pipeline->retry.data = pipeline;
        r = pipeline_init(pipeline);
        if (r < 0) {
                pipeline_close(pipeline, NULL, NULL);
                return r;
        }
        ring_set_state(pipeline->ring, RING_STATE_SERVING);
        *ret_pipeline = pipeline;
        return 0;
}

/* The last one to close frees everything. */
void pipeline_part_closed(struct pipeline *pipeline) {
        void (*on_closed)(void *userdata) = pipeline->on_closed;
        void *userdata = pipeline->closed_userdata;

        if (!pipeline->closing || pipeline->open_parts > 0)
                return;
        catalog_deinit(&pipeline->catalog);
        residency_deinit(pipeline);
        ring_free(pipeline->ring);
        free(pipeline);
        if (on_closed)
                on_closed(userdata);
}

static void on_part_closed(void *userdata) {
        struct pipeline *pipeline = userdata;

        pipeline->open_parts--;
        pipeline_part_closed(pipeline);
}

static void on_handle_closed(uv_handle_t *handle) {
        on_part_closed(handle->data);
}

/* Feeds end after the decoders and before the fetch module, whose jobs they hold. */
static void on_pool_closed(void *userdata) {
        struct pipeline *pipeline = userdata;
        struct catalog *catalog = &pipeline->catalog;

        for (size_t i = 0; i < catalog->source_count; i++) {
                for (size_t k = 0; k < catalog->sources[i]->run_count; k++)
                        for (size_t f = 0; f < catalog->sources[i]->runs[k]->file_count; f++)
                                if (catalog->sources[i]->runs[k]->files[f]->blocks)
                                        feed_free(catalog->sources[i]->runs[k]->files[f]->blocks);
                pipeline->open_parts += 2;
                watch_close(catalog->sources[i]->watch, on_part_closed, pipeline);
                catalog->sources[i]->store->operations->close(catalog->sources[i]->store,
                                                              on_part_closed, pipeline);
        }
        source_removal_end_all(pipeline);
        if (pipeline->fetch) {
                pipeline->open_parts++;
                fetch_close(pipeline->fetch, on_part_closed, pipeline);
        }
        on_part_closed(pipeline);
}

void pipeline_close(struct pipeline *pipeline, void (*on_closed)(void *userdata), void *userdata) {
        MUST(list_is_empty(&pipeline->readers));
        pipeline->closing = true;
        pipeline->on_closed = on_closed;
        pipeline->closed_userdata = userdata;
        /* the pass, the retries, the holds, the rereads, and what on_pool_closed() ends */
        pipeline->open_parts += 5;
        list_for_each(node, &pipeline->requests)
                pipeline_request_cancel(list_owner(node, struct pipeline_request, node));
        uv_close((uv_handle_t *)&pipeline->pass, on_handle_closed);
        uv_close((uv_handle_t *)&pipeline->retry, on_handle_closed);
        hold_close(pipeline);
        reread_close(pipeline);
        if (pipeline->ring)
                ring_set_state(pipeline->ring, RING_STATE_GONE);
        if (pipeline->pool)
                decoder_pool_close(pipeline->pool, on_pool_closed, pipeline);
        else
                on_pool_closed(pipeline);
}

void pipeline_listen(struct pipeline *pipeline, const struct pipeline_events *events,
                     void *userdata) {
        pipeline->events = events;
        pipeline->events_userdata = userdata;
}

/* File systems are listed as fast as what is remembered of them would be read. */
static const char *remember_where(const struct pipeline *pipeline, const struct store *store) {
        return strcmp(store->endpoint, "file") != 0 ? pipeline->options.remember : NULL;
}

static unsigned window_of(void *userdata, const struct catalog_source *source) {
        const struct pipeline *pipeline = userdata;

        return fetch_window(pipeline->fetch, source->store);
}

/* What is configured goes before what the store says; file systems cost nothing. */
static void set_price(const struct pipeline *pipeline, struct catalog_source *source) {
        for (unsigned i = 0; i < REQUEST_KINDS; i++)
                if (pipeline->options.price_nano_usd[i] != UINT64_MAX &&
                    strcmp(source->store->endpoint, "file") != 0)
                        source->price.nano_usd[i] = pipeline->options.price_nano_usd[i];
}

static int watch_source(struct pipeline *pipeline, struct catalog_source *source) {
        const struct watch_options options = {
                .poll_ns = pipeline->options.poll_ns,
                .requests_per_day_max = pipeline->options.requests_per_day_max,
                .remember = remember_where(pipeline, source->store),
                .window = window_of,
        };
        int r = watch_new(pipeline->loop, source, &options, &watch_events, pipeline,
                          &source->watch);

        if (r == 0 && pipeline->follower_count > 0)
                watch_set_interest(source->watch, WATCH_FOLLOWED);
        return r;
}

int pipeline_add_source(struct pipeline *pipeline, const struct config_source *configured,
                        const char **ret_message) {
        struct catalog_source *source = NULL;
        struct filter *filter = NULL;
        struct store *store = NULL;
        int r;

        r = filter_new(&configured->filter, (int64_t)time(NULL) * 1000000000, &filter);
        if (r < 0)
                return r;
        r = store_open_with(pipeline->loop, configured->url, &configured->access, &store,
                            ret_message);
        if (r == 0 && source_removal_has(pipeline, store->url)) {
                store->operations->close(store, NULL, NULL);
                r = -EBUSY;
        }
        if (r == 0)
                r = catalog_add_source(&pipeline->catalog, configured->name, store, &source);
        if (r < 0) {
                filter_free(filter);
                return r;
        }
        MUST(source);
        source->filter = filter;
        set_price(pipeline, source);
        r = watch_source(pipeline, source);
        if (r < 0) {
                catalog_remove_source(source);
                store->operations->close(store, NULL, NULL);
                return r;
        }
        PIPELINE_TELL(pipeline, source_added, source);
        return 0;
}

void pipeline_ask(struct pipeline *pipeline) {
        for (size_t i = 0; i < pipeline->catalog.source_count; i++)
                watch_ask(pipeline->catalog.sources[i]->watch);
}

void pipeline_polling(const struct catalog_source *source, struct pipeline_polling *ret_polling) {
        *ret_polling = (struct pipeline_polling){
                .state = watch_polling_name(watch_polling(source->watch)),
                .wait_ms = watch_wait_ms(source->watch),
                .events = watch_hears(source->watch) ? source->store->events : NULL,
        };
}

struct catalog *pipeline_catalog(struct pipeline *pipeline) {
        return &pipeline->catalog;
}

struct ring *pipeline_ring(struct pipeline *pipeline) {
        return pipeline->ring;
}

struct fetch *pipeline_fetch(struct pipeline *pipeline) {
        return pipeline->fetch;
}

const struct pipeline_counters *pipeline_counters(const struct pipeline *pipeline) {
        return &pipeline->counters;
}

bool pipeline_checks_payloads(const struct pipeline *pipeline) {
        return !pipeline->options.length_crc_only;
}
