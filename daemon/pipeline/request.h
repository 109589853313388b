/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that the pipeline answers later: reload, wait_loaded. payload.c has those that read one
 * value, damage.c those that name what is damaged. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

struct pipeline_request {
        struct list node; /* in pipeline->requests */
        struct pipeline *pipeline;
        void (*cancel)(struct pipeline_request *request); /* frees it */
        /* a listing ended; may be NULL */
        void (*listed)(struct pipeline_request *request, struct catalog_source *source);
        /*
         * a source, so far at that index of the catalog, goes: forget it, or answer; NULL: it does
         * not matter
         */
        void (*source_removed)(struct pipeline_request *request, struct catalog_source *source,
                               size_t index);
};

void request_init(struct pipeline_request *request, struct pipeline *pipeline,
                  void (*cancel)(struct pipeline_request *request),
                  void (*listed)(struct pipeline_request *request, struct catalog_source *source));
void request_deinit(struct pipeline_request *request);

/* The file is settled, or gone: nobody waits for it any more. */
void requests_feed_settled(struct feed *feed);

/* A listing of the source ended. */
void requests_listed(struct pipeline *pipeline, struct catalog_source *source);

/* The source, which is still in the catalog, goes. */
void requests_source_removed(struct pipeline *pipeline, struct catalog_source *source,
                             size_t index);
