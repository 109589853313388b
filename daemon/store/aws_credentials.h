/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of AWS, from wherever its SDKs would have them. Source: "Standardized credential
 * providers", AWS SDKs and Tools Reference Guide.
 */
#pragma once

#include "daemon/store/aws_source.h"

/* sources: NULL-terminated, in the order in which they are tried. -ENOMEM. */
int aws_credentials_new_with(uv_loop_t *loop, const struct aws_source *const *sources,
                             struct credentials **ret_credentials);

/*
 * With all that there are. profile: one that is configured goes before keys of the environment;
 * NULL: that of the environment. anonymous: none is looked for, requests are not signed.
 */
int aws_credentials_new(uv_loop_t *loop, const char *profile, bool anonymous,
                        struct credentials **ret_credentials);
