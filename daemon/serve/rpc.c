/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jansson bounds depth and numbers; the frame bounds the size. What is left is to tell apart who
 * gets which error.
 */
#include "daemon/serve/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"

json_t *rpc_result(json_t *id, json_t *take_result) {
        return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", take_result);
}

/* A text that may quote names, which may be no UTF-8 or cut in the middle of a character. */
static json_t *text_or(const char *text, const char *otherwise) {
        json_t *string = json_string(text);

        return string ? string : json_string(otherwise);
}

json_t *rpc_error(json_t *id, int code, const char *message, json_t *take_data) {
        json_t *error = json_pack("{s:i, s:o, s:o*}", "code", code, "message",
                                  text_or(message, "failed"), "data", take_data);

        return json_pack("{s:s, s:O?, s:o}", "jsonrpc", "2.0", "id", id, "error", error);
}

json_t *rpc_notification(const char *method, json_t *take_params) {
        return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params",
                         take_params);
}

int rpc_fail(struct rpc_call *call, int code, const char *format, ...) {
        char message[1024];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(message, sizeof(message), format, arguments);
        va_end(arguments);
        json_decref(call->error);
        call->error = json_pack("{s:i, s:o}", "code", code, "message",
                                text_or(message, "the parameters are not right"));
        return RPC_FAILED;
}

static json_t *answer_error(const struct rpc_call *call, int code, const char *message) {
        return call->id ? rpc_error(call->id, code, message, NULL) : NULL;
}

static const struct rpc_method *find_method(const struct rpc_method *methods, size_t count,
                                            const char *name) {
        for (size_t i = 0; i < count; i++) {
                if (!strcmp(methods[i].name, name))
                        return &methods[i];
        }
        return NULL;
}

static json_t *run_method(const struct rpc_method *method, struct rpc_call *call) {
        json_t *result = NULL;
        int r = method->handle(call, &result);

        if (r == RPC_LATER)
                return NULL;
        if (r == RPC_FAILED) {
                json_t *error = steal_pointer(&call->error);

                if (call->id)
                        return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", call->id,
                                         "error", error);
                json_decref(error);
                return NULL;
        }
        if (r < 0)
                return answer_error(call, WIRE_E_INTERNAL, strerror(-r));
        if (!call->id) {
                json_decref(result);
                return NULL;
        }
        return rpc_result(call->id, result);
}

/* The request is an object with a right id, or none. */
static json_t *call_method(const struct rpc_method *methods, size_t count, struct rpc_caller caller,
                           const json_t *request, struct rpc_call *call) {
        const char *version = json_string_value(json_object_get(request, "jsonrpc"));
        const char *name = json_string_value(json_object_get(request, "method"));
        const json_t *params = json_object_get(request, "params");
        const struct rpc_method *method;
        json_t *none, *reply;

        if (!version || strcmp(version, "2.0") || !name)
                return answer_error(call, WIRE_E_INVALID, "not a JSON-RPC 2.0 request");
        method = find_method(methods, count, name);
        if (!method)
                return answer_error(call, WIRE_E_METHOD, "no such method");
        if (caller.framed && !caller.greeted && !(method->flags & RPC_FIRST))
                return answer_error(call, WIRE_E_INVALID, "hello must come first");
        if (!caller.framed && (method->flags & RPC_FRAMED))
                return answer_error(call, WIRE_E_NOT_ALLOWED,
                                    "this method needs a framed connection");
        if (params && !json_is_object(params))
                return answer_error(call, WIRE_E_PARAMS, "params must be an object");
        if ((method->flags & RPC_ASKS) && caller.on_ask)
                caller.on_ask(call->userdata);
        none = params ? NULL : json_object();
        call->params = params ? params : none;
        reply = call->params ? run_method(method, call) : NULL;
        json_decref(none);
        return reply;
}

json_t *rpc_dispatch(const struct rpc_method *methods, size_t method_count,
                     struct rpc_caller caller, void *userdata, const char *text, size_t size) {
        struct rpc_call call = { .userdata = userdata };
        json_error_t problem;
        json_t *request = json_loadb(text, size, 0, &problem);
        json_t *reply;

        if (!request)
                return rpc_error(NULL, WIRE_E_PARSE, problem.text, NULL);
        if (json_is_array(request)) {
                reply = rpc_error(NULL, WIRE_E_INVALID,
                                  "batches are not supported: send one request at a time", NULL);
        } else {
                call.id = json_object_get(request, "id");
                if (call.id && !json_is_string(call.id) && !json_is_number(call.id) &&
                    !json_is_null(call.id))
                        reply = rpc_error(NULL, WIRE_E_INVALID, "an id is a string or a number",
                                          NULL);
                else
                        reply = call_method(methods, method_count, caller, request, &call);
        }
        json_decref(request);
        return reply;
}
