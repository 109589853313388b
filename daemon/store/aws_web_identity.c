/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A role for a token that something else keeps in a file (Kubernetes, CI). Source: "Assume role with
 * web identity", AWS SDKs and Tools Reference Guide.
 */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"
#include "daemon/store/aws_sts.h"

/* Of the environment, or else of the profile. */
static const char *find(const struct aws_context *context, const char *variable,
                        const char *setting) {
        const char *value = aws_variable(variable);

        return value ? value : aws_setting(context, setting);
}

static int start(const struct aws_context *context, struct credentials_value *ret_value,
                 char why[AWS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                 struct aws_run **ret_run) {
        const char *path = find(context, "AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
        const char *role = find(context, "AWS_ROLE_ARN", "role_arn");
        CLEANUP(freep) char *token = NULL;
        int r;

        (void)ret_value;
        if (!path || !role) {
                snprintf(why, AWS_WHY_BYTES, "%s is not set",
                         path ? "AWS_ROLE_ARN" : "AWS_WEB_IDENTITY_TOKEN_FILE");
                return AWS_ABSENT;
        }
        r = aws_read_file(path, &token);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                snprintf(why, AWS_WHY_BYTES, "%s: %s", path, strerror(-r));
                return AWS_ABSENT;
        }
        token[strcspn(token, "\r\n")] = '\0';
        r = aws_sts_start(
                context,
                &(struct aws_sts_query){
                        .action = "AssumeRoleWithWebIdentity",
                        .role_arn = role,
                        .session = find(context, "AWS_ROLE_SESSION_NAME", "role_session_name"),
                        .duration_s = aws_setting(context, "duration_seconds"),
                        .token = token,
                },
                on_done, userdata, (struct aws_sts **)ret_run);
        explicit_bzero(token, strlen(token));
        return r < 0 ? r : AWS_RUNNING;
}

static void cancel(struct aws_run *run) {
        aws_sts_cancel((struct aws_sts *)run);
}

const struct aws_source aws_source_web_identity = { .name = "web identity",
                                                    .start = start,
                                                    .cancel = cancel };
