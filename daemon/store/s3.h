/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3://bucket/prefix: ListObjectsV2 and ranged GETs, and nothing else, signed by ourselves. Behind
 * store_open(); tests choose settings and deadlines.
 */
#pragma once

#include "daemon/store/credentials.h"
#include "daemon/store/http_client.h"
#include "daemon/store/s3_place.h"
#include "daemon/store/store.h"

/* As struct store_type's new(). Takes the credentials, on failure too. */
int s3_new(uv_loop_t *loop, const char *url, const struct s3_settings *settings,
           const struct http_client_options *options, struct credentials *take_credentials,
           struct store **ret_store, const char **ret_message);
