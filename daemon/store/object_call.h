/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of an object store, from waiting for credentials to its answer, and once more after
 * a remedy. Pages and reads are built around it. Only object_*.c look at it.
 */
#pragma once

#include "daemon/store/object_store.h"

struct object_call;

struct object_call_type {
        enum object_operation operation;
        /* Fills the request. -errno. */
        int (*make)(struct object_call *call, struct object_request *request);
        /* As those of struct http_handler. on_turn may be NULL. */
        bool (*on_body)(struct object_call *call, const struct http_answer *answer,
                        const uint8_t *bytes, size_t size);
        void (*on_turn)(struct object_call *call);
        /*
         * The answer is whole (failure->class STORE_OK), or did not come; it may be started again.
         */
        void (*on_end)(struct object_call *call, const struct http_answer *answer,
                       const struct store_failure *failure);
        /* The store closes: the owner goes, and the call with it, without a word. */
        void (*on_drop)(struct object_call *call);
};

struct object_call {
        const struct object_call_type *type;
        struct object_store *store;
        struct list node; /* of store->calls */
        struct credentials_wait *wait;
        struct http_request *http;
        struct object_reply reply;
        uint64_t serial; /* of the credentials that it was signed with */
        bool refreshed;
        unsigned learned; /* times that it was sent again because the dialect had learned */
};

void object_call_init(struct object_call *call, struct object_store *store,
                      const struct object_call_type *type);

/* Sends it, as soon as there are credentials. on_end is never called from inside. -errno. */
int object_call_start(struct object_call *call);

/* Ends it, without a callback if it is under way. */
void object_call_deinit(struct object_call *call);

/*
 * The answer is an error: fills the failure (its text: NUL-terminated, NULL if there is none).
 * thing: what was asked for. True: there is a remedy, and the call should be started again.
 */
bool object_call_judge(struct object_call *call, const struct http_answer *answer, const char *text,
                       size_t text_size, const char *thing, struct store_failure *ret_failure);

/* "https://host:port/path", without the query; the caller's to free, NULL: no memory. */
char *object_call_thing(const struct object_call *call, const char *target);
