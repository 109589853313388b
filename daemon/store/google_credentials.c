/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A refresh reads the file again and goes through at most three requests: for a subject token, for
 * a token, for the token of the account that is impersonated; or, without a file, for the email and
 * the token of the metadata server's account.
 */
#include "daemon/store/google_credentials.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/store/failure.h"
#include "daemon/store/google_account.h"
#include "daemon/store/google_jwt.h"
#include "daemon/store/google_request.h"
#include "daemon/store/google_token.h"
#include "daemon/store/secret_file.h"
#include "daemon/store/http_exchange.h"

#define METADATA_HOST "169.254.169.254"
#define METADATA_TIMEOUT_MS 1000
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/"
#define ANONYMOUS_LIFE_S 300 /* until it is looked again whether there is somebody to be */
#define LOG_IN "gcloud auth application-default login"

static const char form_header[] = "Content-Type: application/x-www-form-urlencoded";

struct google {
        uv_loop_t *loop;
        bool is_anonymous;
        bool had_metadata; /* its failure is a failure from then on */
        char *path;        /* of the file; NULL: there is no home */
        bool is_named;     /* by GOOGLE_APPLICATION_CREDENTIALS */
        struct file_stamp stamp;
        bool has_account;
        struct google_account account;
        char email[256]; /* of the metadata server's account */
        struct http_exchange *exchange;
        uint64_t requests; /* that nobody has taken yet */
        uv_timer_t *turn;  /* freed when it is closed */
        credentials_on_value *on_value;
        void *userdata;
};

/* ---- Ends ---- */

static void fail(struct google *google, const struct store_failure *failure) {
        google->on_value(google->userdata, NULL, failure);
}

static void fail_errno(struct google *google, int error, const char *thing) {
        struct store_failure failure;

        failure_set_errno(&failure, error, thing);
        fail(google, &failure);
}

static void fail_words(struct google *google, const char *thing, const char *why) {
        struct store_failure failure;

        failure_set(&failure, STORE_PERMANENT, "no-credentials", "No credentials of Google: %s: %s",
                    thing, why);
        failure_advise(&failure, LOG_IN ", or set GOOGLE_APPLICATION_CREDENTIALS");
        fail(google, &failure);
}

static char *identity_of(const struct google *google) {
        const struct google_account *account = &google->account;
        size_t size;
        const char *email = google_impersonated(account->impersonation_url, &size);
        char *identity;
        int r = size               ? asprintf(&identity, "%.*s", (int)size, email)
                : google->email[0] ? asprintf(&identity, "%s (metadata server)", google->email)
                : account->kind == GOOGLE_SERVICE_ACCOUNT
                        ? asprintf(&identity, "%s", account->client_email)
                : account->kind == GOOGLE_AUTHORIZED_USER
                        ? asprintf(&identity, "the user of %s", google->path)
                        : asprintf(&identity, "%s", account->audience);

        return r < 0 ? NULL : identity;
}

static void succeed(struct google *google, struct google_token *take_token) {
        struct credentials_value value = {
                .token = take_token->text,
                .expires_s = take_token->expires_s,
                .identity = identity_of(google),
        };

        google->on_value(google->userdata, &value, NULL);
}

static void be_nobody(struct google *google) {
        struct credentials_value value = {
                .anonymous = true,
                .expires_s = google->is_anonymous ? CREDENTIALS_NEVER
                                                  : (int64_t)time(NULL) + ANONYMOUS_LIFE_S,
                .identity = strdup(google->is_anonymous ? "nobody (anonymous)"
                                                        : "nobody (no credentials were found)"),
        };

        google->on_value(google->userdata, &value, NULL);
}

/* ---- Requests ---- */

typedef void on_answer(void *userdata, const struct http_exchange_answer *answer);

static void ask(struct google *google, const struct http_exchange_query *query,
                on_answer *on_done) {
        int r = http_exchange_start(google->loop, query, on_done, google, &google->exchange);

        if (r == -EINVAL)
                fail_words(google, google->path ? google->path : "metadata server",
                           "a URL in it is no http or https URL");
        else if (r < 0)
                fail_errno(google, -r, "credentials of Google");
}

static void post(struct google *google, const char *url, const char *const *headers,
                 char *take_body, on_answer *on_done) {
        if (take_body)
                ask(google,
                    &(struct http_exchange_query){ .url = url,
                                                   .method = "POST",
                                                   .headers = headers,
                                                   .body = take_body,
                                                   .body_size = strlen(take_body),
                                                   .requests = &google->requests },
                    on_done);
        else
                fail_errno(google, ENOMEM, "credentials of Google");
        secret_free(take_body);
}

/* False: that was the end of it. whose: who is refused, for people. */
static bool is_success(struct google *google, const struct http_exchange_answer *answer,
                       const char *whose) {
        struct store_failure failure = answer->failure;

        google->exchange = NULL;
        if (failure.class == STORE_OK && answer->status == 200)
                return true;
        if (failure.class == STORE_OK) {
                google_token_refusal(answer->body, answer->body_size, answer->status, whose,
                                     &failure);
                if (google->has_account && google->account.kind == GOOGLE_AUTHORIZED_USER)
                        failure_advise(&failure, LOG_IN);
                else if (google->has_account)
                        failure_advise(&failure, "look at %s", google->path);
        }
        fail(google, &failure);
        return false;
}

static bool take_token(struct google *google, const struct http_exchange_answer *answer,
                       struct google_token *ret_token) {
        int r = google_token_parse(answer->body, answer->body_size, (int64_t)time(NULL), ret_token);

        if (r == -EBADMSG)
                fail_words(google, "token endpoint", "its answer has no token");
        else if (r < 0)
                fail_errno(google, -r, "credentials of Google");
        return r == 0;
}

/* ---- Impersonation ---- */

static void on_impersonated(void *userdata, const struct http_exchange_answer *answer) {
        struct google *google = userdata;
        struct google_token token;
        char whose[128];
        size_t size;
        const char *email = google_impersonated(google->account.impersonation_url, &size);

        snprintf(whose, sizeof(whose), "impersonation of %.*s", (int)size, email);
        if (is_success(google, answer, whose) && take_token(google, answer, &token))
                succeed(google, &token);
}

static void impersonate(struct google *google, struct google_token *take_source) {
        char *authorization;

        if (asprintf(&authorization, "Authorization: Bearer %s", take_source->text) < 0)
                authorization = NULL;
        secret_free(take_source->text);
        if (authorization)
                post(google, google->account.impersonation_url,
                     (const char *const[]){ "Content-Type: application/json", authorization, NULL },
                     strdup("{\"scope\":[\"" GOOGLE_SCOPE "\"]}"), on_impersonated);
        else
                fail_errno(google, ENOMEM, "credentials of Google");
        secret_free(authorization);
}

/* ---- Tokens of accounts ---- */

static void on_token(void *userdata, const struct http_exchange_answer *answer) {
        struct google *google = userdata;
        CLEANUP(freep) char *whose = identity_of(google);
        struct google_token token;

        if (!is_success(google, answer, whose ? whose : "tokens") ||
            !take_token(google, answer, &token))
                return;
        if (google->account.impersonation_url)
                impersonate(google, &token);
        else
                succeed(google, &token);
}

static void ask_token(struct google *google, char *take_body) {
        post(google, google->account.token_url, (const char *const[]){ form_header, NULL },
             take_body, on_token);
}

static void ask_with_jwt(struct google *google) {
        const struct google_account *account = &google->account;
        char *jwt = NULL;
        int r = google_jwt(account,
                           account->impersonation_url ? GOOGLE_SCOPE_OF_SOURCE : GOOGLE_SCOPE,
                           (int64_t)time(NULL), &jwt);

        if (r == -EINVAL)
                fail_words(google, google->path, "its private_key is no key of RSA");
        else if (r < 0)
                fail_errno(google, -r, "credentials of Google");
        else
                ask_token(google, google_request_jwt(jwt));
        secret_free(jwt);
}

static void take_subject(struct google *google, const char *text, size_t size, const char *from) {
        char *subject;
        int r = google_subject_token(&google->account, text, size, &subject);

        if (r == -EBADMSG)
                fail_words(google, from, "it has no subject token");
        else if (r < 0)
                fail_errno(google, -r, "credentials of Google");
        else
                ask_token(google, google_request_exchange(&google->account, subject));
        if (r == 0)
                secret_free(subject);
}

static void on_subject(void *userdata, const struct http_exchange_answer *answer) {
        struct google *google = userdata;

        if (is_success(google, answer, "subject tokens"))
                take_subject(google, answer->body, answer->body_size, "server of subject tokens");
}

static void ask_with_subject(struct google *google) {
        const struct google_account *account = &google->account;
        size_t size;
        char *text;
        int r;

        if (account->subject_url) {
                ask(google,
                    &(struct http_exchange_query){
                            .url = account->subject_url,
                            .headers = (const char *const *)account->subject_headers,
                            .requests = &google->requests },
                    on_subject);
                return;
        }
        r = secret_file_read(account->subject_file, &text, &size);
        if (r < 0) {
                fail_errno(google, -r, account->subject_file);
                return;
        }
        take_subject(google, text, size, account->subject_file);
        secret_free(text);
}

static void ask_as_account(struct google *google) {
        if (google->account.kind == GOOGLE_SERVICE_ACCOUNT)
                ask_with_jwt(google);
        else if (google->account.kind == GOOGLE_AUTHORIZED_USER)
                ask_token(google, google_request_refresh(&google->account));
        else
                ask_with_subject(google);
}

/* ---- The metadata server ---- */

static void ask_metadata(struct google *google, const char *path, unsigned tries,
                         on_answer *on_done) {
        const char *host = getenv("GCE_METADATA_HOST");
        CLEANUP(freep) char *url = NULL;

        if (asprintf(&url, "http://%s" METADATA_PATH "%s", host && *host ? host : METADATA_HOST,
                     path) < 0) {
                url = NULL;
                fail_errno(google, ENOMEM, "credentials of Google");
                return;
        }
        ask(google,
            &(struct http_exchange_query){
                    .url = url,
                    .headers = (const char *const[]){ "Metadata-Flavor: Google", NULL },
                    .timeout_ms = METADATA_TIMEOUT_MS,
                    .tries = tries,
                    .no_proxy = true,
                    .requests = &google->requests },
            on_done);
}

static void on_metadata_token(void *userdata, const struct http_exchange_answer *answer) {
        struct google *google = userdata;
        struct google_token token;

        if (!is_success(google, answer, "metadata") || !take_token(google, answer, &token))
                return;
        google->had_metadata = true;
        succeed(google, &token);
}

/* There is a metadata server, and it fails for now: no reason to be nobody. */
static bool fails_for_now(const struct http_exchange_answer *answer) {
        return answer->failure.class == STORE_OK &&
               (answer->status == 429 || answer->status >= 500);
}

static void on_email(void *userdata, const struct http_exchange_answer *answer) {
        struct google *google = userdata;
        bool is_there = answer->failure.class == STORE_OK && answer->status == 200 &&
                        answer->body_size < sizeof(google->email) && strchr(answer->body, '@');

        google->exchange = NULL;
        if (is_there)
                snprintf(google->email, sizeof(google->email), "%.*s",
                         (int)strcspn(answer->body, "\r\n"), answer->body);
        if (is_there || google->had_metadata)
                ask_metadata(google, "token", 3, on_metadata_token);
        else if (!fails_for_now(answer) || is_success(google, answer, "metadata"))
                be_nobody(google);
}

/* ---- Beginning ---- */

/* As google-auth and gcloud say where the file is. */
static int find_file(struct google *google) {
        const char *named = getenv("GOOGLE_APPLICATION_CREDENTIALS");
        const char *gcloud = getenv("CLOUDSDK_CONFIG"), *home = getenv("HOME");
        bool has_gcloud = gcloud && *gcloud;
        int r = 0;

        free(google->path);
        google->path = NULL;
        google->is_named = named && *named;
        if (google->is_named)
                r = asprintf(&google->path, "%s", named);
        else if (has_gcloud || (home && *home))
                r = asprintf(&google->path, "%s%s/application_default_credentials.json",
                             has_gcloud ? gcloud : home, has_gcloud ? "" : "/.config/gcloud");
        if (r < 0)
                google->path = NULL;
        return r < 0 ? -ENOMEM : 0;
}

static void take_file(struct google *google, const char *text, size_t size) {
        const char *why;
        int r = google_account_parse(&google->account, text, size, &why);

        google->has_account = r == 0;
        if (r == -EINVAL)
                fail_words(google, google->path, why);
        else if (r < 0)
                fail_errno(google, -r, google->path);
        else
                ask_as_account(google);
}

static void forget_account(struct google *google) {
        google_account_deinit(&google->account);
        google->has_account = false;
        google->email[0] = '\0';
}

static void on_turn(uv_timer_t *turn) {
        struct google *google = turn->data;
        const char *no_metadata = getenv("NO_GCE_CHECK");
        char *text = NULL;
        size_t size = 0;
        int r = -ENOENT;

        forget_account(google);
        if (google->is_anonymous) {
                be_nobody(google);
                return;
        }
        if (google->path) {
                google->stamp = file_stamp_of(google->path);
                r = secret_file_read(google->path, &text, &size);
        }
        if (r == 0)
                take_file(google, text, size);
        else if (google->is_named || (r != -ENOENT && r != -ENOTDIR))
                fail_words(google, google->path, strerror(-r));
        else if (no_metadata && strcasecmp(no_metadata, "true") == 0)
                be_nobody(google);
        else
                ask_metadata(google, "email", 1, on_email);
        secret_free(text);
}

static int google_refresh(void *provider, credentials_on_value *on_value, void *userdata) {
        struct google *google = provider;
        int r = find_file(google);

        if (r < 0)
                return r;
        google->on_value = on_value;
        google->userdata = userdata;
        uv_timer_start(google->turn, on_turn, 0, 0);
        return 0;
}

static void google_cancel(void *provider) {
        struct google *google = provider;

        uv_timer_stop(google->turn);
        if (google->exchange)
                http_exchange_cancel(steal_pointer(&google->exchange));
}

static bool google_has_changed(void *provider) {
        struct google *google = provider;

        return !google->is_anonymous && google->path &&
               !file_stamp_is(&google->stamp, google->path);
}

static uint64_t google_take_requests(void *provider) {
        struct google *google = provider;
        uint64_t requests = google->requests;

        google->requests = 0;
        return requests;
}

/* ---- Life ---- */

static void free_handle(uv_handle_t *handle) {
        free(handle);
}

static void google_free(void *provider) {
        struct google *google = provider;

        forget_account(google);
        free(google->path);
        if (google->turn)
                uv_close((uv_handle_t *)google->turn, free_handle);
        free(google);
}

static const struct credentials_provider operations = {
        .name = "google",
        .refresh = google_refresh,
        .cancel = google_cancel,
        .has_changed = google_has_changed,
        .take_requests = google_take_requests,
        .free = google_free,
};

int google_credentials_new(uv_loop_t *loop, bool is_anonymous,
                           struct credentials **ret_credentials) {
        struct google *google = calloc(1, sizeof(*google));

        if (!google)
                return -ENOMEM;
        google->loop = loop;
        google->is_anonymous = is_anonymous;
        google->stamp.mtime_ns = INT64_MIN;
        google->turn = malloc(sizeof(*google->turn));
        if (!google->turn) {
                free(google);
                return -ENOMEM;
        }
        uv_timer_init(loop, google->turn);
        google->turn->data = google;
        return credentials_new(loop, &operations, google, ret_credentials);
}
