/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of docs/PROTOCOL.md: one table. Handlers get the peer as userdata; they are in
 * methods_*.c by what they are about.
 */
#pragma once

#include <stddef.h>

#include "daemon/serve/params.h"
#include "daemon/serve/peer.h"
#include "daemon/serve/rpc.h"

extern const struct rpc_method methods[];
extern const size_t method_count;

int methods_hello(struct rpc_call *call, json_t **ret_result);
int methods_status(struct rpc_call *call, json_t **ret_result);

int methods_sources(struct rpc_call *call, json_t **ret_result);
int methods_add_source(struct rpc_call *call, json_t **ret_result);
int methods_remove_source(struct rpc_call *call, json_t **ret_result);
int methods_runs(struct rpc_call *call, json_t **ret_result);
int methods_files(struct rpc_call *call, json_t **ret_result);
int methods_series(struct rpc_call *call, json_t **ret_result);

int methods_reload(struct rpc_call *rpc, json_t **ret_result);
int methods_wait_loaded(struct rpc_call *rpc, json_t **ret_result);

int methods_subscribe(struct rpc_call *call, json_t **ret_result);
int methods_ack(struct rpc_call *call, json_t **ret_result);
int methods_prioritize(struct rpc_call *call, json_t **ret_result);

int methods_payload(struct rpc_call *rpc, json_t **ret_result);

int methods_damage(struct rpc_call *rpc, json_t **ret_result);

/* Asks the pipeline; the call is answered when it has answered. -ENOMEM. */
int methods_start_payload(struct peer_call *call);
int methods_start_damage(struct peer_call *call);

/* Goes on with calls that read storage and had to wait. */
void methods_start_reads(struct peer *peer);

/* The answer to a call of that kind that has failed. failure may be NULL. */
json_t *methods_read_error(json_t *id, int error, const struct store_failure *failure);

/*
 * The parameter `source`: by name or URL; NULL stays where it is absent. RPC_FAILED if there is no
 * such source.
 */
int methods_find_source(struct rpc_call *call, struct catalog_source **ret_source);

/* All sources as JSON rows; NULL: no memory. */
json_t *methods_source_rows(struct server *server);
