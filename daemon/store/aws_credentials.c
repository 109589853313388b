/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A refresh reads the shared files again and goes from source to source, each in a turn of the loop
 * of its own. What the sources that are not set up said is the error when none is.
 */
#include "daemon/store/aws_credentials.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"

struct aws_chain {
        const struct aws_source *const *sources;
        struct aws_context context;
        struct aws_profiles profiles;
        bool is_loaded;
        char *profile; /* that is configured; NULL: none */
        size_t at;     /* source that is tried */
        struct aws_run *run;
        uv_timer_t *turn; /* freed when it is closed */
        char tried[400];
        credentials_on_value *on_value;
        void *userdata;
};

static void try_next(struct aws_chain *chain);

static void fail_errno(struct aws_chain *chain, int error) {
        struct store_failure failure;

        failure_set_errno(&failure, error, "credentials of AWS");
        chain->on_value(chain->userdata, NULL, &failure);
}

static void note(struct aws_chain *chain, const char *why) {
        size_t size = strlen(chain->tried);

        snprintf(chain->tried + size, sizeof(chain->tried) - size, "%s%s: %s", size ? "; " : "",
                 chain->sources[chain->at]->name, why);
}

static void refuse(struct aws_chain *chain, const char *why) {
        struct store_failure failure;

        failure_set(&failure, STORE_PERMANENT, "credentials", "%s: %s",
                    chain->sources[chain->at]->name, why);
        chain->on_value(chain->userdata, NULL, &failure);
}

static void give_up(struct aws_chain *chain) {
        struct store_failure failure;

        failure_set(&failure, STORE_PERMANENT, "no-credentials",
                    "No credentials of AWS were found");
        failure_advise(&failure, "%s", chain->tried);
        chain->on_value(chain->userdata, NULL, &failure);
}

static void on_done(void *userdata, struct credentials_value *take_value,
                    const struct store_failure *failure) {
        struct aws_chain *chain = userdata;

        chain->run = NULL;
        if (!take_value && failure->class == STORE_OK) {
                note(chain, failure->message);
                chain->at++;
                try_next(chain);
        } else {
                chain->on_value(chain->userdata, take_value, failure);
        }
}

static void try_one(struct aws_chain *chain) {
        const struct aws_source *source = chain->sources[chain->at];
        struct credentials_value value;
        char why[AWS_WHY_BYTES] = "";
        int r;

        if (!source) {
                give_up(chain);
                return;
        }
        r = source->start(&chain->context, &value, why, on_done, chain, &chain->run);
        if (r < 0) {
                fail_errno(chain, -r);
        } else if (r == AWS_READY) {
                chain->on_value(chain->userdata, &value, NULL);
        } else if (r == AWS_BROKEN) {
                refuse(chain, why);
        } else if (r == AWS_ABSENT) {
                note(chain, why);
                chain->at++;
                try_next(chain);
        }
}

static void on_turn(uv_timer_t *turn) {
        try_one(turn->data);
}

static void try_next(struct aws_chain *chain) {
        uv_timer_start(chain->turn, on_turn, 0, 0);
}

static const char *region_of(const struct aws_chain *chain) {
        static const char *const names[] = { "AWS_REGION", "AWS_DEFAULT_REGION" };
        const char *region;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                region = getenv(names[i]);
                if (region && *region)
                        return region;
        }
        region = aws_profiles_get(&chain->profiles, "profile", chain->context.profile, "region");
        return region ? region : "us-east-1";
}

static int chain_refresh(void *provider, credentials_on_value *on_value, void *userdata) {
        struct aws_chain *chain = provider;
        int r;

        if (chain->is_loaded)
                aws_profiles_deinit(&chain->profiles);
        r = aws_profiles_load(&chain->profiles);
        chain->is_loaded = r == 0;
        if (r < 0)
                return r;
        chain->context.profiles = &chain->profiles;
        chain->context.profile = chain->profile ? chain->profile : aws_profile_name();
        chain->context.profile_is_named = chain->profile || getenv("AWS_PROFILE") ||
                                          getenv("AWS_DEFAULT_PROFILE");
        chain->context.region = region_of(chain);
        chain->on_value = on_value;
        chain->userdata = userdata;
        chain->at = 0;
        chain->tried[0] = '\0';
        try_next(chain);
        return 0;
}

static void chain_cancel(void *provider) {
        struct aws_chain *chain = provider;

        uv_timer_stop(chain->turn);
        if (chain->run)
                chain->sources[chain->at]->cancel(steal_pointer(&chain->run));
}

static bool chain_has_changed(void *provider) {
        struct aws_chain *chain = provider;

        return chain->is_loaded && aws_profiles_have_changed(&chain->profiles);
}

static void free_handle(uv_handle_t *handle) {
        free(handle);
}

static void chain_free(void *provider) {
        struct aws_chain *chain = provider;

        if (chain->is_loaded)
                aws_profiles_deinit(&chain->profiles);
        if (chain->turn)
                uv_close((uv_handle_t *)chain->turn, free_handle);
        free(chain->profile);
        free(chain);
}

static const struct credentials_provider operations = {
        .name = "aws",
        .refresh = chain_refresh,
        .cancel = chain_cancel,
        .has_changed = chain_has_changed,
        .free = chain_free,
};

static int chain_new(uv_loop_t *loop, const struct aws_source *const *sources, const char *profile,
                     struct credentials **ret_credentials) {
        struct aws_chain *chain = calloc(1, sizeof(*chain));

        if (!chain)
                return -ENOMEM;
        chain->sources = sources;
        chain->context.loop = loop;
        chain->profile = profile ? strdup(profile) : NULL;
        chain->turn = malloc(sizeof(*chain->turn));
        if (!chain->turn || (profile && !chain->profile)) {
                free(chain->profile);
                free(chain->turn);
                free(chain);
                return -ENOMEM;
        }
        uv_timer_init(loop, chain->turn);
        chain->turn->data = chain;
        return credentials_new(loop, &operations, chain, ret_credentials);
}

int aws_credentials_new_with(uv_loop_t *loop, const struct aws_source *const *sources,
                             struct credentials **ret_credentials) {
        return chain_new(loop, sources, NULL, ret_credentials);
}

int aws_credentials_new(uv_loop_t *loop, const char *profile, bool anonymous,
                        struct credentials **ret_credentials) {
        static const struct aws_source *const all[] = {
                &aws_source_environment, &aws_source_profile,  &aws_source_web_identity,
                &aws_source_container,   &aws_source_instance, NULL,
        };
        static const struct aws_source *const nobody[] = { &aws_source_anonymous, NULL };

        if (anonymous)
                return chain_new(loop, nobody, NULL, ret_credentials);
        return chain_new(loop, profile ? &all[1] : all, profile, ret_credentials);
}
