/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong in S3, for people: what was asked for, where and as whom, and which right or
 * setting is missing. Source of codes and rights: "Error responses" of the S3 API Reference, and
 * "Actions, resources, and condition keys for Amazon S3" of the Service Authorization Reference.
 */
#pragma once

#include "daemon/store/object_store.h"
#include "daemon/store/s3_error.h"
#include "daemon/store/s3_place.h"

struct s3_failure_context {
        enum object_operation operation;
        const struct s3_place *place;
        const char *prefix; /* of the source's keys, with its slash */
        const char *thing;  /* what was read */
        const char *identity;
        bool is_anonymous;
        long status;
        const struct s3_error *error;
};

/* What the error means here: by its code, or by the status where there is none. */
enum s3_error_kind s3_failure_kind(const struct s3_failure_context *context);

/* Fills the failure: class, code ("403 AccessDenied"; "archived"), a line, and a line of advice. */
void s3_failure_set(struct store_failure *ret_failure, const struct s3_failure_context *context);
