/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way to get credentials of AWS, for the chain (credentials_chain.h) that tries them in order.
 */
#pragma once

#include <uv.h>

#include "daemon/store/aws_profile.h"
#include "daemon/store/credentials_chain.h"

/* What a source may look at. Borrowed while it runs. */
struct aws_context {
        unsigned depth; /* of profiles that lead to each other */
        uv_loop_t *loop;
        const struct aws_profiles *profiles;
        const char *profile;
        bool profile_is_named;      /* by somebody, not by default */
        const char *region;         /* for STS; never NULL */
        uint64_t *requests;         /* each request that is sent adds one */
        struct secret_watch *watch; /* files that are worth another look when they change */
};

/* The value, or NULL and the failure: one of class STORE_OK means that it is absent after all. */
typedef void aws_on_done(void *userdata, struct credentials_value *take_value,
                         const struct store_failure *failure);

struct aws_run; /* what is under way; it ends with on_done or by the source's cancel */

struct aws_source {
        const char *name; /* for people */
        /* enum credentials_outcome, or -errno */
        int (*start)(const struct aws_context *context, struct credentials_value *ret_value,
                     char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                     struct aws_run **ret_run);
        void (*cancel)(struct aws_run *run); /* NULL: it never runs */
};

extern const struct aws_source aws_source_anonymous;
extern const struct aws_source aws_source_environment;
extern const struct aws_source aws_source_profile;      /* whatever the profile says */
extern const struct aws_source aws_source_web_identity; /* of the environment */
extern const struct aws_source aws_source_container;
extern const struct aws_source aws_source_instance;

/*
 * What a profile may say, each in a file of its own; aws_source_profile chooses. start() is only
 * called for a profile that says it.
 */
extern const struct aws_source aws_source_keys; /* aws_access_key_id ... */
extern const struct aws_source aws_source_role; /* role_arn, with somebody else's credentials */
extern const struct aws_source aws_source_profile_web_identity; /* web_identity_token_file */
extern const struct aws_source aws_source_sso;                  /* sso_session, sso_start_url */
extern const struct aws_source aws_source_process;              /* credential_process */

#define AWS_ROLES_DEEP 5 /* profiles that a role may lead through */

/* NULL: it is not set, or empty. */
const char *aws_variable(const char *name);

/* A setting of the context's profile; NULL: it is not set. */
const char *aws_setting(const struct aws_context *context, const char *key);

/* Fills a value with copies; texts may be NULL, identity is "format". -ENOMEM. */
int aws_value_set(struct credentials_value *ret_value, const char *id, const char *secret,
                  const char *token, int64_t expires_s, const char *identity_format, ...)
        __attribute__((format(printf, 6, 7)));

/*
 * Whether what a server of credentials answered may pass: by its status, and by the code of AWS that
 * it gave (NULL: none), as throttling comes as a 400, too. STORE_TRANSIENT or STORE_PERMANENT.
 */
enum store_failure_class aws_failure_class(long status, const char *code);

/* The names that an answer has for the parts of a value. */
struct aws_json_names {
        const char *id, *secret, *token, *expiration;
};

/*
 * Fills a value from JSON. A time is ISO 8601, or milliseconds since 1970. -EBADMSG: it is no such
 * answer; -ENOMEM.
 */
int aws_value_from_json(struct credentials_value *ret_value, const char *text, size_t size,
                        const struct aws_json_names *names, const char *identity);
