/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store behind HTTP, with deadlines that a test can choose. Everybody else opens it through
 * store_open().
 */
#pragma once

#include "daemon/store/http_client.h"
#include "daemon/store/store.h"

/* As struct store_type's new(). */
int store_http_new(uv_loop_t *loop, const char *url, const struct http_client_options *options,
                   struct store **ret_store, const char **ret_message);
