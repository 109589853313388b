/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page after the other; rows are given in the turn of the loop in which their bytes came. A
 * page that fails is asked for again a few times, so that a single 503 does not throw away what a
 * long listing had already: rows that come twice are no news to anybody.
 */
#include "daemon/store/object_list.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/backoff.h"
#include "daemon/store/event_name.h"
#include "daemon/store/failure.h"
#include "daemon/store/object_call.h"

#define OBJECT_LIST_TRIES 4
#define OBJECT_LIST_BACKOFF_MS 100 /* bound of the wait after the first failure */
#define OBJECT_LIST_BACKOFF_MOST_MS 5000
#define OBJECT_LIST_ERROR_MOST_BYTES (256u << 10)
#define OBJECT_LIST_ERROR_KEPT_BYTES (16u << 10)
#define OBJECT_LIST_PAGE_MOST_BYTES (64u << 20)

/* A name that outlives its page. */
struct kept_name {
        char *bytes;
        size_t size, space;
};

struct store_list {
        struct object_call call;
        struct object_store *store;
        struct store_list_callbacks callbacks;
        void *userdata;
        void (*on_page)(void *userdata, const struct store_list_counts *counts,
                        const char *last_name, size_t size);
        char *prefix, *after, *until; /* whole keys; NULL: not given */
        size_t prefix_size, until_size;
        bool is_past;            /* the last one wanted has come, or one behind it */
        struct kept_name last;   /* key of the page; only if somebody wants to know */
        struct kept_name here;   /* the greatest name of the page, size 0: none yet */
        struct kept_name before; /* and that of the pages before */
        unsigned still_pages;    /* in a row that had no greater one */
        bool one_level;
        char *token;    /* of the page that is asked for; NULL: the first */
        void *page;     /* NULL: none */
        bool is_page;   /* what comes is one, and no error */
        int page_error; /* of feeding it */
        uint8_t *body;  /* what came in this turn, or the text of an error */
        size_t body_size, body_space;
        uint64_t page_bytes;
        struct store_list_counts counts;
        unsigned tries;
        struct backoff backoff;
        uv_timer_t *retry; /* freed when it is closed */
        unsigned calls;    /* of the listener that are under way: it may cancel in them */
        bool cancelled;
};

static void list_free(struct store_list *list) {
        if (list->page)
                list->store->dialect->page_free(list->page);
        free(list->prefix);
        free(list->after);
        free(list->until);
        free(list->last.bytes);
        free(list->here.bytes);
        free(list->before.bytes);
        free(list->token);
        free(list->body);
        free(list);
}

static void on_timer_closed(uv_handle_t *handle) {
        free(handle);
}

/* Frees the list, or leaves that to the end of the callback that it is in. */
static void list_end(struct store_list *list) {
        list->cancelled = true;
        object_call_deinit(&list->call);
        if (list->retry)
                uv_close((uv_handle_t *)steal_pointer(&list->retry), on_timer_closed);
        if (list->calls == 0)
                list_free(list);
}

static void enter(struct store_list *list) {
        list->calls++;
}

/* False: the listener has cancelled, and the list is gone. */
static bool leave(struct store_list *list) {
        if (--list->calls > 0 || !list->cancelled)
                return !list->cancelled;
        list_free(list);
        return false;
}

static void tell_done(struct store_list *list, const struct store_failure *failure) {
        struct store_list_callbacks callbacks = list->callbacks;
        struct store_list_counts counts = list->counts;
        void *userdata = list->userdata;

        list_end(list);
        callbacks.on_done(userdata, failure, &counts);
}

/* ---- Rows ---- */

static bool ends_with(const char *text, size_t size, const char *end) {
        size_t end_size = strlen(end);

        return size >= end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

/* What programs leave that like to see directories. */
static bool is_marker(const struct object_row *row) {
        return row->is_directory || row->key[row->key_size - 1] == '/' ||
               (row->size_bytes == 0 && ends_with(row->key, row->key_size, "_$folder$"));
}

/* A page may have more than what was asked for: not every store can be told where to end. */
static bool is_in_range(struct store_list *list, const char *key, size_t size) {
        int order;

        if (!list->until)
                return true;
        order = memcmp(key, list->until, min_u64(size, list->until_size));
        if (order == 0)
                order = (size > list->until_size) - (size < list->until_size);
        list->is_past |= order >= 0;
        return order <= 0;
}

/* Without memory it stays an earlier one, which is as good. */
static void keep_name(struct kept_name *kept, const char *bytes, size_t size) {
        if (size > kept->space) {
                char *longer = realloc(kept->bytes, 2 * size);

                if (!longer)
                        return;
                kept->bytes = longer;
                kept->space = 2 * size;
        }
        memcpy(kept->bytes, bytes, size);
        kept->size = size;
}

static bool is_behind(const char *bytes, size_t size, const struct kept_name *other) {
        int order = other->size ? memcmp(bytes, other->bytes, min_u64(size, other->size)) : 1;

        return order ? order > 0 : size > other->size;
}

static void note_name(struct store_list *list, const char *name, size_t size) {
        if (is_behind(name, size, &list->here))
                keep_name(&list->here, name, size);
}

static void on_object(void *userdata, const struct object_row *row) {
        struct store_list *list = userdata;
        const struct object_store *store = list->store;
        struct store_row own = {
                .size_bytes = row->size_bytes,
                .mtime_ns = row->mtime_ns,
                .is_archived = row->is_archived,
        };

        if (list->cancelled || !is_in_range(list, row->key, row->key_size))
                return;
        list->counts.objects++;
        note_name(list, row->key, row->key_size);
        if (list->on_page)
                keep_name(&list->last, row->key, row->key_size);
        if (row->key_size <= store->prefix_size ||
            memcmp(row->key, store->prefix, store->prefix_size) != 0 || is_marker(row) ||
            memchr(row->key, '\0', row->key_size))
                return;
        own.name = row->key + store->prefix_size;
        own.name_size = row->key_size - store->prefix_size;
        if (!event_name_is(own.name, own.name_size))
                return;
        strncpy(own.tag, row->tag, sizeof(own.tag) - 1);
        list->callbacks.on_row(list->userdata, &own);
}

static void on_prefix(void *userdata, const char *prefix, size_t size) {
        struct store_list *list = userdata;
        const struct object_store *store = list->store;

        if (list->cancelled)
                return;
        note_name(list, prefix, size);
        if (size <= store->prefix_size + 1 || prefix[size - 1] != '/' ||
            memcmp(prefix, store->prefix, store->prefix_size) != 0 || memchr(prefix, '\0', size))
                return;
        if (list->callbacks.on_directory)
                list->callbacks.on_directory(list->userdata, prefix + store->prefix_size,
                                             size - store->prefix_size - 1);
}

/* ---- A page ---- */

static int gather(struct store_list *list, const uint8_t *bytes, size_t size) {
        size_t need = list->body_size + size + 1;

        if (need > list->body_space) {
                size_t space = max_u64(need, 2 * list->body_space);
                uint8_t *longer = realloc(list->body, space);

                if (!longer)
                        return -ENOMEM;
                list->body = longer;
                list->body_space = space;
        }
        memcpy(list->body + list->body_size, bytes, size);
        list->body_size += size;
        list->body[list->body_size] = '\0';
        return 0;
}

static struct store_list *list_of(struct object_call *call) {
        return list_owner(call, struct store_list, call);
}

static bool on_body(struct object_call *call, const struct http_answer *answer,
                    const uint8_t *bytes, size_t size) {
        struct store_list *list = list_of(call);

        list->is_page = answer->status == 200;
        list->page_bytes += size;
        if (list->page_error || list->page_bytes > (list->is_page ? OBJECT_LIST_PAGE_MOST_BYTES
                                                                  : OBJECT_LIST_ERROR_MOST_BYTES))
                return false;
        if (!list->is_page)
                size = min_u64(size, OBJECT_LIST_ERROR_KEPT_BYTES - list->body_size);
        list->page_error = gather(list, bytes, size);
        return list->page_error == 0;
}

/* Not inside of libcurl: rows may be given. */
static void feed(struct store_list *list) {
        const struct object_page_events events = { on_object, on_prefix };
        const struct object_dialect *dialect = list->store->dialect;
        int r = 0;

        if (!list->page)
                r = dialect->page_new(&events, list, &list->page);
        if (r == 0 && list->body_size)
                r = dialect->page_feed(list->page, list->body, list->body_size);
        list->body_size = 0;
        list->page_error = r;
}

static void fail(struct store_list *list, const struct store_failure *failure);

static const char *page_thing(const struct store_list *list) {
        return list->store->store.url;
}

static void fail_page(struct store_list *list, int error) {
        struct store_failure failure;

        if (error == -EBADMSG)
                failure_set(&failure, STORE_TRANSIENT, "bad-listing",
                            "A page of the listing is not complete or no listing: %s",
                            page_thing(list));
        else
                failure_set_errno(&failure, -error, page_thing(list));
        fail(list, &failure);
}

static void on_turn(struct object_call *call) {
        struct store_list *list = list_of(call);

        if (!list->is_page || list->page_error)
                return;
        enter(list);
        feed(list);
        leave(list);
}

static void ask_next(struct store_list *list);

/* False: the listener has cancelled. */
static bool tell_page(struct store_list *list) {
        size_t prefix_size = list->store->prefix_size;

        enter(list);
        if (list->on_page && list->last.size > prefix_size)
                list->on_page(list->userdata, &list->counts, list->last.bytes + prefix_size,
                              list->last.size - prefix_size);
        return leave(list);
}

/* False: the page led nowhere, once too often. */
static bool moves_on(struct store_list *list) {
        struct kept_name here = list->here;

        if (here.size && is_behind(here.bytes, here.size, &list->before))
                list->still_pages = 0;
        else
                list->still_pages++;
        if (here.size) {
                list->here = list->before;
                list->before = here;
        }
        return list->still_pages <= OBJECT_LIST_STILL_PAGES_MOST;
}

static void page_ended(struct store_list *list) {
        const struct object_dialect *dialect = list->store->dialect;
        static const struct store_failure none = { .class = STORE_OK };
        char *token = NULL;
        int r;

        enter(list);
        if (!list->page_error)
                feed(list);
        r = list->page_error ? list->page_error : dialect->page_end(list->page, &token);
        if (!leave(list)) {
                free(token);
                return;
        }
        if (r == 0 && token &&
            ((list->token && strcmp(token, list->token) == 0) || !moves_on(list)))
                r = -EBADMSG; /* the same page again and again */
        if (r < 0) {
                free(token);
                fail_page(list, r);
                return;
        }
        if (!token || list->is_past) {
                free(token);
                tell_done(list, &none);
                return;
        }
        free(list->token);
        list->token = token;
        list->tries = 0;
        backoff_reset(&list->backoff);
        list->call.refreshed = false;
        list->call.learned = 0;
        if (tell_page(list))
                ask_next(list);
}

static void on_end(struct object_call *call, const struct http_answer *answer,
                   const struct store_failure *transport) {
        struct store_list *list = list_of(call);
        struct store_failure failure = *transport;

        if (transport->class == STORE_OK && answer->status == 200) {
                page_ended(list);
                return;
        }
        if (list->page_error == -EBADMSG || list->page_error == -ENOMEM) {
                fail_page(list, list->page_error);
                return;
        }
        if (transport->class == STORE_OK &&
            object_call_judge(call, answer, (char *)list->body, list->body_size, page_thing(list),
                              &failure)) {
                ask_next(list);
                return;
        }
        fail(list, &failure);
}

static void on_drop(struct object_call *call) {
        list_end(list_of(call));
}

static int make(struct object_call *call, struct object_request *request) {
        struct store_list *list = list_of(call);
        struct object_list_place place = {
                .prefix = list->prefix,
                .prefix_size = list->prefix_size,
                .one_level = list->one_level,
                .after = list->after,
                .until = list->until,
                .token = list->token,
        };

        return list->store->dialect->list_request(list->store, &place, request);
}

static const struct object_call_type call_type = {
        .operation = OBJECT_LIST,
        .make = make,
        .on_body = on_body,
        .on_turn = on_turn,
        .on_end = on_end,
        .on_drop = on_drop,
};

/* ---- Asking ---- */

static int ask(struct store_list *list) {
        if (list->page)
                list->store->dialect->page_free(list->page);
        list->page = NULL;
        list->is_page = false;
        list->page_error = 0;
        list->body_size = 0;
        list->page_bytes = 0;
        list->here.size = 0;
        list->counts.requests++;
        list->counts.repeated += list->tries > 0;
        return object_call_start(&list->call);
}

static void ask_next(struct store_list *list) {
        int r = ask(list);
        struct store_failure failure;

        if (r < 0) {
                failure_set_errno(&failure, -r, page_thing(list));
                tell_done(list, &failure);
        }
}

static void on_retry(uv_timer_t *timer) {
        ask_next(timer->data);
}

static void fail(struct store_list *list, const struct store_failure *failure) {
        bool again = failure->class == STORE_TRANSIENT || failure->class == STORE_THROTTLED;

        if (!again || ++list->tries >= OBJECT_LIST_TRIES) {
                tell_done(list, failure);
                return;
        }
        uv_timer_start(list->retry, on_retry,
                       backoff_next_ms(&list->backoff, OBJECT_LIST_BACKOFF_MS,
                                       OBJECT_LIST_BACKOFF_MOST_MS) +
                               min_u64(failure->retry_after_ms, OBJECT_LIST_BACKOFF_MOST_MS),
                       0);
}

/* The source's prefix and a name below it. */
static char *whole_key(const struct object_store *store, const char *name, size_t size,
                       const char *end) {
        char *key = malloc(store->prefix_size + size + strlen(end) + 1);

        if (key)
                memcpy(mempcpy(mempcpy(key, store->prefix, store->prefix_size), name, size), end,
                       strlen(end) + 1);
        return key;
}

static int copy_range(struct store_list *list, const struct store_list_range *range) {
        static const struct store_list_range all = { .below = "" };

        range = range ? range : &all;
        list->one_level = range->one_level;
        list->on_page = range->on_page;
        list->prefix = whole_key(list->store, range->below, range->below_size,
                                 range->below_size ? "/" : "");
        if (!list->prefix)
                return -ENOMEM;
        list->prefix_size = strlen(list->prefix);
        if (range->after &&
            !(list->after = whole_key(list->store, range->after, strlen(range->after), "")))
                return -ENOMEM;
        if (range->until &&
            !(list->until = whole_key(list->store, range->until, strlen(range->until), "")))
                return -ENOMEM;
        list->until_size = list->until ? strlen(list->until) : 0;
        return 0;
}

int object_list_start(struct store *store, const struct store_list_range *range,
                      const struct store_list_callbacks *callbacks, void *userdata,
                      struct store_list **ret_list) {
        struct object_store *objects = (struct object_store *)store;
        struct store_list *list = calloc(1, sizeof(*list));
        int r;

        if (!list)
                return -ENOMEM;
        list->store = objects;
        list->callbacks = *callbacks;
        backoff_init(&list->backoff, uv_hrtime() ^ (uint64_t)(uintptr_t)list);
        list->userdata = userdata;
        object_call_init(&list->call, objects, &call_type);
        list->retry = malloc(sizeof(*list->retry));
        r = list->retry ? copy_range(list, range) : -ENOMEM;
        if (r < 0) {
                object_call_deinit(&list->call);
                free(list->retry);
                list_free(list);
                return r;
        }
        uv_timer_init(objects->loop, list->retry);
        list->retry->data = list;
        r = ask(list);
        if (r < 0) {
                list_end(list);
                return r;
        }
        *ret_list = list;
        return 0;
}

void object_list_cancel(struct store_list *list) {
        list_end(list);
}
