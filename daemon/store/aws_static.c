/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that stand somewhere: in the environment, or in a profile of the shared files. */
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"

/* An access key's id is no secret, but its end is enough to tell it from others. */
static const char *tail_of(const char *id) {
        size_t size = strlen(id);

        return size > 4 ? id + size - 4 : id;
}

static int environment(const struct aws_context *context, struct credentials_value *ret_value,
                       char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                       struct aws_run **ret_run) {
        const char *id = aws_variable("AWS_ACCESS_KEY_ID");
        const char *secret = aws_variable("AWS_SECRET_ACCESS_KEY");
        int r;

        (void)context;
        (void)on_done;
        (void)userdata;
        (void)ret_run;
        if (!id || !secret) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "%s is not set",
                         id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
                return id ? CREDENTIALS_BROKEN : CREDENTIALS_ABSENT;
        }
        r = aws_value_set(ret_value, id, secret, aws_variable("AWS_SESSION_TOKEN"),
                          CREDENTIALS_NEVER, "access key ...%s (environment)", tail_of(id));
        return r < 0 ? r : CREDENTIALS_READY;
}

const struct aws_source aws_source_environment = { .name = "environment", .start = environment };

static int keys(const struct aws_context *context, struct credentials_value *ret_value,
                char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                struct aws_run **ret_run) {
        const char *id = aws_setting(context, "aws_access_key_id");
        const char *secret = aws_setting(context, "aws_secret_access_key");
        int r;

        (void)on_done;
        (void)userdata;
        (void)ret_run;
        if (!id || !secret) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "profile %s has no %s", context->profile,
                         id ? "aws_secret_access_key" : "aws_access_key_id");
                return id ? CREDENTIALS_BROKEN : CREDENTIALS_ABSENT;
        }
        r = aws_value_set(ret_value, id, secret, aws_setting(context, "aws_session_token"),
                          CREDENTIALS_NEVER, "access key ...%s (profile %s)", tail_of(id),
                          context->profile);
        return r < 0 ? r : CREDENTIALS_READY;
}

const struct aws_source aws_source_keys = { .name = "profile", .start = keys };

static int anonymous(const struct aws_context *context, struct credentials_value *ret_value,
                     char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                     struct aws_run **ret_run) {
        (void)context;
        (void)why;
        (void)on_done;
        (void)userdata;
        (void)ret_run;
        *ret_value = (struct credentials_value){
                .identity = strdup("anonymous"),
                .expires_s = CREDENTIALS_NEVER,
                .anonymous = true,
        };
        return ret_value->identity ? CREDENTIALS_READY : -ENOMEM;
}

const struct aws_source aws_source_anonymous = { .name = "anonymous", .start = anonymous };
