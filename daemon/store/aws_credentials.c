/* SPDX-License-Identifier: Apache-2.0 */
/* A refresh reads the shared files again and goes from source to source. */
#include "daemon/store/aws_credentials.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"

struct aws_chain {
        struct credentials_chain chain;
        const struct aws_source *const *sources;
        struct aws_context context;
        struct aws_profiles profiles;
        bool is_loaded;
        char *profile; /* that is configured; NULL: none */
        struct aws_run *run;
};

static void on_done(void *userdata, struct credentials_value *take_value,
                    const struct store_failure *failure) {
        struct aws_chain *chain = userdata;

        chain->run = NULL;
        credentials_chain_tell(&chain->chain, take_value, failure);
}

static const char *source_name(void *owner, size_t way) {
        const struct aws_source *source = ((struct aws_chain *)owner)->sources[way];

        return source ? source->name : NULL;
}

static int source_start(void *owner, size_t way, struct credentials_value *ret_value,
                        char why[CREDENTIALS_WHY_BYTES]) {
        struct aws_chain *chain = owner;

        return chain->sources[way]->start(&chain->context, ret_value, why, on_done, chain,
                                          &chain->run);
}

static const struct credentials_chain_type chain_type = {
        .whose = "AWS",
        .name = source_name,
        .start = source_start,
};

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
        credentials_chain_start(&chain->chain, on_value, userdata);
        return 0;
}

static void chain_cancel(void *provider) {
        struct aws_chain *chain = provider;

        credentials_chain_stop(&chain->chain);
        if (chain->run)
                chain->sources[chain->chain.way]->cancel(steal_pointer(&chain->run));
}

static bool chain_has_changed(void *provider) {
        struct aws_chain *chain = provider;

        return (chain->is_loaded && aws_profiles_have_changed(&chain->profiles)) ||
               secret_watch_has_changed(&chain->chain.watch);
}

static uint64_t chain_take_requests(void *provider) {
        return credentials_chain_take_requests(&((struct aws_chain *)provider)->chain);
}

static void chain_free(void *provider) {
        struct aws_chain *chain = provider;

        if (chain->is_loaded)
                aws_profiles_deinit(&chain->profiles);
        credentials_chain_deinit(&chain->chain);
        free(chain->profile);
        free(chain);
}

static const struct credentials_provider operations = {
        .name = "aws",
        .refresh = chain_refresh,
        .cancel = chain_cancel,
        .has_changed = chain_has_changed,
        .take_requests = chain_take_requests,
        .free = chain_free,
};

static int chain_new(uv_loop_t *loop, const struct aws_source *const *sources, const char *profile,
                     struct credentials **ret_credentials) {
        struct aws_chain *chain = calloc(1, sizeof(*chain));

        if (!chain)
                return -ENOMEM;
        chain->sources = sources;
        chain->context.loop = loop;
        chain->context.requests = &chain->chain.requests;
        chain->context.watch = &chain->chain.watch;
        chain->profile = profile ? strdup(profile) : NULL;
        if ((profile && !chain->profile) ||
            credentials_chain_init(&chain->chain, loop, &chain_type, chain) < 0) {
                free(chain->profile);
                free(chain);
                return -ENOMEM;
        }
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
