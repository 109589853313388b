/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of a container (ECS, EKS pod identity). Source: "Container credential provider", AWS
 * SDKs and Tools Reference Guide.
 */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/aws_source.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_exchange.h"
#include "daemon/store/http_url.h"

#define CONTAINER_HOST "http://169.254.170.2"
#define CONTAINER_TIMEOUT_MS 2000

struct aws_run {
        struct http_exchange *exchange;
        aws_on_done *on_done;
        void *userdata;
};

/* A token must not be sent in the clear to anybody but this machine and its hypervisor. */
static bool is_allowed(const char *url) {
        static const char *const hosts[] = { "localhost",     "127.0.0.1",      "::1",
                                             "169.254.170.2", "169.254.170.23", "fd00:ec2::23" };
        CLEANUP(http_url_deinit) struct http_url parsed = { 0 };
        const char *message;

        if (http_url_init(&parsed, url, &message) < 0)
                return false;
        if (strcmp(parsed.scheme, "https") == 0)
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
                if (strcmp(parsed.host, hosts[i]) == 0)
                        return true;
        }
        return false;
}

static void on_answer(void *userdata, const struct http_exchange_answer *answer) {
        static const struct aws_json_names names = { "AccessKeyId", "SecretAccessKey", "Token",
                                                     "Expiration" };
        struct aws_run run = *(struct aws_run *)userdata;
        struct store_failure failure = answer->failure;
        struct credentials_value value;
        int r = -EBADMSG;

        free(userdata);
        if (failure.class == STORE_OK && answer->status == 200)
                r = aws_value_from_json(&value, answer->body, answer->body_size, &names,
                                        "container role");
        if (r == 0) {
                run.on_done(run.userdata, &value, NULL);
                return;
        }
        if (failure.class == STORE_OK)
                failure_set(&failure, aws_failure_class(answer->status, NULL), "container",
                            "The container's credentials endpoint answered %ld with no credentials",
                            answer->status);
        run.on_done(run.userdata, NULL, &failure);
}

/* The header's value, the caller's to free. The file is read each time: its token changes. */
static int authorization(const struct aws_context *context, char **ret_header,
                         char why[CREDENTIALS_WHY_BYTES]) {
        const char *path = aws_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        const char *plain = aws_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
        char *text = NULL;
        int r = path ? secret_file_read(path, &text, NULL) : 0;

        *ret_header = NULL;
        if (r < 0) {
                secret_watch_add(context->watch, path);
                snprintf(why, CREDENTIALS_WHY_BYTES, "%s: %s", path, strerror(-r));
                return CREDENTIALS_BROKEN;
        }
        if (text)
                text[strcspn(text, "\r\n")] = '\0';
        if (!text && !plain)
                return 0;
        r = asprintf(ret_header, "Authorization: %s", text ? text : plain) < 0 ? -ENOMEM : 0;
        secret_free(text);
        return r;
}

static int make_url(char **ret_url, char why[CREDENTIALS_WHY_BYTES]) {
        const char *relative = aws_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        const char *full = aws_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");

        if (!relative && !full) {
                snprintf(why, CREDENTIALS_WHY_BYTES,
                         "AWS_CONTAINER_CREDENTIALS_FULL_URI is not set");
                return CREDENTIALS_ABSENT;
        }
        if (!relative && !is_allowed(full)) {
                snprintf(why, CREDENTIALS_WHY_BYTES,
                         "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor of this machine");
                return CREDENTIALS_BROKEN;
        }
        if (asprintf(ret_url, "%s%s", relative ? CONTAINER_HOST : "", relative ? relative : full) <
            0) {
                *ret_url = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int start(const struct aws_context *context, struct credentials_value *ret_value,
                 char why[CREDENTIALS_WHY_BYTES], aws_on_done *on_done, void *userdata,
                 struct aws_run **ret_run) {
        CLEANUP(freep) char *url = NULL, *header = NULL;
        const char *headers[2] = { NULL, NULL };
        struct aws_run *run;
        int r = make_url(&url, why);

        (void)ret_value;
        if (r == 0)
                r = authorization(context, &header, why);
        if (r != 0)
                return r;
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        headers[0] = header;
        run->on_done = on_done;
        run->userdata = userdata;
        r = http_exchange_start(context->loop,
                                &(struct http_exchange_query){ .url = url,
                                                               .headers = headers,
                                                               .timeout_ms = CONTAINER_TIMEOUT_MS,
                                                               .no_proxy = true,
                                                               .requests = context->requests },
                                on_answer, run, &run->exchange);
        if (header)
                explicit_bzero(header, strlen(header));
        if (r < 0) {
                free(run);
                return r;
        }
        *ret_run = run;
        return CREDENTIALS_RUNNING;
}

static void cancel(struct aws_run *run) {
        http_exchange_cancel(run->exchange);
        free(run);
}

const struct aws_source aws_source_container = { .name = "container",
                                                 .start = start,
                                                 .cancel = cancel };
