/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/object_call.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/store/failure.h"
#include "daemon/store/object_client.h"

#define OBJECT_CALL_LEARNS_MOST 3

/* ---- The request ---- */

int object_request_add_header(struct object_request *request, const char *format, ...) {
        char **longer = realloc(request->headers,
                                (request->header_count + 2) * sizeof(request->headers[0]));
        va_list arguments;
        char *header;
        int size;

        if (!longer)
                return -ENOMEM;
        request->headers = longer;
        longer[request->header_count] = NULL;
        va_start(arguments, format);
        size = vasprintf(&header, format, arguments);
        va_end(arguments);
        if (size < 0)
                return -ENOMEM;
        longer[request->header_count++] = header;
        longer[request->header_count] = NULL;
        return 0;
}

/* Headers may hold a token. */
static void request_deinit(struct object_request *request) {
        for (size_t i = 0; i < request->header_count; i++) {
                explicit_bzero(request->headers[i], strlen(request->headers[i]));
                free(request->headers[i]);
        }
        free(request->headers);
        free(request->target);
}

/* ---- Sending ---- */

static void on_header(void *userdata, const char *name, size_t name_size, const char *value,
                      size_t value_size) {
        struct object_call *call = userdata;

        call->store->dialect->on_header(call->store, &call->reply, name, name_size, value,
                                        value_size);
}

static bool on_body(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        struct object_call *call = userdata;

        return call->type->on_body(call, answer, bytes, size);
}

static void on_turn(void *userdata) {
        struct object_call *call = userdata;

        call->type->on_turn(call);
}

static void on_done(void *userdata, const struct http_answer *answer,
                    const struct store_failure *transport) {
        struct object_call *call = userdata;

        call->http = NULL;
        call->type->on_end(call, answer, transport);
}

static int send_signed(struct object_call *call, struct object_request *request) {
        struct object_client *client = object_client_now(call->store);
        struct http_handler handler = {
                .on_header = call->store->dialect->on_header ? on_header : NULL,
                .on_body = on_body,
                .on_turn = call->type->on_turn ? on_turn : NULL,
                .on_done = on_done,
        };
        struct http_query query = {
                .target = request->target,
                .begin = request->begin,
                .size_bytes = request->size_bytes,
                .headers = (const char *const *)request->headers,
                .no_redirects = true,
        };

        return http_client_send(client->client, &query, &handler, call, &call->http);
}

static int send_with(struct object_call *call, const struct credentials_value *value) {
        struct object_request request = { 0 };
        int r = call->type->make(call, &request);

        call->serial = credentials_serial(call->store->credentials);
        if (r == 0)
                r = call->store->dialect->sign(call->store, call->type->operation, &request, value);
        if (r == 0)
                r = send_signed(call, &request);
        request_deinit(&request);
        return r;
}

/* What is known of the identity is kept for people, who see it beside the source. */
static void note_identity(struct object_store *store, const struct credentials_value *value) {
        char *copy;

        if (!value->identity ||
            (store->store.identity && strcmp(store->store.identity, value->identity) == 0))
                return;
        copy = strdup(value->identity);
        if (!copy)
                return;
        free(store->store.identity);
        store->store.identity = copy;
}

static void count_requests(struct object_store *store) {
        request_count_add(&store->store.requests, REQUEST_CREDENTIALS,
                          credentials_take_requests(store->credentials), time(NULL));
}

static void on_ready(void *userdata, const struct store_failure *failure) {
        struct object_call *call = userdata;
        struct http_answer none;
        struct store_failure broken;
        int r;

        call->wait = NULL;
        count_requests(call->store);
        if (failure->class == STORE_OK) {
                r = object_call_start(call);
                if (r == 0)
                        return;
                failure_set_errno(&broken, -r, call->store->store.url);
                failure = &broken;
        }
        http_answer_init(&none);
        call->type->on_end(call, &none, failure);
}

void object_call_init(struct object_call *call, struct object_store *store,
                      const struct object_call_type *type) {
        *call = (struct object_call){ .type = type, .store = store };
        list_append(&store->calls, &call->node);
}

int object_call_start(struct object_call *call) {
        struct object_store *store = call->store;
        const struct credentials_value *value = credentials_now(store->credentials);

        call->reply = (struct object_reply){ 0 };
        if (!value)
                return credentials_wait(store->credentials, on_ready, call, &call->wait);
        note_identity(store, value);
        count_requests(store);
        return send_with(call, value);
}

void object_call_deinit(struct object_call *call) {
        list_remove(&call->node);
        if (call->wait)
                credentials_wait_cancel(steal_pointer(&call->wait));
        if (call->http)
                http_request_cancel(steal_pointer(&call->http));
}

/* ---- Errors ---- */

bool object_call_judge(struct object_call *call, const struct http_answer *answer, const char *text,
                       size_t text_size, const char *thing, struct store_failure *ret_failure) {
        struct object_store *store = call->store;
        enum object_remedy remedy;

        call->reply.answer = answer;
        call->reply.body = text ? text : "";
        call->reply.body_size = text ? text_size : 0;
        remedy = store->dialect->judge(store, call->type->operation, &call->reply, thing,
                                       credentials_now(store->credentials), ret_failure);
        call->reply.answer = NULL;
        call->reply.body = NULL;
        if (ret_failure->class == STORE_TRANSIENT || ret_failure->class == STORE_THROTTLED)
                ret_failure->retry_after_ms = answer->retry_after_ms;
        if (remedy == OBJECT_LEARNED)
                return call->learned++ < OBJECT_CALL_LEARNS_MOST;
        if (remedy != OBJECT_REFRESHES || call->refreshed)
                return false;
        call->refreshed = true;
        return credentials_refused(store->credentials, call->serial);
}

char *object_call_thing(const struct object_call *call, const char *target) {
        char *thing;

        if (asprintf(&thing, "%s%.*s", object_store_endpoint(call->store)->endpoint,
                     (int)strcspn(target, "?"), target) < 0)
                return NULL;
        return thing;
}
