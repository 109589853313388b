/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gs://bucket/prefix: objects.list and ranged media reads of Cloud Storage's JSON API, and nothing
 * else. Behind store_open(); tests choose settings and deadlines.
 */
#pragma once

#include "daemon/store/credentials.h"
#include "daemon/store/http_client.h"
#include "daemon/store/store.h"

struct gcs_settings {
        const char *endpoint; /* a URL, or a host without a scheme (http); NULL: Google's own */
        const char *project;  /* that pays for requests (userProject); NULL: the bucket's */
};

/* From STORAGE_EMULATOR_HOST and GOOGLE_CLOUD_QUOTA_PROJECT; borrowed from the environment. */
void gcs_settings_from_environment(struct gcs_settings *ret_settings);

/* As struct store_type's new(). Takes the credentials, on failure too. */
int gcs_new(uv_loop_t *loop, const char *url, const struct gcs_settings *settings,
            const struct http_client_options *options, struct credentials *take_credentials,
            struct store **ret_store, const char **ret_message);
