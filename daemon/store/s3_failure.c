/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/s3_failure.h"

#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"

enum s3_error_kind s3_failure_kind(const struct s3_failure_context *context) {
        enum s3_error_kind kind = s3_error_kind(context->error->code);

        if (kind == S3_ERROR_OTHER && (context->status == 301 || context->status == 307))
                return S3_ERROR_REGION;
        /* S3 says so when the role may read the object, but not use the key. */
        if (kind == S3_ERROR_DENIED && strstr(context->error->message, "kms:"))
                return S3_ERROR_KMS;
        return kind;
}

static enum store_failure_class class_of(enum s3_error_kind kind, long status) {
        struct store_failure failure;

        if (kind == S3_ERROR_TRANSIENT)
                return STORE_TRANSIENT;
        if (kind == S3_ERROR_THROTTLED)
                return STORE_THROTTLED;
        if (kind != S3_ERROR_OTHER)
                return STORE_PERMANENT;
        failure_set_status(&failure, status, "");
        return failure.class;
}

/* ---- Advice ---- */

static const char *partition_of(const struct s3_place *place) {
        return strncmp(place->region, "cn-", 3) == 0       ? "aws-cn"
               : strncmp(place->region, "us-gov-", 7) == 0 ? "aws-us-gov"
                                                           : "aws";
}

static void advise_rights(const struct s3_failure_context *context, struct store_failure *failure) {
        const char *partition = partition_of(context->place), *bucket = context->place->bucket;

        if (context->is_anonymous)
                failure_advise(failure, "not public, and no credentials were found: set "
                                        "AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                                        "AWS_SECRET_ACCESS_KEY");
        else if (context->operation == OBJECT_LIST)
                failure_advise(failure,
                               "needs s3:ListBucket on arn:%s:s3:::%s (s3:prefix %s*) and "
                               "s3:GetObject on arn:%s:s3:::%s/%s*",
                               partition, bucket, context->prefix, partition, bucket,
                               context->prefix);
        else
                failure_advise(failure, "needs s3:GetObject on arn:%s:s3:::%s/%s*", partition,
                               bucket, context->prefix);
}

/* "(profile NAME)" of an identity. */
static const char *profile_of(const char *identity, int *ret_size) {
        const char *at = strstr(identity, "(profile ");

        if (!at)
                return NULL;
        at += strlen("(profile ");
        *ret_size = (int)strcspn(at, ")");
        return at;
}

static void advise_credentials(const struct s3_failure_context *context,
                               struct store_failure *failure) {
        static const struct {
                const char *code, *advice;
        } refused[] = {
                { "SignatureDoesNotMatch",
                  "the secret access key is not the one of this access key" },
                { "InvalidAccessKeyId", "the server does not know this access key" },
                { "InvalidClientTokenId", "the server does not know this access key" },
                { "InvalidToken", "the session token is not the one of this access key" },
        };
        int size = 0;
        const char *profile = profile_of(context->identity, &size);

        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                if (strcmp(context->error->code, refused[i].code) == 0) {
                        failure_advise(failure, "%s", refused[i].advice);
                        return;
                }
        }
        if (profile)
                failure_advise(failure,
                               "the login has expired: aws sso login --profile %.*s, or whatever "
                               "writes the keys of this profile",
                               size, profile);
        else
                failure_advise(failure, "the credentials have expired, and there are no newer "
                                        "ones where they came from");
}

static void advise_other(const struct s3_failure_context *context, struct store_failure *failure) {
        if (context->error->message[0])
                failure_advise(failure, "%s", context->error->message);
}

static void advise_bucket(const struct s3_failure_context *context, struct store_failure *failure) {
        failure_advise(failure, context->place->custom
                                        ? "is the name of the bucket right, and the endpoint "
                                          "(AWS_ENDPOINT_URL_S3)?"
                                        : "is the name of the bucket right?");
}

static void advise_region(const struct s3_failure_context *context, struct store_failure *failure) {
        if (context->error->region[0])
                failure_advise(failure, "the bucket is in %s: set AWS_REGION",
                               context->error->region);
        else
                failure_advise(failure, "the bucket is in another region: set AWS_REGION");
}

static void advise_clock(const struct s3_failure_context *context, struct store_failure *failure) {
        (void)context;
        failure_advise(failure, "the clock of this machine is wrong, and the server's is not "
                                "understood: set it (timedatectl set-ntp true)");
}

static void advise_archived(const struct s3_failure_context *context,
                            struct store_failure *failure) {
        (void)context;
        failure_advise(failure, "restore it first (aws s3api restore-object)");
}

static void advise_key(const struct s3_failure_context *context, struct store_failure *failure) {
        failure_advise(failure, "needs kms:Decrypt on the key that it is encrypted with%s%s",
                       context->error->message[0] ? ": " : "", context->error->message);
}

static void (*const advisers[])(const struct s3_failure_context *context,
                                struct store_failure *failure) = {
        [S3_ERROR_OTHER] = advise_other,       [S3_ERROR_TRANSIENT] = advise_other,
        [S3_ERROR_THROTTLED] = advise_other,   [S3_ERROR_CREDENTIALS] = advise_credentials,
        [S3_ERROR_CLOCK] = advise_clock,       [S3_ERROR_REGION] = advise_region,
        [S3_ERROR_DENIED] = advise_rights,     [S3_ERROR_NO_BUCKET] = advise_bucket,
        [S3_ERROR_ARCHIVED] = advise_archived, [S3_ERROR_KMS] = advise_key,
};

void s3_failure_set(struct store_failure *ret_failure, const struct s3_failure_context *context) {
        enum s3_error_kind kind = s3_failure_kind(context);
        const struct s3_place *place = context->place;
        bool is_list = context->operation == OBJECT_LIST;
        char code[96];

        if (kind == S3_ERROR_ARCHIVED)
                snprintf(code, sizeof(code), STORE_CODE_ARCHIVED);
        else
                snprintf(code, sizeof(code), "%ld%s%s", context->status,
                         context->error->code[0] ? " " : "", context->error->code);
        failure_set(ret_failure, class_of(kind, context->status), code, "on %s%s (%s), as %s",
                    is_list ? "ListObjectsV2 prefix=" : "GetObject ",
                    is_list ? context->prefix : context->thing,
                    place->custom ? place->custom : place->region, context->identity);
        advisers[kind](context, ret_failure);
}
