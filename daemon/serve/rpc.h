/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 without a transport: a text in, a method of a table called, a message out. Loop
 * thread; no state of its own.
 *
 * A notification (a request without an id) is never answered, not even with an error. Batches are
 * not supported and are answered with one error.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/wire_format.h"

struct rpc_call {
        json_t *id;           /* borrowed; NULL for a notification */
        const json_t *params; /* borrowed; always an object */
        void *userdata;       /* of rpc_dispatch() */
        json_t *error;        /* set by rpc_fail() */
};

/*
 * Outcomes of a handler. 0: *ret_result is the answer and the caller's; -errno: answered as an
 * internal error.
 */
enum rpc_outcome {
        RPC_LATER = 1,  /* the handler keeps a reference of the id and answers by itself */
        RPC_FAILED = 2, /* rpc_fail() was called */
};

enum rpc_flag {
        RPC_FIRST = 1,  /* may come before the greeting */
        RPC_FRAMED = 2, /* not in the line mode */
        RPC_ASKS = 4,   /* its answer depends on what is in storage */
};

struct rpc_method {
        const char *name;
        int (*handle)(struct rpc_call *call, json_t **ret_result);
        unsigned flags;
};

struct rpc_caller {
        bool framed;
        bool greeted; /* has said hello; taken for granted in the line mode */
        /* before a method that asks is called, with the userdata of rpc_dispatch(); may be NULL */
        void (*on_ask)(void *userdata);
};

/*
 * Handles one text. Returns the message to send, the caller's, or NULL for none (also when there is
 * no memory).
 */
json_t *rpc_dispatch(const struct rpc_method *methods, size_t method_count,
                     struct rpc_caller caller, void *userdata, const char *text, size_t size);

/* Notes why the call fails; returns RPC_FAILED. */
int rpc_fail(struct rpc_call *call, int code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Messages, the caller's; NULL when there is no memory. id may be NULL (unknown). */
json_t *rpc_result(json_t *id, json_t *take_result);
json_t *rpc_error(json_t *id, int code, const char *message, json_t *take_data);
json_t *rpc_notification(const char *method, json_t *take_params);
