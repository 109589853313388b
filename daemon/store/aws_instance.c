/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of an EC2 instance's role, by version 2 of its metadata service: a token, the role's
 * name, its credentials. Source: "Use the Instance Metadata Service", Amazon EC2 User Guide.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_exchange.h"

#define INSTANCE_ENDPOINT "http://169.254.169.254"
#define INSTANCE_TIMEOUT_MS 1000 /* nobody answers where there is none */
#define INSTANCE_TRIES 2
#define ROLES_PATH "/latest/meta-data/iam/security-credentials/"

struct aws_run {
        uv_loop_t *loop;
        uint64_t *requests; /* as that of the context */
        struct http_exchange *exchange;
        char *endpoint;
        char *token_header; /* NULL: not there yet */
        char *role;
        aws_on_done *on_done;
        void *userdata;
};

static void run_free(struct aws_run *run) {
        if (run->token_header)
                explicit_bzero(run->token_header, strlen(run->token_header));
        free(run->token_header);
        free(run->endpoint);
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

static void fail_errno(struct aws_run *run, int error) {
        struct store_failure failure;

        failure_set_errno(&failure, error, "instance metadata");
        end(run, NULL, &failure);
}

/*
 * Nobody there, or no role: the next source may have credentials. A service that is there and fails
 * is no reason to look elsewhere. Answers for somebody in a container end at the instance, which
 * looks like silence.
 */
static void absent(struct aws_run *run, const char *why,
                   const struct http_exchange_answer *answer) {
        bool is_silent = strcmp(answer->failure.code, "timeout") == 0;
        bool passes = answer->failure.class == STORE_OK &&
                      aws_failure_class(answer->status, NULL) == STORE_TRANSIENT;
        struct store_failure failure;

        failure_set(&failure, passes ? STORE_TRANSIENT : STORE_OK, passes ? "instance" : "",
                    "%s at %s (%s%.0ld)%s", why, run->endpoint, answer->failure.code,
                    answer->status,
                    is_silent ? "; in a container it may be the hop limit, which must be 2" : "");
        end(run, NULL, &failure);
}

static int ask(struct aws_run *run, const char *method, const char *path, const char *more,
               const char *header,
               void (*on_answer)(void *userdata, const struct http_exchange_answer *answer)) {
        const char *headers[] = { header, NULL };
        CLEANUP(freep) char *url = NULL;

        if (asprintf(&url, "%s%s%s", run->endpoint, path, more) < 0) {
                url = NULL;
                return -ENOMEM;
        }
        return http_exchange_start(run->loop,
                                   &(struct http_exchange_query){ .url = url,
                                                                  .method = method,
                                                                  .headers = headers,
                                                                  .body = method ? "" : NULL,
                                                                  .timeout_ms = INSTANCE_TIMEOUT_MS,
                                                                  .tries = INSTANCE_TRIES,
                                                                  .no_proxy = true,
                                                                  .requests = run->requests },
                                   on_answer, run, &run->exchange);
}

static void on_credentials(void *userdata, const struct http_exchange_answer *answer) {
        static const struct aws_json_names names = { "AccessKeyId", "SecretAccessKey", "Token",
                                                     "Expiration" };
        struct aws_run *run = userdata;
        struct store_failure failure = answer->failure;
        struct credentials_value value;
        char identity[160];
        int r = -EBADMSG;

        snprintf(identity, sizeof(identity), "instance role %s", run->role);
        if (failure.class == STORE_OK && answer->status == 200)
                r = aws_value_from_json(&value, answer->body, answer->body_size, &names, identity);
        if (r == 0) {
                end(run, &value, NULL);
                return;
        }
        if (failure.class == STORE_OK)
                failure_set(&failure, STORE_TRANSIENT, "instance",
                            "The instance metadata service has no credentials for role %s (%ld)",
                            run->role, answer->status);
        end(run, NULL, &failure);
}

static void on_role(void *userdata, const struct http_exchange_answer *answer) {
        struct aws_run *run = userdata;
        int r;

        if (answer->failure.class != STORE_OK || answer->status != 200 || !answer->body[0]) {
                absent(run, "the instance has no role", answer);
                return;
        }
        run->role = strndup(answer->body, strcspn(answer->body, "\r\n"));
        r = run->role ? ask(run, NULL, ROLES_PATH, run->role, run->token_header, on_credentials)
                      : -ENOMEM;
        if (r < 0)
                fail_errno(run, -r);
}

static void on_token(void *userdata, const struct http_exchange_answer *answer) {
        struct aws_run *run = userdata;
        int r;

        if (answer->failure.class != STORE_OK || answer->status != 200) {
                absent(run, "no instance metadata", answer);
                return;
        }
        if (asprintf(&run->token_header, "X-aws-ec2-metadata-token: %.*s",
                     (int)strcspn(answer->body, "\r\n"), answer->body) < 0) {
                run->token_header = NULL;
                fail_errno(run, ENOMEM);
                return;
        }
        r = ask(run, NULL, ROLES_PATH, "", run->token_header, on_role);
        if (r < 0)
                fail_errno(run, -r);
}

static int start(const struct aws_context *context, struct credentials_value *ret_value,
                 char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                 struct aws_run **ret_run) {
        const char *disabled = aws_variable("AWS_EC2_METADATA_DISABLED");
        const char *endpoint = aws_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        struct aws_run *run;
        int r;

        (void)ret_value;
        if (disabled && strcasecmp(disabled, "true") == 0) {
                snprintf(why, CREDENTIALS_WHY_BYTES, "AWS_EC2_METADATA_DISABLED is set");
                return CREDENTIALS_ABSENT;
        }
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->loop = context->loop;
        run->requests = context->requests;
        run->on_done = on_done;
        run->userdata = userdata;
        run->endpoint = strdup(endpoint ? endpoint : INSTANCE_ENDPOINT);
        if (run->endpoint && run->endpoint[0] && run->endpoint[strlen(run->endpoint) - 1] == '/')
                run->endpoint[strlen(run->endpoint) - 1] = '\0';
        r = run->endpoint ? ask(run, "PUT", "/latest/api/token", "",
                                "X-aws-ec2-metadata-token-ttl-seconds: 21600", on_token)
                          : -ENOMEM;
        if (r < 0) {
                run_free(run);
                return r;
        }
        *ret_run = run;
        return CREDENTIALS_RUNNING;
}

static void cancel(struct aws_run *run) {
        http_exchange_cancel(run->exchange);
        run_free(run);
}

const struct aws_source aws_source_instance = { .name = "instance",
                                                .start = start,
                                                .cancel = cancel };
