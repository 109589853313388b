/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an s3:// source is: bucket, prefix, region, and the endpoint that has the bucket. What the
 * environment says is what the SDKs of AWS and TensorBoard look at.
 */
#pragma once

#include <stdbool.h>

#include "daemon/store/aws_profile.h"

struct s3_settings {
        const char *endpoint; /* a URL, or a host without a scheme; NULL: AWS's own */
        const char *region;   /* NULL: to be learned, us-east-1 until then */
        const char *profile;  /* NULL: as the environment says */
        bool plain_http;      /* of an endpoint without a scheme */
        bool insecure;        /* certificates are not checked */
        bool anonymous;       /* requests are not signed */
        bool requester_pays;
};

struct s3_place {
        char *bucket, *prefix; /* the prefix without slashes around it */
        char region[64];
        char *custom;    /* the endpoint's URL, without a path; NULL: AWS's own */
        bool path_style; /* the bucket is the first component of the path */
};

/*
 * Fills the settings from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, S3_ENDPOINT, S3_USE_HTTPS,
 * S3_VERIFY_SSL, AWS_REGION, AWS_DEFAULT_REGION and S3_REGION. Texts are borrowed from the
 * environment.
 */
void s3_settings_from_environment(struct s3_settings *ret_settings);

/*
 * Fills what is not set yet with endpoint_url and region of the profile (settings->profile, else that
 * of the environment); borrowed from profiles.
 */
void s3_settings_add_profile(struct s3_settings *settings, const struct aws_profiles *profiles);

/* "s3://bucket/prefix". -EINVAL: *ret_message (static) says why; -ENOMEM. */
int s3_place_init(struct s3_place *place, const char *url, const struct s3_settings *settings,
                  const char **ret_message);
void s3_place_deinit(struct s3_place *place);

/* The URL that requests go to now, the caller's to free; NULL: no memory. */
char *s3_place_endpoint(const struct s3_place *place);
