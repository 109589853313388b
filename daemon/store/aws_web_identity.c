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

/* What is asked for, and by whom it was set up. */
struct identity {
        const char *path, *role, *session, *duration_s, *label;
};

static int ask(const struct aws_context *context, const struct identity *identity,
               char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
               struct aws_run **ret_run) {
        char *token;
        int r = secret_file_read(identity->path, &token, NULL);

        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                secret_watch_add(context->watch, identity->path);
                snprintf(why, CREDENTIALS_WHY_BYTES, "%s: %s", identity->path, strerror(-r));
                return CREDENTIALS_BROKEN;
        }
        token[strcspn(token, "\r\n")] = '\0';
        r = aws_sts_start(context,
                          &(struct aws_sts_query){ .action = "AssumeRoleWithWebIdentity",
                                                   .role_arn = identity->role,
                                                   .label = identity->label,
                                                   .session = identity->session,
                                                   .duration_s = identity->duration_s,
                                                   .token = token },
                          on_done, userdata, (struct aws_sts **)ret_run);
        secret_free(token);
        return r < 0 ? r : CREDENTIALS_RUNNING;
}

static int of_environment(const struct aws_context *context, struct credentials_value *ret_value,
                          char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                          struct aws_run **ret_run) {
        struct identity identity = {
                .path = aws_variable("AWS_WEB_IDENTITY_TOKEN_FILE"),
                .role = aws_variable("AWS_ROLE_ARN"),
                .session = aws_variable("AWS_ROLE_SESSION_NAME"),
                .label = "web identity",
        };

        (void)ret_value;
        if (!identity.path || !identity.role) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "%s is not set",
                         identity.path ? "AWS_ROLE_ARN" : "AWS_WEB_IDENTITY_TOKEN_FILE");
                return identity.path ? CREDENTIALS_BROKEN : CREDENTIALS_ABSENT;
        }
        return ask(context, &identity, why, on_done, userdata, ret_run);
}

/* What a profile says is not mixed with the environment, which may be of another role. */
static int of_profile(const struct aws_context *context, struct credentials_value *ret_value,
                      char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                      struct aws_run **ret_run) {
        struct identity identity = {
                .path = aws_setting(context, "web_identity_token_file"),
                .role = aws_setting(context, "role_arn"),
                .session = aws_setting(context, "role_session_name"),
                .duration_s = aws_setting(context, "duration_seconds"),
        };

        (void)ret_value;
        if (!identity.role) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "profile %s has no role_arn",
                         context->profile);
                return CREDENTIALS_BROKEN;
        }
        return ask(context, &identity, why, on_done, userdata, ret_run);
}

static void cancel(struct aws_run *run) {
        aws_sts_cancel((struct aws_sts *)run);
}

const struct aws_source aws_source_web_identity = { .name = "web identity",
                                                    .start = of_environment,
                                                    .cancel = cancel };

const struct aws_source aws_source_profile_web_identity = { .name = "profile",
                                                            .start = of_profile,
                                                            .cancel = cancel };
