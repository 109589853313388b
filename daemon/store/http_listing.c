/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of nodes, one for each directory. A node waits, is asked for, perhaps waits again after a
 * transient failure, and is let go when nothing below it is left to do. Rows of the first directory
 * are given as they come; those of others when their listing is complete, because only then it is
 * known that it is no loop.
 *
 * HTTP has no inodes. A directory with the same entries as one above it may be a link to it, or a
 * copy of the same age. In a loop the way from the one to the other can be gone again and again
 * with the same outcome, so that is what is asked: LISTING_PROBE times.
 */
#include "daemon/store/http_listing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/base.h"
#include "daemon/core/list.h"
#include "daemon/store/autoindex.h"
#include "daemon/store/event_name.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_url.h"

#define LISTING_REQUESTS_MOST 64 /* at once */
#define LISTING_DIRECTORIES_MOST 1000000
#define LISTING_DEPTH_MOST 64
#define LISTING_BODY_MOST_BYTES (256ull << 20)
#define LISTING_TRIES 4
#define LISTING_BACKOFF_MS 50 /* twice as much after each try */
#define LISTING_PROBE 8

struct row {
        char *name; /* relative to the node */
        size_t name_size;
        bool is_directory;
        uint64_t size_bytes;
        int64_t mtime_ns;
};

struct node {
        struct list link; /* in pending, or in retrying */
        struct http_listing *listing;
        struct node *parent;
        unsigned refs; /* its own, until it is done, and one of each node below */
        unsigned depth, tries;
        uint64_t retry_at_ms; /* uv_now() */
        struct http_request *request;
        void *parser;  /* NULL: none */
        char *more;    /* of the query, for the page that is asked for; NULL: the first one */
        uint8_t *body; /* what came in this turn */
        size_t body_size, body_space;
        uint64_t body_bytes;      /* in all */
        int error;                /* of the body: AUTOINDEX_E_*, -errno */
        XXH3_state_t *hash_state; /* of the entries */
        uint64_t hash;
        bool is_listing; /* what comes is one, and no error */
        bool has_directories;
        /* what is asked for to see whether this is a loop; NULL: the node's own path */
        char *probe;
        struct row *rows;
        size_t row_count, row_space;
        size_t path_size;
        char path[]; /* relative to the source */
};

struct http_listing {
        struct http_client *client;
        struct http_listing_place place;
        struct store_list_callbacks callbacks;
        void *userdata;
        const struct http_index *index;
        bool is_trial; /* of another way to list, after the first one was none */
        struct store_failure first_failure; /* of that */
        struct list pending, retrying, active;
        unsigned in_flight, directories;
        struct store_list_counts counts;
        struct store_failure failure;
        uv_timer_t *retry_timer; /* closed and freed after the listing */
        unsigned calls;          /* of the listener that are under way: it may cancel in them */
        bool cancelled;
};

/* ---- Nodes ---- */

static void node_drop_parser(struct node *node) {
        if (node->parser)
                node->listing->index->free(node->parser);
        node->parser = NULL;
}

static void node_drop_body(struct node *node) {
        for (size_t i = 0; i < node->row_count; i++)
                free(node->rows[i].name);
        free(node->rows);
        free(node->body);
        XXH3_freeState(node->hash_state);
        node_drop_parser(node);
        free(node->more);
        node->more = NULL;
        node->rows = NULL;
        node->body = NULL;
        node->hash_state = NULL;
        node->row_count = node->row_space = node->body_size = node->body_space = 0;
        node->body_bytes = 0;
        node->error = 0;
        node->has_directories = false;
}

static struct node *node_unref(struct node *node) {
        while (node && --node->refs == 0) {
                struct node *parent = node->parent;

                node_drop_body(node);
                free(node->probe);
                free(node);
                node = parent;
        }
        return NULL;
}

static int node_add(struct http_listing *listing, struct node *parent, const char *name,
                    size_t name_size) {
        size_t above = parent && parent->path_size ? parent->path_size + 1 : 0;
        struct node *node = calloc(1, sizeof(*node) + above + name_size + 1);

        if (!node)
                return -ENOMEM;
        node->listing = listing;
        node->parent = parent;
        node->refs = 1;
        node->path_size = above + name_size;
        if (parent) {
                parent->refs++;
                node->depth = parent->depth + 1;
                memcpy(node->path, parent->path, parent->path_size);
                if (above)
                        node->path[above - 1] = '/';
        }
        memcpy(node->path + above, name, name_size);
        list_append(&listing->pending, &node->link);
        listing->directories++;
        return 0;
}

/* What follows the host in the request for the node; the caller's to free. */
static char *node_target(const struct node *node) {
        const struct http_listing_place *place = &node->listing->place;
        const char *path = node->probe ? node->probe : node->path;
        size_t size = strlen(place->path), path_size = strlen(path),
               query_size = strlen(place->query);
        const char *more = node->more ? node->more : "";
        char *target = malloc(size + 1 + 3 * path_size + 1 + query_size + strlen(more) + 1);
        char *at = target;

        if (!target)
                return NULL;
        at = mempcpy(at, place->path, size);
        if (!place->is_manifest) {
                *at++ = '/';
                at = http_url_encode(path, path_size, at);
                if (path_size)
                        *at++ = '/';
        }
        at = mempcpy(at, place->query, query_size);
        memcpy(at, more, strlen(more) + 1);
        return target;
}

/* ---- Telling the listener ---- */

static void tell_row(struct node *node, const struct row *found) {
        struct http_listing *listing = node->listing;
        struct store_row row = { .size_bytes = found->size_bytes, .mtime_ns = found->mtime_ns };
        CLEANUP(freep) char *name = NULL;

        if (!event_name_is(found->name, found->name_size))
                return;
        row.name = found->name;
        row.name_size = found->name_size;
        if (node->path_size) {
                row.name_size = (size_t)asprintf(&name, "%s/%s", node->path, found->name);
                if (row.name_size == (size_t)-1) {
                        name = NULL;
                        node->error = -ENOMEM;
                        return;
                }
                row.name = name;
        }
        listing->callbacks.on_row(listing->userdata, &row);
}

static void tell_unreadable(struct node *node, const char *name, size_t name_size,
                            const struct store_failure *failure) {
        struct http_listing *listing = node->listing;
        CLEANUP(freep) char *path = NULL;

        if (asprintf(&path, "%s%s%.*s", node->path, node->path_size && name_size ? "/" : "",
                     (int)name_size, name) < 0) {
                path = NULL;
                return;
        }
        listing->callbacks.on_unreadable(listing->userdata, path, strlen(path), failure);
}

/* A name that leads out of the source, or is none: it is told, not followed. */
static void tell_bad_name(struct node *node, const char *name, size_t name_size) {
        struct store_failure failure;

        failure_set(&failure, STORE_PERMANENT, "bad-name",
                    "A name that is no path below the listing: %s", name);
        tell_unreadable(node, name, name_size, &failure);
}

/* ---- Rows ---- */

/* No component is empty, "." or ".."; slashes only in a manifest. */
static bool is_good_name(const char *name, size_t size, bool slashes) {
        const char *end = name + size;

        for (const char *at = name;;) {
                const char *slash = memchr(at, '/', (size_t)(end - at));
                size_t component = (size_t)((slash ? slash : end) - at);

                if (component == 0 || (component == 1 && at[0] == '.') ||
                    (component == 2 && at[0] == '.' && at[1] == '.'))
                        return false;
                if (!slash)
                        return true;
                if (!slashes)
                        return false;
                at = slash + 1;
        }
}

static int keep_row(struct node *node, const struct autoindex_entry *entry) {
        struct row row = { .name_size = entry->name_size,
                           .is_directory = entry->is_directory,
                           .size_bytes = entry->size_bytes,
                           .mtime_ns = entry->mtime_ns };

        if (node->row_count == node->row_space) {
                size_t space = max_u64(16, node->row_space * 2);
                struct row *rows = realloc(node->rows, space * sizeof(*rows));

                if (!rows)
                        return -ENOMEM;
                node->rows = rows;
                node->row_space = space;
        }
        row.name = strdup(entry->name);
        if (!row.name)
                return -ENOMEM;
        node->rows[node->row_count++] = row;
        return 0;
}

/* What stays the same while files grow. */
static void hash_entry(struct node *node, const struct autoindex_entry *entry) {
        int64_t mtime_ns = entry->is_directory ? entry->mtime_ns : 0;

        XXH3_64bits_update(node->hash_state, entry->name, entry->name_size + 1);
        XXH3_64bits_update(node->hash_state, &mtime_ns, sizeof(mtime_ns));
}

/*
 * Of the parser. Files of the first directory go out at once; all else is kept until the node's
 * listing is complete.
 */
static bool on_entry(void *userdata, const struct autoindex_entry *entry) {
        struct node *node = userdata;
        struct http_listing *listing = node->listing;

        hash_entry(node, entry);
        if (node->probe)
                return true;
        if (!is_good_name(entry->name, entry->name_size, listing->place.is_manifest)) {
                tell_bad_name(node, entry->name, entry->name_size);
        } else if (entry->is_directory) {
                node->has_directories = true;
                if (!listing->place.is_manifest)
                        node->error = keep_row(node, entry);
        } else if (event_name_is(entry->name, entry->name_size)) {
                struct row row = { (char *)entry->name, entry->name_size, false, entry->size_bytes,
                                   entry->mtime_ns };

                if (node->depth == 0)
                        tell_row(node, &row);
                else
                        node->error = keep_row(node, entry);
        }
        return !listing->cancelled && node->error == 0;
}

/*
 * If the node has the same entries as a directory above: makes the path that leads there again and
 * again. -ENOMEM. *ret_probe is NULL if it has not.
 */
static int make_probe(const struct node *node, char **ret_probe) {
        const struct node *above = node->parent;
        size_t way_size;
        char *at;

        *ret_probe = NULL;
        while (above && above->hash != node->hash)
                above = above->parent;
        if (!above || !node->has_directories)
                return 0;
        way_size = node->path_size - above->path_size;
        at = *ret_probe = malloc(above->path_size + LISTING_PROBE * (way_size + 1) + 1);
        if (!at)
                return -ENOMEM;
        at = mempcpy(at, node->path, above->path_size);
        for (unsigned i = 0; i < LISTING_PROBE; i++) {
                if (i > 0 && above->path_size == 0)
                        *at++ = '/'; /* elsewhere the way begins with one */
                at = mempcpy(at, node->path + above->path_size, way_size);
        }
        *at = '\0';
        return 0;
}

static void tell_too_deep(struct node *node, const struct row *row) {
        struct store_failure failure;

        failure_set(&failure, STORE_PERMANENT, "too-deep",
                    "More directories, or deeper ones, than a listing may have: %s", row->name);
        tell_unreadable(node, row->name, row->name_size, &failure);
}

static int take_rows(struct node *node) {
        struct http_listing *listing = node->listing;
        int r = 0;

        for (size_t i = 0; i < node->row_count && r == 0 && !listing->cancelled; i++) {
                struct row *row = &node->rows[i];

                if (!row->is_directory)
                        tell_row(node, row);
                else if (node->depth + 1 >= LISTING_DEPTH_MOST ||
                         listing->directories >= LISTING_DIRECTORIES_MOST)
                        tell_too_deep(node, row);
                else
                        r = node_add(listing, node, row->name, row->name_size);
                if (r == 0)
                        r = node->error;
        }
        return r;
}

/* ---- Requests ---- */

static void go_on(struct http_listing *listing);

static bool on_body(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        struct node *node = userdata;

        if (answer->status != node->listing->index->status &&
            node->body_bytes + size > AUTOINDEX_ENTRY_MOST_BYTES)
                return false; /* the text of an error */
        node->body_bytes += size;
        node->is_listing = answer->status == node->listing->index->status;
        if (node->error || node->body_bytes > LISTING_BODY_MOST_BYTES)
                return false;
        if (node->body_space - node->body_size < size) {
                size_t space = max_u64(node->body_space * 2,
                                       align_up(node->body_size + size, 16384));
                uint8_t *body = realloc(node->body, space);

                if (!body) {
                        node->error = -ENOMEM;
                        return false;
                }
                node->body = body;
                node->body_space = space;
        }
        memcpy(node->body + node->body_size, bytes, size);
        node->body_size += size;
        return true;
}

static void on_turn(void *userdata) {
        struct node *node = userdata;
        struct http_listing *listing = node->listing;
        int r;

        if (node->error || node->body_size == 0 || !node->is_listing)
                return;
        listing->calls++;
        r = listing->index->feed(node->parser, node->body, node->body_size);
        listing->calls--;
        node->body_size = 0;
        if (r && node->error == 0)
                node->error = r;
        go_on(listing); /* only to see whether it was cancelled */
}

static void set_body_failure(const struct node *node, int error,
                             struct store_failure *ret_failure) {
        const char *shown = node->listing->place.shown;

        if (error == AUTOINDEX_E_NO_LISTING)
                failure_set(ret_failure, STORE_PERMANENT, "no-listing",
                            node->listing->place.is_manifest ? "Not a manifest: %s%s"
                                                             : "Not a listing: %s/%s",
                            shown, node->path);
        else if (error == AUTOINDEX_E_TOO_LARGE)
                failure_set(ret_failure, STORE_PERMANENT, "too-large",
                            "One entry of the listing is larger than %u KiB: %s/%s",
                            AUTOINDEX_ENTRY_MOST_BYTES >> 10, shown, node->path);
        else if (error > 0)
                failure_set(ret_failure, STORE_TRANSIENT, "bad-listing",
                            "The listing is damaged or cut short: %s/%s", shown, node->path);
        else
                failure_set_errno(ret_failure, -error, shown);
}

/* What the answer is worth, as a failure of class STORE_OK if it is a whole listing. */
static void judge(struct node *node, const struct http_answer *answer,
                  const struct store_failure *transport, struct store_failure *ret_failure) {
        int r = node->error;

        *ret_failure = *transport;
        if (answer->status != node->listing->index->status && answer->status != 0) {
                CLEANUP(freep) char *shown = NULL;

                if (asprintf(&shown, "%s/%s", node->listing->place.shown, node->path) < 0)
                        shown = NULL;
                if (node->listing->index->judge)
                        node->listing->index->judge(
                                answer->status, (char *)node->body, node->body_size,
                                shown ? shown : node->listing->place.shown, ret_failure);
                else
                        failure_set_status(ret_failure, answer->status,
                                           shown ? shown : node->listing->place.shown);
                if (node->listing->place.advise)
                        node->listing->place.advise(node->listing->place.userdata, answer->status,
                                                    ret_failure);
                ret_failure->retry_after_ms = answer->retry_after_ms;
                if (ret_failure->class == STORE_END)
                        ret_failure->class = STORE_PERMANENT;
        } else if (node->body_bytes > LISTING_BODY_MOST_BYTES) {
                failure_set(ret_failure, STORE_PERMANENT, "too-large",
                            "The listing is larger than %llu MiB: %s/%s",
                            LISTING_BODY_MOST_BYTES >> 20, node->listing->place.shown, node->path);
        } else if (r || transport->class == STORE_OK) {
                if (r == 0)
                        r = node->listing->index->finish(node->parser);
                if (r)
                        set_body_failure(node, r, ret_failure);
        }
}

static void on_retry_time(uv_timer_t *timer) {
        struct http_listing *listing = timer->data;
        uint64_t now_ms = uv_now(timer->loop);

        for (struct list *link = listing->retrying.next, *next; link != &listing->retrying;
             link = next) {
                next = link->next;
                if (list_owner(link, struct node, link)->retry_at_ms <= now_ms) {
                        list_remove(link);
                        list_append(&listing->pending, link);
                }
        }
        go_on(listing);
}

/* True if the node will be asked for again. */
static bool try_again(struct node *node, const struct store_failure *failure) {
        struct http_listing *listing = node->listing;
        uint64_t wait_ms = max_u64(LISTING_BACKOFF_MS << node->tries,
                                   min_u64(failure->retry_after_ms, 5000));

        /*
         * Rows of the first directory are out already: the whole listing is the caller's to repeat.
         */
        if ((failure->class != STORE_TRANSIENT && failure->class != STORE_THROTTLED) ||
            node->depth == 0 || ++node->tries >= LISTING_TRIES)
                return false;
        listing->counts.repeated++;
        node_drop_body(node);
        node->retry_at_ms = uv_now(listing->retry_timer->loop) + wait_ms;
        list_append(&listing->retrying, &node->link);
        return true;
}

/*
 * The node's rows are complete: they are told, or it is first asked whether it is a loop. True: the
 * node goes on.
 */
static bool take_listing(struct node *node, int *ret_error) {
        struct http_listing *listing = node->listing;

        *ret_error = 0;
        if (listing->index->next && !listing->cancelled) {
                CLEANUP(freep) char *before = steal_pointer(&node->more);

                node->more = listing->index->next(node->parser);
                if (node->more && before && strcmp(node->more, before) == 0) {
                        *ret_error = -EBADMSG; /* the same page again and again */
                        return false;
                }
                if (node->more) {
                        node_drop_parser(node);
                        list_prepend(&listing->pending, &node->link);
                        return true;
                }
        }

        node->hash = XXH3_64bits_digest(node->hash_state);
        *ret_error = make_probe(node, &node->probe);
        if (*ret_error == 0 && node->probe) {
                node->body_bytes = 0;
                node_drop_parser(node);
                list_prepend(&listing->pending, &node->link);
                return true;
        }
        if (*ret_error == 0)
                *ret_error = take_rows(node);
        return false;
}

/* The answer to a probe: whatever it is but the same listing again, the node is no loop. */
static int take_probe(struct node *node, const struct store_failure *failure) {
        if (failure->class == STORE_OK && XXH3_64bits_digest(node->hash_state) == node->hash)
                return 0;
        node->error = 0;
        return take_rows(node);
}

/*
 * The first answer is no listing: perhaps the server lists in another way. True: that is tried with
 * the same node.
 */
static bool try_another_way(struct node *node, const struct http_answer *answer,
                            const struct store_failure *failure) {
        struct http_listing *listing = node->listing;
        static const long statuses[] = { 403, 404, 405, 501 }; /* of servers with no index at all */
        bool is_none = strcmp(failure->code, "no-listing") == 0;

        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
                is_none |= answer->status == statuses[i];
        if (node->depth > 0 || listing->place.is_manifest || listing->is_trial ||
            listing->index != &http_index_json || !is_none)
                return false;
        listing->first_failure = *failure;
        node_drop_body(node);
        listing->is_trial = true;
        listing->index = &http_index_dav;
        list_prepend(&listing->pending, &node->link);
        return true;
}

/* The first directory could not be listed. */
static void fail_listing(struct http_listing *listing, const struct store_failure *failure) {
        bool is_missing;

        listing->failure = listing->is_trial ? listing->first_failure : *failure;
        if (!listing->is_trial && strcmp(failure->code, "no-listing") != 0)
                return;
        is_missing = strcmp(listing->failure.code, "404") == 0;
        if (listing->place.is_manifest)
                failure_advise(&listing->failure, "a manifest is a JSON array of objects with "
                                                  "\"name\", \"size\" and \"mtime\"");
        else
                failure_advise(&listing->failure,
                               "%sthe server must list as JSON (nginx: autoindex_format json) or "
                               "by WebDAV, or the URL must name a manifest (.../files.json)",
                               is_missing ? "is the address right? " : "");
}

static void on_done(void *userdata, const struct http_answer *answer,
                    const struct store_failure *transport) {
        struct node *node = userdata;
        struct http_listing *listing = node->listing;
        struct store_failure failure;
        bool goes_on = false;
        int r = 0;

        node->request = NULL;
        list_remove(&node->link);
        listing->in_flight--;
        judge(node, answer, transport, &failure);
        listing->calls++;
        if (node->probe)
                r = take_probe(node, &failure);
        else if (failure.class == STORE_OK)
                goes_on = take_listing(node, &r);
        else if (try_again(node, &failure) || try_another_way(node, answer, &failure))
                goes_on = true;
        else if (node->depth > 0)
                tell_unreadable(node, "", 0, &failure);
        else
                fail_listing(listing, &failure);
        if (failure.class == STORE_OK && listing->is_trial && node->depth == 0)
                *listing->place.index = listing->index;
        listing->calls--;
        if (r < 0)
                failure_set_errno(&listing->failure, -r, listing->place.shown);
        if (!goes_on) {
                node_drop_body(node);
                node_unref(node);
        }
        go_on(listing);
}

static int ask(struct node *node) {
        static const struct http_handler handler = { .on_body = on_body,
                                                     .on_turn = on_turn,
                                                     .on_done = on_done };
        struct http_listing *listing = node->listing;
        const struct http_index *index = listing->index;
        CLEANUP(freep) char *target = node_target(node);
        CLEANUP(freep) char *path = target ? strndup(target, strcspn(target, "?")) : NULL;
        struct http_query query = { .target = target,
                                    .method = index->method,
                                    .headers = index->headers,
                                    .body = index->body,
                                    .body_size = index->body ? strlen(index->body) : 0 };

        if (!node->hash_state)
                node->hash_state = XXH3_createState();
        if (!path || !node->hash_state || index->new (path, on_entry, node, &node->parser) < 0)
                return -ENOMEM;
        if (!node->more)
                XXH3_64bits_reset(node->hash_state);
        node->body_size = 0;
        listing->counts.requests++;
        return http_client_send(listing->client, &query, &handler, node, &node->request);
}

static int ask_pending(struct http_listing *listing) {
        while (listing->in_flight < LISTING_REQUESTS_MOST && !list_is_empty(&listing->pending)) {
                struct node *node = list_owner(listing->pending.next, struct node, link);
                int r = ask(node);

                if (r < 0)
                        return r;
                list_remove(&node->link);
                list_append(&listing->active, &node->link);
                listing->in_flight++;
        }
        return 0;
}

static void arm_retry_timer(struct http_listing *listing) {
        uint64_t now_ms = uv_now(listing->retry_timer->loop), next_ms = UINT64_MAX;

        for (struct list *link = listing->retrying.next; link != &listing->retrying;
             link = link->next)
                next_ms = min_u64(next_ms, list_owner(link, struct node, link)->retry_at_ms);
        if (next_ms != UINT64_MAX)
                uv_timer_start(listing->retry_timer, on_retry_time,
                               next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

/* ---- Life ---- */

static void on_timer_closed(uv_handle_t *handle) {
        free(handle);
}

static void drop_nodes(struct list *nodes) {
        while (!list_is_empty(nodes)) {
                struct node *node = list_owner(nodes->next, struct node, link);

                list_remove(&node->link);
                if (node->request)
                        http_request_cancel(node->request);
                node_unref(node);
        }
}

static void listing_free(struct http_listing *listing) {
        drop_nodes(&listing->pending);
        drop_nodes(&listing->retrying);
        drop_nodes(&listing->active);
        uv_close((uv_handle_t *)listing->retry_timer, on_timer_closed);
        free(listing);
}

/* After everything that happened: asks for what is next, or ends. */
static void go_on(struct http_listing *listing) {
        struct http_listing ended;
        int r = 0;

        if (listing->calls > 0)
                return;
        if (listing->cancelled) {
                listing_free(listing);
                return;
        }
        if (listing->failure.class == STORE_OK)
                r = ask_pending(listing);
        if (r < 0)
                failure_set_errno(&listing->failure, -r, listing->place.shown);
        if (listing->failure.class == STORE_OK &&
            (listing->in_flight > 0 || !list_is_empty(&listing->retrying))) {
                arm_retry_timer(listing);
                return;
        }
        ended = *listing;
        listing_free(listing);
        ended.callbacks.on_done(ended.userdata, &ended.failure, &ended.counts);
}

int http_listing_start(uv_loop_t *loop, struct http_client *client,
                       const struct http_listing_place *place,
                       const struct store_list_callbacks *callbacks, void *userdata,
                       struct http_listing **ret_listing) {
        struct http_listing *listing = calloc(1, sizeof(*listing));
        int r;

        if (!listing)
                return -ENOMEM;
        listing->client = client;
        listing->place = *place;
        listing->index = *place->index;
        listing->callbacks = *callbacks;
        listing->userdata = userdata;
        list_init(&listing->pending);
        list_init(&listing->retrying);
        list_init(&listing->active);
        listing->retry_timer = malloc(sizeof(*listing->retry_timer));
        if (!listing->retry_timer) {
                free(listing);
                return -ENOMEM;
        }
        uv_timer_init(loop, listing->retry_timer);
        listing->retry_timer->data = listing;
        r = node_add(listing, NULL, "", 0);
        if (r == 0)
                r = ask_pending(listing);
        if (r < 0) {
                listing_free(listing);
                return r;
        }
        *ret_listing = listing;
        return 0;
}

void http_listing_cancel(struct http_listing *listing) {
        listing->cancelled = true;
        go_on(listing);
}
