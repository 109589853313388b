/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/job.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/pipeline/feed.h"
#include "daemon/pipeline/part_ahead.h"
#include "daemon/pipeline/reader_state.h"

struct job *job_new(struct feed *feed) {
        struct job *job = calloc(1, sizeof(*job));

        if (!job)
                return NULL;
        job->feed = feed;
        job->first_record_offset = JOB_RECORD_UNKNOWN;
        list_init(&job->node);
        list_init(&job->in_reader);
        list_init(&job->in_ahead);
        list_init(&job->task.node);
        return job;
}

int job_start(struct job *job, void (*on_done)(void *userdata, const struct fetch_result *result)) {
        struct feed *feed = job->feed;
        struct store *store = feed->file->run->source->store;
        const struct store_read_range range = {
                .name = feed->file->path.bytes,
                .name_size = feed->file->path.size,
                .offset = job->offset,
                .size_bytes = job->size_bytes,
                .tag = job->block ? NULL : feed_guard(feed),
        };

        if (!fetch_room(feed->pipeline->fetch, store, job->size_bytes))
                return FEED_E_WINDOW;
        return fetch_job_start(feed->pipeline->fetch, store, &range, on_done, job, &job->fetch);
}

void job_commit(struct job *job, uint64_t ring_bytes, struct reader *charged) {
        struct pipeline *pipeline = job->feed->pipeline;
        uint64_t segments = (ring_bytes + pipeline->segment_bytes - 1) / pipeline->segment_bytes;

        job->committed_bytes = ring_bytes;
        pipeline->committed_bytes += ring_bytes;
        if (!charged)
                return;
        job->charged = charged;
        job->charged_segments = (unsigned)min_u64(segments, reader_quota_left(charged));
        charged->reserved_segments += job->charged_segments;
        list_append(&charged->charged_jobs, &job->in_reader);
}

void job_uncharge(struct job *job) {
        if (!job->charged)
                return;
        job->charged->reserved_segments -= job->charged_segments;
        list_remove(&job->in_reader);
        job->charged = NULL;
}

void job_uncommit(struct job *job) {
        job->feed->pipeline->committed_bytes -= job->committed_bytes;
        job->committed_bytes = 0;
        job_uncharge(job);
}

void job_end(struct job *job) {
        MUST(!job->decoding);
        if (job->block)
                job->block->job = NULL;
        job_uncommit(job);
        part_ahead_drop(job);
        list_remove(&job->node);
        job->fetch = fetch_job_free(job->fetch);
        free(job);
}
