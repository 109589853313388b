/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline of a few variables, in place of the real one: what the server asks of it is noted, and
 * the test decides what happens. Its functions are defined here, so that one test program only
 * includes it; the catalog and the ring are the real ones.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/reader.h"

struct reader {
        const struct reader_operations *operations;
        void *userdata;
        struct reader_options options; /* the lists are not kept */
        char first_tag[64];
        uint64_t pushed, acked;
        unsigned acknowledgements;
        char prioritized[2][16];
        size_t prioritized_count;
};

struct pipeline_request {
        void (*on_removed)(void *userdata);
        void (*on_reloaded)(void *userdata, const struct store_failure *failure);
        void (*on_loaded)(void *userdata, const struct catalog_source *failed);
        void (*on_payload)(void *userdata, int error, const struct store_failure *failure,
                           void *take_memory, uint64_t size_bytes);
        void (*on_damage)(void *userdata, int error, const struct store_failure *failure,
                          const struct damaged_place *places, uint32_t count,
                          const struct pipeline_place *next);
        void *userdata;
        uint64_t offset;
        uint32_t index, most;
};

#define FAKE_REQUESTS_MOST 128

struct pipeline {
        struct catalog catalog;
        struct ring *ring;
        struct fetch_counters fetch_counters;
        struct pipeline_counters counters;
        const struct pipeline_events *events;
        void *events_userdata;
        struct reader *reader; /* the last one */
        unsigned readers, readers_max, asked;
        int add_error;   /* of the next source */
        char added[256]; /* "URL NAME EXCLUDE" of the last one */
        char removed[64];
        struct pipeline_request *requests[FAKE_REQUESTS_MOST]; /* in the order of arrival */
        size_t request_count, cancelled;
};

static struct pipeline fake;

struct catalog *pipeline_catalog(struct pipeline *pipeline) {
        return &pipeline->catalog;
}

struct ring *pipeline_ring(struct pipeline *pipeline) {
        return pipeline->ring;
}

void pipeline_polling(const struct catalog_source *source, struct pipeline_polling *ret_polling) {
        (void)source;
        *ret_polling = (struct pipeline_polling){ .state = "off", .wait_ms = UINT64_MAX };
}

void pipeline_ask(struct pipeline *pipeline) {
        pipeline->asked++;
}

struct fetch *pipeline_fetch(struct pipeline *pipeline) {
        return (struct fetch *)pipeline;
}

const struct fetch_counters *fetch_counters(const struct fetch *fetch) {
        return &((const struct pipeline *)fetch)->fetch_counters;
}

size_t fetch_endpoints(const struct fetch *fetch, struct fetch_endpoint_status *ret_rows,
                       size_t most) {
        (void)fetch;
        if (most)
                ret_rows[0] = (struct fetch_endpoint_status){ .name = "http://host:80",
                                                              .window = 128 };
        return 1;
}

bool pipeline_checks_payloads(const struct pipeline *pipeline) {
        (void)pipeline;
        return true;
}

const struct pipeline_counters *pipeline_counters(const struct pipeline *pipeline) {
        return &pipeline->counters;
}

unsigned pipeline_readers_max(const struct pipeline *pipeline) {
        return pipeline->readers_max;
}

void pipeline_listen(struct pipeline *pipeline, const struct pipeline_events *events,
                     void *userdata) {
        pipeline->events = events;
        pipeline->events_userdata = userdata;
}

static struct pipeline_request *fake_request(struct pipeline *pipeline, void *userdata) {
        struct pipeline_request *request = calloc(1, sizeof(*request));

        MUST(request && pipeline->request_count < FAKE_REQUESTS_MOST);
        request->userdata = userdata;
        pipeline->requests[pipeline->request_count++] = request;
        return request;
}

/* Takes the oldest request, which the test answers and frees. */
static inline struct pipeline_request *fake_take_request(void) {
        struct pipeline_request *request;

        MUST(fake.request_count);
        request = fake.requests[0];
        fake.request_count--;
        memmove(fake.requests, fake.requests + 1, fake.request_count * sizeof(fake.requests[0]));
        return request;
}

void pipeline_request_cancel(struct pipeline_request *request) {
        for (size_t i = 0; i < fake.request_count; i++) {
                if (fake.requests[i] != request)
                        continue;
                fake.request_count--;
                memmove(fake.requests + i, fake.requests + i + 1,
                        (fake.request_count - i) * sizeof(fake.requests[0]));
                break;
        }
        fake.cancelled++;
        free(request);
}

/* The source that is already there stands for what was added. */
int pipeline_add_source(struct pipeline *pipeline, const struct config_source *source,
                        const char **ret_message) {
        char **exclude = source->filter.exclude;

        *ret_message = "no scheme like this";
        snprintf(pipeline->added, sizeof(pipeline->added), "%s %s %s %s", source->url,
                 source->name ? source->name : "-", exclude ? exclude[0] : "-",
                 source->filter.since ? source->filter.since : "-");
        return pipeline->add_error;
}

int pipeline_remove_source(struct pipeline *pipeline, struct catalog_source *source,
                           void (*on_done)(void *userdata), void *userdata,
                           struct pipeline_request **ret_request) {
        snprintf(pipeline->removed, sizeof(pipeline->removed), "%s", source->name);
        *ret_request = fake_request(pipeline, userdata);
        (*ret_request)->on_removed = on_done;
        return 0;
}

int pipeline_reload(struct pipeline *pipeline, struct catalog_source *source,
                    void (*on_done)(void *userdata, const struct store_failure *failure),
                    void *userdata, struct pipeline_request **ret_request) {
        (void)source;
        *ret_request = fake_request(pipeline, userdata);
        (*ret_request)->on_reloaded = on_done;
        return 0;
}

int pipeline_wait_loaded(struct pipeline *pipeline, struct catalog_source *source,
                         void (*on_done)(void *userdata, const struct catalog_source *failed),
                         void *userdata, struct pipeline_request **ret_request) {
        (void)source;
        *ret_request = fake_request(pipeline, userdata);
        (*ret_request)->on_loaded = on_done;
        return 0;
}

int pipeline_payload(struct pipeline *pipeline, uint64_t file_id, uint64_t file_version,
                     uint64_t offset, uint32_t index,
                     void (*on_payload)(void *userdata, int error,
                                        const struct store_failure *failure, void *take_memory,
                                        uint64_t size_bytes),
                     void *userdata, struct pipeline_request **ret_request) {
        (void)file_id, (void)file_version, (void)index;
        *ret_request = fake_request(pipeline, userdata);
        (*ret_request)->on_payload = on_payload;
        (*ret_request)->offset = offset;
        return 0;
}

int pipeline_damage(struct pipeline *pipeline, uint64_t file_id, uint64_t file_version,
                    struct pipeline_place from, uint32_t most,
                    void (*on_damage)(void *userdata, int error,
                                      const struct store_failure *failure,
                                      const struct damaged_place *places, uint32_t count,
                                      const struct pipeline_place *next),
                    void *userdata, struct pipeline_request **ret_request) {
        (void)file_id, (void)file_version;
        *ret_request = fake_request(pipeline, userdata);
        (*ret_request)->on_damage = on_damage;
        (*ret_request)->offset = from.offset;
        (*ret_request)->index = from.index;
        (*ret_request)->most = most;
        return 0;
}

int reader_new(struct pipeline *pipeline, const struct reader_options *options,
               const struct reader_operations *operations, void *userdata,
               struct reader **ret_reader, uint64_t *ret_ring_bytes) {
        struct reader *reader;

        if (pipeline->readers == pipeline->readers_max) {
                *ret_ring_bytes = 123456789;
                return READER_E_NO_ROOM;
        }
        reader = calloc(1, sizeof(*reader));
        MUST(reader);
        reader->operations = operations;
        reader->userdata = userdata;
        reader->options = *options;
        if (options->tag_count)
                snprintf(reader->first_tag, sizeof(reader->first_tag), "%s", options->tags[0]);
        pipeline->readers++;
        pipeline->reader = *ret_reader = reader;
        return 0;
}

struct reader *reader_free(struct reader *reader) {
        if (!reader)
                return NULL;
        fake.readers--;
        if (fake.reader == reader)
                fake.reader = NULL;
        free(reader);
        return NULL;
}

int reader_prioritize(struct reader *reader, const char *const *runs, size_t count) {
        if (reader->options.order == READER_ORDER_SORTED)
                return -EINVAL;
        for (size_t i = 0; i < count && i < ARRAY_SIZE(reader->prioritized); i++)
                snprintf(reader->prioritized[i], sizeof(reader->prioritized[i]), "%s", runs[i]);
        reader->prioritized_count = count;
        return 0;
}

int reader_acknowledge(struct reader *reader, uint64_t acked) {
        if (acked < reader->acked || acked > reader->pushed)
                return -EPROTO;
        reader->acked = acked;
        reader->acknowledgements++;
        return 0;
}

void reader_status(const struct reader *reader, struct reader_status *ret_status) {
        *ret_status = (struct reader_status){ .pushed = reader->pushed,
                                              .acked = reader->acked,
                                              .quota_segments = 2 };
}

/* The operations of the last reader, as the pipeline calls them. */
static inline bool fake_has_room(void) {
        return fake.reader->operations->has_room(fake.reader->userdata);
}

static inline void fake_push(const struct ring_entry *entry, const void *extent) {
        fake.reader->pushed++;
        fake.reader->operations->push(fake.reader->userdata, entry, extent);
}

static inline void fake_flush(void) {
        fake.reader->operations->flush(fake.reader->userdata);
}
