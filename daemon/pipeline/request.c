/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_loaded first waits for the listing that it is about, then for each file of it that is not
 * settled yet: a waiter hangs on each, and the last one answers.
 */
#include "daemon/pipeline/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/pipeline/unread.h"

#define RELOAD_RETRIES 2

struct waiter {
        struct list in_feed; /* feed->waiters */
        struct wait_request *wait;
};

struct wait_request {
        struct pipeline_request request;
        struct catalog_source *source; /* NULL: all */
        void (*on_done)(void *userdata, const struct catalog_source *failed);
        void *userdata;
        struct waiter *waiters;
        size_t waiter_count, left;
        bool begun; /* the listings are there */
};

struct reload_source {
        uint64_t attempt; /* 0: not asked for, or done */
        bool confirmed;   /* a second listing was asked for, as the first one missed files */
};

struct reload_request {
        struct pipeline_request request;
        struct catalog_source *source; /* NULL: all */
        void (*on_done)(void *userdata, const struct store_failure *failure);
        void *userdata;
        struct reload_source *wanted; /* for each source of the catalog */
        size_t source_count, left;
        struct store_failure failure; /* the first one */
};

void request_init(struct pipeline_request *request, struct pipeline *pipeline,
                  void (*cancel)(struct pipeline_request *request),
                  void (*listed)(struct pipeline_request *request, struct catalog_source *source)) {
        request->pipeline = pipeline;
        request->cancel = cancel;
        request->listed = listed;
        list_init(&request->node);
        list_append(&pipeline->requests, &request->node);
}

void request_deinit(struct pipeline_request *request) {
        list_remove(&request->node);
}

void pipeline_request_cancel(struct pipeline_request *request) {
        request->cancel(request);
}

/*
 * Takes the first of the requests that are left, and puts it behind those that were looked at: each
 * is looked at once, and whoever is answered may cancel any other.
 */
static struct pipeline_request *next_request(struct pipeline *pipeline, struct list *looked_at) {
        struct list *node = pipeline->requests.next;

        if (list_is_empty(&pipeline->requests))
                return NULL;
        list_remove(node);
        list_append(looked_at, node);
        return list_owner(node, struct pipeline_request, node);
}

static void put_back(struct pipeline *pipeline, struct list *looked_at) {
        while (!list_is_empty(looked_at)) {
                struct list *node = looked_at->next;

                list_remove(node);
                list_append(&pipeline->requests, node);
        }
}

void requests_listed(struct pipeline *pipeline, struct catalog_source *source) {
        struct pipeline_request *request;
        struct list looked_at;

        list_init(&looked_at);
        while ((request = next_request(pipeline, &looked_at)))
                if (request->listed)
                        request->listed(request, source);
        put_back(pipeline, &looked_at);
}

void requests_source_removed(struct pipeline *pipeline, struct catalog_source *source,
                             size_t index) {
        struct pipeline_request *request;
        struct list looked_at;

        list_init(&looked_at);
        while ((request = next_request(pipeline, &looked_at)))
                if (request->source_removed)
                        request->source_removed(request, source, index);
        put_back(pipeline, &looked_at);
}

static void wait_cancel(struct pipeline_request *request) {
        struct wait_request *wait = list_owner(request, struct wait_request, request);

        for (size_t i = 0; i < wait->waiter_count; i++)
                list_remove(&wait->waiters[i].in_feed);
        wait->request.pipeline->waiting--;
        request_deinit(request);
        free(wait->waiters);
        free(wait);
}

static void wait_answer(struct wait_request *wait, const struct catalog_source *failed) {
        void (*on_done)(void *userdata, const struct catalog_source *failed_source) = wait->on_done;
        void *userdata = wait->userdata;

        wait_cancel(&wait->request);
        on_done(userdata, failed);
}

/* Whoever is answered may cancel any other: from the start each time. */
void requests_feed_settled(struct feed *feed) {
        while (!list_is_empty(&feed->waiters)) {
                struct wait_request *wait =
                        list_owner(feed->waiters.next, struct waiter, in_feed)->wait;

                list_remove(feed->waiters.next);
                if (--wait->left == 0)
                        wait_answer(wait, NULL);
        }
}

/* Calls visit for each file of the source, or of all. */
static void for_each_file(const struct catalog *catalog, const struct catalog_source *source,
                          void (*visit)(struct wait_request *wait, struct catalog_file *file),
                          struct wait_request *wait) {
        for (size_t i = 0; i < catalog->source_count; i++) {
                struct catalog_source *s = catalog->sources[i];

                for (size_t k = 0; (!source || s == source) && k < s->run_count; k++)
                        for (size_t f = 0; f < s->runs[k]->file_count; f++)
                                visit(wait, s->runs[k]->files[f]);
        }
}

/* Each that is waited for has a feed. -ENOMEM. */
static int wake_unread(struct pipeline *pipeline, const struct catalog_source *source) {
        list_for_each(node, &pipeline->unread) {
                struct catalog_file *file = list_owner(node, struct catalog_file, unread);
                struct feed *feed;

                if ((!source || file->run->source == source) &&
                    unread_wake(pipeline, file, &feed) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static void count_unsettled(struct wait_request *wait, struct catalog_file *file) {
        if (!file->settled && file->blocks)
                wait->left++;
}

static void hang_waiter(struct wait_request *wait, struct catalog_file *file) {
        struct feed *feed = file->blocks;

        if (file->settled || !feed)
                return;
        wait->waiters[wait->waiter_count].wait = wait;
        list_append(&feed->waiters, &wait->waiters[wait->waiter_count++].in_feed);
}

/* The listings are there: waits for what they name. -ENOMEM: tries again with the next news. */
static void wait_begin(struct wait_request *wait) {
        const struct catalog *catalog = &wait->request.pipeline->catalog;

        wait->left = 0;
        if (wake_unread(wait->request.pipeline, wait->source) < 0)
                return;
        for_each_file(catalog, wait->source, count_unsettled, wait);
        if (wait->left == 0) {
                wait_answer(wait, NULL);
                return;
        }
        wait->waiters = calloc(wait->left, sizeof(wait->waiters[0]));
        if (!wait->waiters)
                return;
        wait->begun = true;
        for_each_file(catalog, wait->source, hang_waiter, wait);
        pipeline_touch(wait->request.pipeline);
}

/* Goes on when every source it is about has been listed; answers when one cannot be. */
static void wait_look(struct wait_request *wait) {
        const struct catalog *catalog = &wait->request.pipeline->catalog;

        for (size_t i = 0; i < catalog->source_count; i++) {
                const struct catalog_source *source = catalog->sources[i];

                if ((wait->source && wait->source != source) || source->listings > 0)
                        continue;
                if (source->state == CATALOG_SOURCE_FAILING)
                        wait_answer(wait, source);
                return;
        }
        wait_begin(wait);
}

static void wait_listed(struct pipeline_request *request, struct catalog_source *source) {
        struct wait_request *wait = list_owner(request, struct wait_request, request);

        (void)source;
        if (!wait->begun)
                wait_look(wait);
}

static void wait_source_removed(struct pipeline_request *request, struct catalog_source *source,
                                size_t index) {
        struct wait_request *wait = list_owner(request, struct wait_request, request);

        (void)index;
        if (wait->source == source)
                wait_answer(wait, source);
}

int pipeline_wait_loaded(struct pipeline *pipeline, struct catalog_source *source,
                         void (*on_done)(void *userdata, const struct catalog_source *failed),
                         void *userdata, struct pipeline_request **ret_request) {
        struct wait_request *wait = calloc(1, sizeof(*wait));

        if (!wait)
                return -ENOMEM;
        request_init(&wait->request, pipeline, wait_cancel, wait_listed);
        wait->request.source_removed = wait_source_removed;
        wait->source = source;
        wait->on_done = on_done;
        wait->userdata = userdata;
        pipeline->waiting++;
        *ret_request = &wait->request;
        pipeline_touch(pipeline); /* the pass looks at it: nothing is answered from inside */
        return 0;
}

static void reload_cancel(struct pipeline_request *request) {
        struct reload_request *reload = list_owner(request, struct reload_request, request);

        request_deinit(request);
        free(reload->wanted);
        free(reload);
}

/* What is missing for the first time may be gone: the answer is to know that. */
static void reload_again(struct reload_request *reload, size_t at) {
        struct catalog_source *source = reload->request.pipeline->catalog.sources[at];

        reload->wanted[at].confirmed = true;
        reload->wanted[at].attempt = watch_next_attempt(source->watch);
        watch_reload(source->watch);
}

static void reload_answer(struct reload_request *reload) {
        void (*on_done)(void *userdata, const struct store_failure *failure) = reload->on_done;
        struct store_failure failure = reload->failure;
        void *userdata = reload->userdata;

        reload_cancel(&reload->request);
        on_done(userdata, &failure);
}

static void reload_source_removed(struct pipeline_request *request, struct catalog_source *source,
                                  size_t index) {
        struct reload_request *reload = list_owner(request, struct reload_request, request);

        if (index >= reload->source_count) /* it came later */
                return;
        if (reload->source == source)
                reload->failure = source->failure;
        reload->left -= reload->wanted[index].attempt != 0;
        memmove(&reload->wanted[index], &reload->wanted[index + 1],
                (--reload->source_count - index) * sizeof(reload->wanted[0]));
        if (reload->left == 0)
                reload_answer(reload);
}

static void reload_listed(struct pipeline_request *request, struct catalog_source *source) {
        struct reload_request *reload = list_owner(request, struct reload_request, request);
        const struct catalog *catalog = &request->pipeline->catalog;

        for (size_t i = 0; i < reload->source_count; i++) {
                if (catalog->sources[i] != source || reload->wanted[i].attempt == 0 ||
                    source->attempts < reload->wanted[i].attempt)
                        continue;
                /*
                 * A listing that failed in passing is tried again by itself: the answer waits for a
                 * few of these tries.
                 */
                if (source->failure.class != STORE_OK && source->failure.class != STORE_PERMANENT &&
                    source->state != CATALOG_SOURCE_FAILING &&
                    source->attempts < reload->wanted[i].attempt + RELOAD_RETRIES)
                        continue;
                if (source->failure.class == STORE_OK && !reload->wanted[i].confirmed &&
                    watch_misses_files(source->watch)) {
                        reload_again(reload, i);
                        continue;
                }
                reload->wanted[i].attempt = 0;
                reload->left--;
                if (source->failure.class != STORE_OK && reload->failure.class == STORE_OK)
                        reload->failure = source->failure;
        }
        if (reload->left == 0)
                reload_answer(reload);
}

/* Feeds of the source, or of all, that wait for another try. */
static void retry_all(struct list *feeds, const struct catalog_source *source) {
        list_for_each(node, feeds) {
                struct feed *feed = list_owner(node, struct feed, queue);

                if (!source || feed->file->run->source == source)
                        feed_retry(feed);
        }
}

int pipeline_reload(struct pipeline *pipeline, struct catalog_source *source,
                    void (*on_done)(void *userdata, const struct store_failure *failure),
                    void *userdata, struct pipeline_request **ret_request) {
        struct reload_request *reload = calloc(1, sizeof(*reload));
        size_t count = pipeline->catalog.source_count;

        if (reload)
                reload->wanted = calloc(count + 1, sizeof(reload->wanted[0]));
        if (!reload || !reload->wanted) {
                free(reload);
                return -ENOMEM;
        }
        request_init(&reload->request, pipeline, reload_cancel, reload_listed);
        reload->request.source_removed = reload_source_removed;
        reload->source = source;
        reload->on_done = on_done;
        reload->userdata = userdata;
        reload->source_count = count;
        for (size_t i = 0; i < count; i++) {
                struct catalog_source *s = pipeline->catalog.sources[i];

                if (source && s != source)
                        continue;
                reload->wanted[i].attempt = watch_next_attempt(s->watch);
                reload->left++;
                watch_reload(s->watch);
        }
        retry_all(&pipeline->failed, source);
        retry_all(&pipeline->archived, source);
        *ret_request = &reload->request;
        pipeline_touch(pipeline);
        return 0;
}
