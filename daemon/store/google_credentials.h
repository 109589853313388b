/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens for Google's services, from wherever its clients would have them: the file that
 * GOOGLE_APPLICATION_CREDENTIALS names, the login of gcloud (application_default_credentials.json
 * below CLOUDSDK_CONFIG or ~/.config/gcloud), the metadata server (GCE_METADATA_HOST); or none, for
 * buckets that everybody may read. Source: "How Application Default Credentials works".
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/store/credentials.h"

/* is_anonymous: nothing is looked for. -ENOMEM. */
int google_credentials_new(uv_loop_t *loop, bool is_anonymous,
                           struct credentials **ret_credentials);
