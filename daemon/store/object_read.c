/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/object_read.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_read.h"
#include "daemon/store/object_call.h"

struct store_read {
        struct object_call call;
        struct store_read_range range; /* its name and tag are those below */
        struct http_read body;
        void (*on_done)(void *userdata, const struct store_read_result *result);
        void *userdata;
        bool is_over; /* on_done is under way */
        char tag[64];
        size_t key_size;
        char key[];
};

static struct store_read *read_of(struct object_call *call) {
        return list_owner(call, struct store_read, call);
}

static void read_free(struct store_read *read) {
        http_read_deinit(&read->body);
        free(read);
}

/* The store may close in the callback, and must not find the call any more. */
static void tell(struct store_read *read, const struct store_read_result *result) {
        object_call_deinit(&read->call);
        read->is_over = true;
        read->on_done(read->userdata, result);
        read_free(read);
}

static bool on_body(struct object_call *call, const struct http_answer *answer,
                    const uint8_t *bytes, size_t size) {
        return http_read_take(&read_of(call)->body, answer, bytes, size);
}

/* "s3://bucket/prefix/name" */
static char *thing_of(const struct store_read *read) {
        const struct object_store *store = read->call.store;
        char *thing;

        if (asprintf(&thing, "%s/%.*s", store->store.url, (int)read->range.name_size,
                     read->range.name) < 0)
                return NULL;
        return thing;
}

static bool is_other_version(const struct store_read *read) {
        const struct object_store *store = read->call.store;

        return read->tag[0] && store->dialect->is_version &&
               !store->dialect->is_version(read->call.store, &read->call.reply, read->tag);
}

static bool start_again(struct store_read *read, struct store_failure *ret_failure,
                        const char *thing) {
        int r;

        http_read_deinit(&read->body);
        http_read_init(&read->body, &read->range, true);
        r = object_call_start(&read->call);
        if (r < 0)
                failure_set_errno(ret_failure, -r, thing);
        return r == 0;
}

static void on_end(struct object_call *call, const struct http_answer *answer,
                   const struct store_failure *transport) {
        struct store_read *read = read_of(call);
        CLEANUP(freep) char *text = thing_of(read);
        const char *thing = text ? text : call->store->store.url;
        struct store_read_result result;

        call->reply.answer = answer;
        if (http_read_end(&read->body, answer, transport, thing, &result)) {
                if (result.failure.class != STORE_END && result.failure.class != STORE_CHANGED &&
                    object_call_judge(call, answer, read->body.error, read->body.error_size, thing,
                                      &result.failure) &&
                    start_again(read, &result.failure, thing))
                        return;
        } else if (result.failure.class == STORE_OK && is_other_version(read)) {
                failure_set(&result.failure, STORE_CHANGED, "changed",
                            "The object is another version than the one listed: %s", thing);
                result.size_bytes = 0;
        }
        tell(read, &result);
}

static void on_drop(struct object_call *call) {
        object_call_deinit(call);
        read_free(read_of(call));
}

static int make(struct object_call *call, struct object_request *request) {
        struct store_read *read = read_of(call);

        request->begin = read->range.offset;
        request->size_bytes = read->range.size_bytes;
        return call->store->dialect->read_request(call->store, read->key, read->key_size,
                                                  &read->range, request);
}

static const struct object_call_type call_type = {
        .operation = OBJECT_READ,
        .make = make,
        .on_body = on_body,
        .on_end = on_end,
        .on_drop = on_drop,
};

int object_read_start(struct store *store, const struct store_read_range *range,
                      void (*on_done)(void *userdata, const struct store_read_result *result),
                      void *userdata, struct store_read **ret_read) {
        struct object_store *objects = (struct object_store *)store;
        struct store_read *read;
        int r;

        if (range->size_bytes == 0 || range->offset > UINT64_MAX - range->size_bytes)
                return -EINVAL;
        read = calloc(1, sizeof(*read) + objects->prefix_size + range->name_size + 1);
        if (!read)
                return -ENOMEM;
        read->key_size = objects->prefix_size + range->name_size;
        memcpy(mempcpy(read->key, objects->prefix, objects->prefix_size), range->name,
               range->name_size);
        if (range->tag)
                strncpy(read->tag, range->tag, sizeof(read->tag) - 1);
        read->range = *range;
        read->range.name = read->key + objects->prefix_size;
        read->range.tag = read->tag;
        read->on_done = on_done;
        read->userdata = userdata;
        http_read_init(&read->body, range, true);
        object_call_init(&read->call, objects, &call_type);
        r = object_call_start(&read->call);
        if (r < 0) {
                on_drop(&read->call);
                return r;
        }
        *ret_read = read;
        return 0;
}

uint64_t object_read_waits_since_ns(const struct store_read *read) {
        return read->call.http ? http_request_waits_since_ns(read->call.http) : 0;
}

bool object_read_cancel(struct store_read *read, void (*on_released)(void *userdata),
                        void *userdata) {
        (void)on_released;
        (void)userdata;
        MUST(!read->is_over);
        on_drop(&read->call);
        return true;
}
