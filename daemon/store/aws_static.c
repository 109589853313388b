/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that stand somewhere: in the environment, or in a profile of the shared files. */
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"

static const char *variable(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

/* An access key's id is no secret, but its end is enough to tell it from others. */
static const char *tail_of(const char *id) {
        size_t size = strlen(id);

        return size > 4 ? id + size - 4 : id;
}

static int environment(const struct aws_context *context, struct credentials_value *ret_value,
                       char why[AWS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                       struct aws_run **ret_run) {
        const char *id = variable("AWS_ACCESS_KEY_ID");
        const char *secret = variable("AWS_SECRET_ACCESS_KEY");
        int r;

        (void)context;
        (void)on_done;
        (void)userdata;
        (void)ret_run;
        if (!id || !secret) {
                snprintf(why, AWS_WHY_BYTES, "%s is not set",
                         id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
                return AWS_ABSENT;
        }
        r = aws_value_set(ret_value, id, secret, variable("AWS_SESSION_TOKEN"), CREDENTIALS_NEVER,
                          "access key ...%s (environment)", tail_of(id));
        return r < 0 ? r : AWS_READY;
}

const struct aws_source aws_source_environment = { .name = "environment", .start = environment };

static int profile(const struct aws_context *context, struct credentials_value *ret_value,
                   char why[AWS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                   struct aws_run **ret_run) {
        const char *id = aws_profiles_get(context->profiles, "profile", context->profile,
                                          "aws_access_key_id");
        const char *secret = aws_profiles_get(context->profiles, "profile", context->profile,
                                              "aws_secret_access_key");
        const char *token = aws_profiles_get(context->profiles, "profile", context->profile,
                                             "aws_session_token");
        int r;

        (void)on_done;
        (void)userdata;
        (void)ret_run;
        if (!aws_profiles_have(context->profiles, "profile", context->profile)) {
                snprintf(why, AWS_WHY_BYTES, "there is no profile %s in %s or %s", context->profile,
                         context->profiles->paths[0] ? context->profiles->paths[0] : "?",
                         context->profiles->paths[1] ? context->profiles->paths[1] : "?");
                return AWS_ABSENT;
        }
        if (!id || !secret) {
                snprintf(why, AWS_WHY_BYTES, "profile %s has no %s", context->profile,
                         id ? "aws_secret_access_key" : "aws_access_key_id");
                return AWS_ABSENT;
        }
        r = aws_value_set(ret_value, id, secret, token, CREDENTIALS_NEVER,
                          "access key ...%s (profile %s)", tail_of(id), context->profile);
        return r < 0 ? r : AWS_READY;
}

const struct aws_source aws_source_profile = { .name = "profile", .start = profile };
