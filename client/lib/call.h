/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC over the connection: one call at a time, and the daemon's notifications as they come. */
#pragma once

#include <jansson.h>

#include "client/lib/link.h"

void call_reset(struct call *call); /* forgets the call and frees what its answer brought */

/*
 * A JSON frame: the answer, a notification, or an error without an id. -EPROTO (hr_error() says
 * how), -ENOMEM.
 */
int call_take_message(struct hr_connection *connection, struct wire_frame *frame);

/*
 * Queues a call; takes params (NULL: none). Its answer is waited for by call_finish(). -EBUSY,
 * -ENOMEM.
 */
int call_start(struct hr_connection *connection, const char *method, json_t *take_params);

/*
 * Waits for the answer. 0: connection->call has the result and its descriptors, until call_reset().
 * HR_AGAIN, HR_E_*, -errno as hr_call_finish().
 */
int call_finish(struct hr_connection *connection, int timeout_ms);

/* Both. *ret_result is the caller's reference. */
int call_json(struct hr_connection *connection, const char *method, json_t *take_params,
              json_t **ret_result);

/* Queues a notification to the daemon; takes params. -ENOMEM. */
int call_notify(struct hr_connection *connection, const char *method, json_t *take_params);

/* The outcome that a code of the protocol stands for. */
int call_outcome(int64_t error_code);
