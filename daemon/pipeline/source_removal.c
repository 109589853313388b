/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two life cycles: the removal itself, which ends when the source has no files left, and the request
 * of whoever waits for that, which may end before.
 */
#include "daemon/pipeline/source_removal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/pipeline/feed.h"
#include "daemon/pipeline/reader_state.h"
#include "daemon/pipeline/request.h"
#include "daemon/pipeline/unread.h"

struct remove_request {
        struct pipeline_request request;
        struct catalog_source *source; /* NULL: it is gone */
        void (*on_done)(void *userdata);
        void *userdata;
};

static struct pipeline *pipeline_of(const struct catalog_source *source) {
        return source->removed_from;
}

static void remove_cancel(struct pipeline_request *request) {
        struct remove_request *remove = list_owner(request, struct remove_request, request);

        if (remove->source)
                remove->source->removal = NULL;
        request_deinit(request);
        free(remove);
}

/* In each pass: nothing is answered from inside of what ends the removal. */
static void remove_look(struct pipeline_request *request, struct catalog_source *listed) {
        struct remove_request *remove = list_owner(request, struct remove_request, request);
        void (*on_done)(void *userdata) = remove->on_done;
        void *userdata = remove->userdata;

        (void)listed;
        if (remove->source)
                return;
        remove_cancel(request);
        on_done(userdata);
}

static void on_closed(void *userdata) {
        struct pipeline *pipeline = userdata;

        pipeline->open_parts--;
        pipeline_part_closed(pipeline);
}

/* Nothing of it is left but its store. */
static void removal_end(struct catalog_source *source) {
        struct pipeline *pipeline = pipeline_of(source);
        struct remove_request *remove = source->removal;
        struct store *store = source->store;

        if (remove)
                remove->source = NULL;
        list_remove(&source->in_removals);
        catalog_free_source(source);
        pipeline->open_parts++;
        store->operations->close(store, on_closed, pipeline);
        pipeline_touch(pipeline);
}

void source_removal_look(struct catalog_source *source) {
        if (source->removed_from && !source->removing_files && source->run_count == 0)
                removal_end(source);
}

void source_removal_end_all(struct pipeline *pipeline) {
        list_for_each(node, &pipeline->removals) {
                struct catalog_source *source = list_owner(node, struct catalog_source,
                                                           in_removals);

                for (size_t i = 0; i < source->run_count; i++)
                        for (size_t f = 0; f < source->runs[i]->file_count; f++)
                                if (source->runs[i]->files[f]->blocks)
                                        feed_free(source->runs[i]->files[f]->blocks);
                removal_end(source);
        }
}

bool source_removal_has(const struct pipeline *pipeline, const char *url) {
        for (const struct list *node = pipeline->removals.next; node != &pipeline->removals;
             node = node->next) {
                const struct catalog_source *source = list_owner(node, struct catalog_source,
                                                                 in_removals);

                if (strcmp(source->store->url, url) == 0)
                        return true;
        }
        return false;
}

static void remove_file(struct catalog_file *file) {
        struct feed *feed = file->blocks;

        if (!feed)
                unread_gone(pipeline_of(file->run->source), file);
        else if (!feed->gone)
                feed_gone(feed);
}

/* Backwards, as files and runs leave the catalog meanwhile. */
static void remove_files(struct catalog_source *source) {
        source->removing_files = true;
        for (size_t i = source->run_count; i-- > 0;) {
                struct catalog_run *run = source->runs[i];

                for (size_t k = run->file_count; k-- > 0;) {
                        bool last = run->file_count == 1;

                        remove_file(run->files[k]);
                        if (last)
                                break; /* the run may be gone with it */
                }
        }
        source->removing_files = false;
}

static void remove_source(struct pipeline *pipeline, struct catalog_source *source, size_t index) {
        source->removed_from = pipeline;
        source->state = CATALOG_SOURCE_FAILING;
        source->failure = (struct store_failure){ .class = STORE_PERMANENT,
                                                  .code = "removed",
                                                  .message = "the source was removed" };
        requests_source_removed(pipeline, source, index);
        readers_source_removed(pipeline, source, index);
        PIPELINE_TELL(pipeline, source_removed, source);
        catalog_take_source(source, index);
        list_append(&pipeline->removals, &source->in_removals);
        pipeline->open_parts++;
        watch_close(steal_pointer(&source->watch), on_closed, pipeline);
        remove_files(source);
        source_removal_look(source);
}

int pipeline_remove_source(struct pipeline *pipeline, struct catalog_source *source,
                           void (*on_done)(void *userdata), void *userdata,
                           struct pipeline_request **ret_request) {
        struct remove_request *remove = calloc(1, sizeof(*remove));
        size_t index = 0;

        if (!remove)
                return -ENOMEM;
        while (pipeline->catalog.sources[index] != source)
                index++;
        request_init(&remove->request, pipeline, remove_cancel, remove_look);
        remove->source = source;
        remove->on_done = on_done;
        remove->userdata = userdata;
        source->removal = remove;
        *ret_request = &remove->request;
        remove_source(pipeline, source, index);
        pipeline_touch(pipeline);
        return 0;
}
