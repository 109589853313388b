/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document that S3 sends with an error, and what its code means here. Source: "Error responses",
 * Amazon S3 API Reference.
 */
#pragma once

#include <stddef.h>

#include "daemon/store/store.h"

struct s3_error {
        char code[64]; /* "" if there is no such document */
        char message[256];
        char region[64];
        char endpoint[256];
        char server_time[40]; /* "2013-05-24T00:00:00Z" */
};

/* Whatever the body is. */
void s3_error_parse(const char *body, size_t size, struct s3_error *ret_error);

enum s3_error_kind {
        S3_ERROR_OTHER,       /* by the status */
        S3_ERROR_TRANSIENT,   /* another try */
        S3_ERROR_THROTTLED,   /* another try, and fewer of them */
        S3_ERROR_CREDENTIALS, /* the credentials are not, or no more, good */
        S3_ERROR_CLOCK,
        S3_ERROR_REGION, /* it is elsewhere */
        S3_ERROR_DENIED,
        S3_ERROR_NO_BUCKET,
        S3_ERROR_ARCHIVED,
        S3_ERROR_KMS, /* the key that it is encrypted with may not be used */
};

enum s3_error_kind s3_error_kind(const char *code);
