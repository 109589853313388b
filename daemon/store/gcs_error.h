/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document that Google's JSON APIs send with an error. Source: "HTTP status and error codes for
 * JSON", Cloud Storage.
 */
#pragma once

#include <stddef.h>

#include "daemon/store/store.h"

struct gcs_error {
        char reason[24];   /* "forbidden"; "" if there is no such document */
        char message[256]; /* its first line */
};

/* Whatever the body is: a media read may be refused in plain text. */
void gcs_error_parse(const char *body, size_t size, struct gcs_error *ret_error);

enum gcs_error_kind {
        GCS_ERROR_OTHER, /* by the status */
        GCS_ERROR_THROTTLED,
        GCS_ERROR_CREDENTIALS, /* they are not, or no more, good */
        GCS_ERROR_DENIED,
        GCS_ERROR_NO_BUCKET,
        GCS_ERROR_PROJECT, /* whoever asks has to pay, and has not said who */
};

enum gcs_error_kind gcs_error_kind(long status, const struct gcs_error *error);
