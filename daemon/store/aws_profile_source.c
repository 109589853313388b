/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says decides which way its credentials come. */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"

/* The run of another source, and whose it is. */
struct aws_run {
        const struct aws_source *source;
        struct aws_run *run;
        aws_on_done *on_done;
        void *userdata;
};

static const struct {
        const char *key, *with; /* with: another key that it is nothing without; NULL: none */
        const struct aws_source *source;
} ways[] = {
        { "source_profile", "role_arn", &aws_source_role },
        { "credential_source", "role_arn", &aws_source_role },
        { "web_identity_token_file", NULL, &aws_source_profile_web_identity },
        { "sso_session", NULL, &aws_source_sso },
        { "sso_start_url", NULL, &aws_source_sso },
        { "aws_access_key_id", NULL, &aws_source_keys },
        { "credential_process", NULL, &aws_source_process },
};

static const struct aws_source *way_of(const struct aws_context *context) {
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                if (aws_setting(context, ways[i].key) &&
                    (!ways[i].with || aws_setting(context, ways[i].with)))
                        return ways[i].source;
        }
        return &aws_source_keys;
}

static void on_done(void *userdata, struct credentials_value *take_value,
                    const struct store_failure *failure) {
        struct aws_run run = *(struct aws_run *)userdata;

        free(userdata);
        run.on_done(run.userdata, take_value, failure);
}

static int start(const struct aws_context *context, struct credentials_value *ret_value,
                 char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_profile_done, void *userdata,
                 struct aws_run **ret_run) {
        struct aws_run *run;
        int r;

        if (!aws_profiles_have(context->profiles, "profile", context->profile)) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "there is no profile %s in %s or %s",
                         context->profile,
                         context->profiles->paths[0] ? context->profiles->paths[0] : "?",
                         context->profiles->paths[1] ? context->profiles->paths[1] : "?");
                return context->profile_is_named ? CREDENTIALS_BROKEN : CREDENTIALS_ABSENT;
        }
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->source = way_of(context);
        run->on_done = on_profile_done;
        run->userdata = userdata;
        r = run->source->start(context, ret_value, why, on_done, run, &run->run);
        if (r == CREDENTIALS_RUNNING)
                *ret_run = run;
        else
                free(run);
        return r;
}

static void cancel(struct aws_run *run) {
        run->source->cancel(run->run);
        free(run);
}

const struct aws_source aws_source_profile = { .name = "profile",
                                               .start = start,
                                               .cancel = cancel };
