/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/call.h"

#include <errno.h>
#include <string.h>

void call_reset(struct call *call) {
        json_decref(call->result);
        free(call->method);
        free(call->error_message);
        for (unsigned i = 0; i < call->fd_count; i++)
                close_fdp(&call->fds[i]);
        *call = (struct call){ .id = call->id };
}

int call_outcome(int64_t error_code) {
        static const struct {
                enum wire_error code;
                enum hr_outcome outcome;
        } outcomes[] = {
                { WIRE_E_SOURCE, HR_E_SOURCE },
                { WIRE_E_LIMIT, HR_E_LIMIT },
                { WIRE_E_VERSION_GONE, HR_E_GONE },
                { WIRE_E_UNREADABLE, HR_E_UNREADABLE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
                if (outcomes[i].code == error_code)
                        return outcomes[i].outcome;
        }
        return HR_E_REFUSED;
}

/*
 * Copies code and message out of an error object; both may be anything. Storage's own code comes
 * first where there is one.
 */
static void read_error(const json_t *error, int64_t *ret_code, char **message) {
        const char *text = json_string_value(json_object_get(error, "message"));
        const char *code = json_string_value(
                json_object_get(json_object_get(error, "data"), "code"));

        if (!text)
                text = "no reason given";
        if (!code || strstr(text, code))
                code = "";
        *ret_code = json_integer_value(json_object_get(error, "code"));
        free(*message);
        if (asprintf(message, "%s%s%s", code, code[0] ? " " : "", text) < 0)
                *message = NULL;
}

static void take_answer(struct call *call, json_t *message, struct wire_frame *frame) {
        json_t *result = json_object_get(message, "result");

        call->answered = true;
        if (result)
                call->result = json_incref(result);
        else
                read_error(json_object_get(message, "error"), &call->error_code,
                           &call->error_message);
        memcpy(call->fds, frame->fds, sizeof(call->fds));
        call->fd_count = frame->fd_count;
        frame->fd_count = 0;
}

static void take_notification(struct hr_connection *connection, const char *method,
                              json_t *params) {
        CLEANUP(freep) char *text = NULL;

        /* The stream cannot be completed: what an error without an id is for the connection. */
        if (strcmp(method, "stream_failed") == 0)
                read_error(params, &connection->refusal_code, &connection->refusal_message);
        if (!connection->on_notification)
                return;
        text = json_dumps(params, JSON_COMPACT | JSON_ENCODE_ANY);
        connection->on_notification(connection->notification_userdata, method, text ? text : "{}");
}

int call_take_message(struct hr_connection *connection, struct wire_frame *frame) {
        json_error_t error;
        json_t *message = json_loadb((const char *)frame->body, frame->size_bytes,
                                     JSON_REJECT_DUPLICATES, &error);
        const char *method = json_string_value(json_object_get(message, "method"));
        json_t *id = json_object_get(message, "id");
        int r = 0;

        if (!json_is_object(message))
                r = link_fail(connection, -EPROTO, "%s: sent no JSON: %s",
                              hr_daemon_name(connection), error.text);
        else if (method)
                take_notification(connection, method, json_object_get(message, "params"));
        else if (connection->call.pending && !connection->call.answered && json_is_integer(id) &&
                 json_integer_value(id) == (json_int_t)connection->call.id)
                take_answer(&connection->call, message, frame);
        else if (!id || json_is_null(id))
                read_error(json_object_get(message, "error"), &connection->refusal_code,
                           &connection->refusal_message);
        json_decref(message);
        return r;
}

static int send_message(struct hr_connection *connection, json_t *take_message) {
        CLEANUP(freep) char *text = json_dumps(take_message, JSON_COMPACT);
        size_t size = text ? strlen(text) : 0;
        int r = -ENOMEM;

        json_decref(take_message);
        if (size > WIRE_CLIENT_BODY_MAX)
                return link_fail(connection, -EMSGSIZE,
                                 "the request is longer than the daemon takes");
        if (text)
                r = wire_writer_add_body(&connection->writer, WIRE_JSON, text, (uint32_t)size);
        return r < 0 ? link_fail(connection, r, "%s", strerror(-r)) : 0;
}

int call_start(struct hr_connection *connection, const char *method, json_t *take_params) {
        struct call *call = &connection->call;
        json_t *message = json_pack("{s:s, s:I, s:s, s:o*}", "jsonrpc", "2.0", "id",
                                    (json_int_t)call->id + 1, "method", method, "params",
                                    take_params);
        int r;

        if (call->pending) {
                json_decref(message);
                return link_fail(connection, -EBUSY, "%s: the call before it has not ended",
                                 method);
        }
        if (!message)
                return link_fail(connection, -ENOMEM, "%s: %s", method, strerror(ENOMEM));
        call_reset(call);
        if ((r = send_message(connection, message)) < 0)
                return r;
        call->id++;
        call->pending = true;
        call->method = strdup(method);
        return 0;
}

int call_finish(struct hr_connection *connection, int timeout_ms) {
        struct call *call = &connection->call;
        int64_t deadline_ms = link_deadline(timeout_ms);
        int r;

        if (!call->pending)
                return link_fail(connection, -EINVAL, "no call was started");
        while (!call->answered) {
                r = link_pump(connection);
                if (r == HR_AGAIN && (r = link_wait(connection, deadline_ms)) == HR_AGAIN)
                        return r;
                if (r < 0 && !call->answered) {
                        call_reset(call);
                        if (connection->refusal_message)
                                link_fail(connection, r, "%s", connection->refusal_message);
                        return r;
                }
        }
        call->pending = false;
        if (call->result)
                return 0;
        return link_fail(connection, call_outcome(call->error_code), "%s",
                         call->error_message ? call->error_message : "");
}

int call_json(struct hr_connection *connection, const char *method, json_t *take_params,
              json_t **ret_result) {
        int r = call_start(connection, method, take_params);

        if (r == 0)
                r = call_finish(connection, -1);
        if (r == 0)
                *ret_result = json_incref(connection->call.result);
        if (r != -EBUSY)
                call_reset(&connection->call);
        return r;
}

int call_notify(struct hr_connection *connection, const char *method, json_t *take_params) {
        json_t *message = json_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method,
                                    "params", take_params);

        return message ? send_message(connection, message)
                       : link_fail(connection, -ENOMEM, "%s", strerror(ENOMEM));
}

int hr_call_start(struct hr_connection *connection, const char *method, const char *params) {
        json_error_t error;
        json_t *object = NULL;
        int r;

        if (params)
                object = json_loads(params, JSON_REJECT_DUPLICATES, &error);
        if (params && !json_is_object(object)) {
                json_decref(object);
                return link_fail(connection, -EINVAL, "%s: parameters: not a JSON object", method);
        }
        r = call_start(connection, method, object);
        return r < 0 ? r : HR_AGAIN;
}

int hr_call_finish(struct hr_connection *connection, int timeout_ms, char **ret_result) {
        int r = call_finish(connection, timeout_ms);
        char *text = NULL;

        if (r == HR_AGAIN)
                return r;
        if (r == 0 && ret_result &&
            !(text = json_dumps(connection->call.result, JSON_COMPACT | JSON_ENCODE_ANY)))
                r = link_fail(connection, -ENOMEM, "%s", strerror(ENOMEM));
        call_reset(&connection->call);
        if (r == 0 && ret_result)
                *ret_result = text;
        return r;
}

int hr_call(struct hr_connection *connection, const char *method, const char *params,
            char **ret_result) {
        int r = hr_call_start(connection, method, params);

        return r == HR_AGAIN ? hr_call_finish(connection, -1, ret_result) : r;
}
