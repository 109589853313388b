/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a call, checked: 0, or RPC_FAILED with the error noted (rpc.h) and the output
 * untouched, -ENOMEM. A parameter that is absent or null is no error unless a function says so.
 * Strings are borrowed from the call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/serve/rpc.h"

int params_string(struct rpc_call *call, const char *key, const char **ret_string);
int params_bool(struct rpc_call *call, const char *key, bool *ret_bool);
/* must be there */
int params_u64(struct rpc_call *call, const char *key, uint64_t most, uint64_t *ret_number);
/* must be there */
int params_id(struct rpc_call *call, const char *key, uint64_t *ret_id);

/* An id of a JSON string of 16 hex digits; false: not one. */
bool params_parse_id(const json_t *value, uint64_t *ret_id);

/* A set of globs (fnmatch); a count of 0 matches everything. */
struct params_globs {
        char **globs;
        size_t count;
};

#define PARAMS_GLOBS_MOST 4096

/*
 * One glob or a list of them, under key or, as hex, under key_hex. Call params_globs_deinit() in
 * any case.
 */
int params_globs(struct rpc_call *call, const char *key, struct params_globs *ret_globs);
void params_globs_deinit(struct params_globs *globs);
bool params_globs_match(const struct params_globs *globs, const char *name);
