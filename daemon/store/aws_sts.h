/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS's Security Token Service: credentials of a role, for a token or signed with others'. Source:
 * "AssumeRole" and "AssumeRoleWithWebIdentity", AWS Security Token Service API Reference.
 */
#pragma once

#include <stdio.h>

#include "daemon/store/aws_source.h"

struct aws_sts;

/* Everything is borrowed for the call. */
struct aws_sts_query {
        const char *action;
        const char *role_arn;
        const char *label;   /* what it was set up by, for people; NULL: the profile */
        const char *session; /* NULL: a name of ours */
        const char *external_id, *duration_s, *token; /* NULL: none */
        const struct credentials_value *signer;       /* NULL: not signed */
};

/* on_done as of a source. -EINVAL: AWS_ENDPOINT_URL_STS is no URL; -ENOMEM. */
int aws_sts_start(const struct aws_context *context, const struct aws_sts_query *query,
                  aws_on_done *on_done, void *userdata, struct aws_sts **ret_sts);
void aws_sts_cancel(struct aws_sts *sts);
