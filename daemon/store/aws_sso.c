/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A role of IAM Identity Center, for the token that "aws sso login" left in its cache. Source: "IAM
 * Identity Center credential provider", AWS SDKs and Tools Reference Guide; GetRoleCredentials, IAM
 * Identity Center Portal API Reference.
 */
#include <errno.h>
#include <jansson.h>
#include <openssl/sha.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_exchange.h"
#include "daemon/store/iso_time.h"
#include "daemon/store/percent.h"

struct aws_run {
        struct http_exchange *exchange;
        char *profile, *role;
        aws_on_done *on_done;
        void *userdata;
};

struct sso {
        const char *session, *start_url, *region, *account, *role;
};

static void run_free(struct aws_run *run) {
        free(run->profile);
        free(run->role);
        free(run);
}

static void end(struct aws_run *run, struct credentials_value *take_value,
                const struct store_failure *failure) {
        aws_on_done *on_done = run->on_done;
        void *userdata = run->userdata;

        run_free(run);
        on_done(userdata, take_value, failure);
}

/* What the session says counts before what older profiles say themselves. */
static const char *find(const struct aws_context *context, const char *session, const char *key) {
        const char *value = session ? aws_profiles_get(context->profiles, "sso-session", session,
                                                       key)
                                    : NULL;

        return value ? value : aws_setting(context, key);
}

static bool sso_of(const struct aws_context *context, struct sso *ret_sso) {
        const char *session = aws_setting(context, "sso_session");

        *ret_sso = (struct sso){
                .session = session,
                .start_url = find(context, session, "sso_start_url"),
                .region = find(context, session, "sso_region"),
                .account = aws_setting(context, "sso_account_id"),
                .role = aws_setting(context, "sso_role_name"),
        };
        return ret_sso->start_url && ret_sso->region && ret_sso->account && ret_sso->role;
}

/* The cached login is named by the SHA-1 of the session's name, or of the start URL. */
static char *cache_path(const struct sso *sso) {
        const char *of = sso->session ? sso->session : sso->start_url, *home = getenv("HOME");
        uint8_t digest[SHA_DIGEST_LENGTH];
        char hex[2 * SHA_DIGEST_LENGTH + 1], *path;

        SHA1((const uint8_t *)of, strlen(of), digest);
        for (size_t i = 0; i < sizeof(digest); i++)
                snprintf(hex + 2 * i, 3, "%02x", digest[i]);
        return asprintf(&path, "%s/.aws/sso/cache/%s.json", home ? home : "", hex) < 0 ? NULL
                                                                                       : path;
}

/* The token, the caller's to wipe and free; NULL: there is none that is still good. */
static char *login_token(const char *path) {
        char *text, *token = NULL;
        size_t size;
        const char *access, *expires;
        json_t *root;
        int64_t ns;

        if (secret_file_read(path, &text, &size) < 0)
                return NULL;
        root = json_loadb(text, size, 0, NULL);
        secret_free(text);
        access = json_string_value(json_object_get(root, "accessToken"));
        expires = json_string_value(json_object_get(root, "expiresAt"));
        ns = expires ? iso_time_parse(expires) : INT64_MIN;
        if (access && ns != INT64_MIN && ns / 1000000000 > (int64_t)time(NULL))
                token = strdup(access);
        json_decref(root);
        return token;
}

static void on_answer(void *userdata, const struct http_exchange_answer *answer) {
        static const struct aws_json_names names = { "accessKeyId", "secretAccessKey",
                                                     "sessionToken", "expiration" };
        struct aws_run *run = userdata;
        struct store_failure failure = answer->failure;
        struct credentials_value value;
        json_t *root = json_loadb(answer->body, answer->body_size, 0, NULL);
        char *inner = json_dumps(json_object_get(root, "roleCredentials"), JSON_COMPACT);
        char identity[240];
        int r = -EBADMSG;

        snprintf(identity, sizeof(identity), "assumed-role/%s (profile %s)", run->role,
                 run->profile);
        if (failure.class == STORE_OK && answer->status == 200 && inner)
                r = aws_value_from_json(&value, inner, strlen(inner), &names, identity);
        if (r < 0 && failure.class == STORE_OK) {
                failure_set(&failure, aws_failure_class(answer->status, NULL), "sso",
                            "%ld from IAM Identity Center for role %s (profile %s)", answer->status,
                            run->role, run->profile);
                failure_advise(&failure, "aws sso login --profile %s", run->profile);
        }
        json_decref(root);
        if (inner)
                explicit_bzero(inner, strlen(inner));
        free(inner);
        end(run, r == 0 ? &value : NULL, &failure);
}

static int ask(const struct aws_context *context, const struct sso *sso, const char *token,
               struct aws_run *run) {
        const char *custom = aws_variable("AWS_ENDPOINT_URL_SSO");
        CLEANUP(freep) char *url = NULL, *header = NULL;
        const char *headers[2] = { NULL, NULL };
        size_t size;
        FILE *out = open_memstream(&url, &size);
        int r;

        if (!out)
                return -ENOMEM;
        if (custom)
                fputs(custom, out);
        else
                fprintf(out, "https://portal.sso.%s.amazonaws.com", sso->region);
        fputs("/federation/credentials?role_name=", out);
        percent_write(out, sso->role, strlen(sso->role));
        fputs("&account_id=", out);
        percent_write(out, sso->account, strlen(sso->account));
        if (fclose(out) != 0 || asprintf(&header, "x-amz-sso_bearer_token: %s", token) < 0)
                return -ENOMEM;
        headers[0] = header;
        r = http_exchange_start(context->loop,
                                &(struct http_exchange_query){ .url = url,
                                                               .headers = headers,
                                                               .requests = context->requests },
                                on_answer, run, &run->exchange);
        explicit_bzero(header, strlen(header));
        return r;
}

static int start_run(const struct aws_context *context, const struct sso *sso, const char *token,
                     aws_on_done *on_done, void *userdata, struct aws_run **ret_run) {
        struct aws_run *run = calloc(1, sizeof(*run));
        int r;

        if (!run)
                return -ENOMEM;
        run->on_done = on_done;
        run->userdata = userdata;
        run->profile = strdup(context->profile);
        run->role = strdup(sso->role);
        r = run->profile && run->role ? ask(context, sso, token, run) : -ENOMEM;
        if (r < 0) {
                run_free(run);
                return r;
        }
        *ret_run = run;
        return CREDENTIALS_RUNNING;
}

static int start(const struct aws_context *context, struct credentials_value *ret_value,
                 char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                 struct aws_run **ret_run) {
        CLEANUP(freep) char *path = NULL;
        struct sso sso;
        char *token;
        int r;

        (void)ret_value;
        if (!sso_of(context, &sso)) {
                snprintf(why, CREDENTIALS_WHY_BYTES,
                         "profile %s lacks one of sso_start_url, sso_region, sso_account_id, "
                         "sso_role_name",
                         context->profile);
                return CREDENTIALS_BROKEN;
        }
        path = cache_path(&sso);
        if (!path)
                return -ENOMEM;
        secret_watch_add(context->watch, path);
        token = login_token(path);
        if (!token) {
                snprintf(why, CREDENTIALS_WHY_BYTES,
                         "the login has expired: aws sso login --profile %s", context->profile);
                return CREDENTIALS_BROKEN;
        }
        r = start_run(context, &sso, token, on_done, userdata, ret_run);
        secret_free(token);
        return r;
}

static void cancel(struct aws_run *run) {
        http_exchange_cancel(run->exchange);
        run_free(run);
}

const struct aws_source aws_source_sso = { .name = "profile", .start = start, .cancel = cancel };
