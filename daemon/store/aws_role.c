/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile whose role is assumed with the credentials of another profile (source_profile), or of
 * another source (credential_source): these first, then the role. Source: "Assume role credential
 * provider", AWS SDKs and Tools Reference Guide.
 */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"
#include "daemon/store/aws_sts.h"
#include "daemon/store/failure.h"

struct aws_run {
        struct aws_context context; /* of the profile with the role */
        struct aws_context base;    /* of whoever assumes it */
        const struct aws_source *source;
        struct aws_run *run; /* of the source; NULL: not under way */
        struct aws_sts *sts; /* NULL: not under way */
        struct credentials_value signer;
        bool has_signer;
        uv_timer_t *turn; /* freed when it is closed */
        aws_on_done *on_done;
        void *userdata;
};

static void free_handle(uv_handle_t *handle) {
        free(handle);
}

static void run_free(struct aws_run *run) {
        if (run->has_signer)
                credentials_value_deinit(&run->signer);
        uv_close((uv_handle_t *)run->turn, free_handle);
        free(run);
}

static void end(struct aws_run *run, struct credentials_value *take_value,
                const struct store_failure *failure) {
        aws_on_done *on_done = run->on_done;
        void *userdata = run->userdata;

        run_free(run);
        on_done(userdata, take_value, failure);
}

/* Whose credentials the role is asked for with has none: no other source takes its place. */
static void end_without_base(struct aws_run *run, const struct store_failure *failure) {
        struct store_failure final = *failure;

        if (final.class == STORE_OK)
                failure_set(&final, STORE_PERMANENT, "credentials", "profile %s: %s",
                            run->context.profile, failure->message);
        end(run, NULL, &final);
}

static void on_assumed(void *userdata, struct credentials_value *take_value,
                       const struct store_failure *failure) {
        struct aws_run *run = userdata;

        run->sts = NULL;
        end(run, take_value, failure);
}

static void assume(struct aws_run *run) {
        const struct aws_context *context = &run->context;
        struct store_failure failure;
        int r = aws_sts_start(context,
                              &(struct aws_sts_query){
                                      .action = "AssumeRole",
                                      .role_arn = aws_setting(context, "role_arn"),
                                      .session = aws_setting(context, "role_session_name"),
                                      .external_id = aws_setting(context, "external_id"),
                                      .duration_s = aws_setting(context, "duration_seconds"),
                                      .signer = &run->signer,
                              },
                              on_assumed, run, &run->sts);

        if (r < 0) {
                failure_set_errno(&failure, -r, "STS");
                end(run, NULL, &failure);
        }
}

static void on_turn(uv_timer_t *turn) {
        assume(turn->data);
}

static void on_base(void *userdata, struct credentials_value *take_value,
                    const struct store_failure *failure) {
        struct aws_run *run = userdata;

        run->run = NULL;
        if (!take_value) {
                end_without_base(run, failure);
                return;
        }
        run->signer = *take_value;
        run->has_signer = true;
        assume(run);
}

static const struct aws_source *base_of(const char *credential_source) {
        static const struct {
                const char *name;
                const struct aws_source *source;
        } sources[] = {
                { "Environment", &aws_source_environment },
                { "Ec2InstanceMetadata", &aws_source_instance },
                { "EcsContainer", &aws_source_container },
        };

        for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
                if (credential_source && strcmp(sources[i].name, credential_source) == 0)
                        return sources[i].source;
        }
        return NULL;
}

/* A profile that is its own source has keys of its own, and its role is assumed with them. */
static const struct aws_source *choose(const struct aws_context *context, struct aws_context *base,
                                       char why[CREDENTIALS_WHY_BYTES]) {
        const char *profile = aws_setting(context, "source_profile");
        const char *source = aws_setting(context, "credential_source");

        *base = *context;
        base->depth++;
        if (!aws_setting(context, "role_arn")) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "profile %s has no role_arn",
                         context->profile);
                return NULL;
        }
        if (aws_setting(context, "mfa_serial")) {
                snprintf(why, CREDENTIALS_WHY_BYTES,
                         "profile %s needs a second factor (mfa_serial): log in with a tool that "
                         "asks for it, and name it by credential_process",
                         context->profile);
                return NULL;
        }
        if (base->depth > AWS_ROLES_DEEP) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "profile %s leads to itself, or too deep",
                         context->profile);
                return NULL;
        }
        if (profile) {
                base->profile = profile;
                return strcmp(profile, context->profile) == 0 ? &aws_source_keys
                                                              : &aws_source_profile;
        }
        if (!base_of(source))
                snprintf(why, CREDENTIALS_WHY_BYTES, "profile %s: there is no credential_source %s",
                         context->profile, source ? source : "?");
        return base_of(source);
}

static int start_base(struct aws_run *run, char why[CREDENTIALS_WHY_BYTES]) {
        int r = run->source->start(&run->base, &run->signer, why, on_base, run, &run->run);

        if (r == CREDENTIALS_READY) {
                run->has_signer = true;
                uv_timer_start(run->turn, on_turn, 0, 0);
                return CREDENTIALS_RUNNING;
        }
        return r == CREDENTIALS_ABSENT ? CREDENTIALS_BROKEN : r;
}

static int start(const struct aws_context *context, struct credentials_value *ret_value,
                 char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                 struct aws_run **ret_run) {
        struct aws_context base;
        const struct aws_source *source = choose(context, &base, why);
        struct aws_run *run;
        int r;

        (void)ret_value;
        if (!source)
                return CREDENTIALS_BROKEN;
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->turn = malloc(sizeof(*run->turn));
        if (!run->turn) {
                free(run);
                return -ENOMEM;
        }
        uv_timer_init(context->loop, run->turn);
        run->turn->data = run;
        run->context = *context;
        run->base = base;
        run->source = source;
        run->on_done = on_done;
        run->userdata = userdata;
        r = start_base(run, why);
        if (r == CREDENTIALS_RUNNING)
                *ret_run = run;
        else
                run_free(run);
        return r;
}

static void cancel(struct aws_run *run) {
        if (run->run)
                run->source->cancel(run->run);
        if (run->sts)
                aws_sts_cancel(run->sts);
        run_free(run);
}

const struct aws_source aws_source_role = { .name = "profile", .start = start, .cancel = cancel };
