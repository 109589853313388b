/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/aws_sts.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/store/aws_sign.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_exchange.h"
#include "daemon/store/http_url.h"
#include "daemon/store/iso_time.h"
#include "daemon/store/percent.h"
#include "daemon/store/s3_error.h"
#include "daemon/store/xml_stream.h"

struct aws_sts {
        struct http_exchange *exchange;
        char *role_arn, *label;
        aws_on_done *on_done;
        void *userdata;
};

static void sts_free(struct aws_sts *sts) {
        free(sts->role_arn);
        free(sts->label);
        free(sts);
}

/* ---- The answer ---- */

struct answer {
        char *id, *secret, *token, *arn;
        int64_t expires_s;
        bool out_of_memory;
};

static void keep(struct answer *answer, char **to, const char *text) {
        free(*to);
        *to = strdup(text);
        answer->out_of_memory |= !*to;
}

static void on_close(void *userdata, const char *name, unsigned depth, const char *text,
                     size_t size) {
        struct answer *answer = userdata;
        int64_t ns;

        (void)depth;
        (void)size;
        if (strcmp(name, "AccessKeyId") == 0) {
                keep(answer, &answer->id, text);
        } else if (strcmp(name, "SecretAccessKey") == 0) {
                keep(answer, &answer->secret, text);
        } else if (strcmp(name, "SessionToken") == 0) {
                keep(answer, &answer->token, text);
        } else if (strcmp(name, "Arn") == 0) {
                keep(answer, &answer->arn, text);
        } else if (strcmp(name, "Expiration") == 0) {
                ns = iso_time_parse(text);
                answer->expires_s = ns == INT64_MIN ? CREDENTIALS_NEVER : ns / 1000000000;
        }
}

static void answer_deinit(struct answer *answer) {
        if (answer->secret)
                explicit_bzero(answer->secret, strlen(answer->secret));
        if (answer->token)
                explicit_bzero(answer->token, strlen(answer->token));
        free(answer->id);
        free(answer->secret);
        free(answer->token);
        free(answer->arn);
}

/* "arn:aws:sts::123456789012:assumed-role/Research/session" -> "assumed-role/Research" */
static void name_role(const char *arn, char *ret_name, size_t space) {
        const char *name = strrchr(arn, ':');
        const char *slash = name ? strchr(name, '/') : NULL;

        name = name ? name + 1 : arn;
        slash = slash ? strchr(slash + 1, '/') : NULL;
        snprintf(ret_name, space, "%.*s", slash ? (int)(slash - name) : (int)strlen(name), name);
}

static int value_of(const struct aws_sts *sts, const struct http_exchange_answer *reply,
                    struct credentials_value *ret_value) {
        static const struct xml_stream_events events = { .on_close = on_close };
        struct answer answer = { .expires_s = CREDENTIALS_NEVER };
        struct xml_stream *xml;
        char role[200];
        int r = xml_stream_new(&events, &answer, &xml);

        if (r < 0)
                return r;
        r = xml_stream_feed(xml, reply->body, reply->body_size);
        if (r == 0)
                r = xml_stream_end(xml);
        xml_stream_free(xml);
        if (answer.out_of_memory)
                r = -ENOMEM;
        else if (r == 0 && (!answer.id || !answer.secret || !answer.token))
                r = -EBADMSG;
        if (r == 0) {
                name_role(answer.arn ? answer.arn : sts->role_arn, role, sizeof(role));
                r = aws_value_set(ret_value, answer.id, answer.secret, answer.token,
                                  answer.expires_s, "%s (%s)", role, sts->label);
        }
        answer_deinit(&answer);
        return r;
}

static void set_failure(const struct aws_sts *sts, const struct http_exchange_answer *reply,
                        struct store_failure *ret_failure) {
        struct s3_error error;

        s3_error_parse(reply->body, reply->body_size, &error);
        failure_set(ret_failure, aws_failure_class(reply->status, error.code),
                    error.code[0] ? error.code : "sts", "%ld %s from STS for role %s (%s)",
                    reply->status, error.code, sts->role_arn, sts->label);
        if (error.message[0])
                failure_advise(ret_failure, "%s", error.message);
}

static void on_answer(void *userdata, const struct http_exchange_answer *reply) {
        struct aws_sts *sts = userdata;
        aws_on_done *on_done = sts->on_done;
        void *on_done_userdata = sts->userdata;
        struct store_failure failure = reply->failure;
        struct credentials_value value;
        bool well = failure.class == STORE_OK && reply->status == 200 &&
                    value_of(sts, reply, &value) == 0;

        if (!well && failure.class == STORE_OK)
                set_failure(sts, reply, &failure);
        sts_free(sts);
        on_done(on_done_userdata, well ? &value : NULL, &failure);
}

/* ---- The request ---- */

static void write_field(FILE *out, const char *name, const char *value) {
        if (!value)
                return;
        fprintf(out, "&%s=", name);
        percent_write(out, value, strlen(value));
}

static char *make_body(const struct aws_sts_query *query) {
        char session[48], *body = NULL;
        size_t size;
        FILE *out = open_memstream(&body, &size);

        if (!out)
                return NULL;
        snprintf(session, sizeof(session), "headrace-%ld", (long)getpid());
        fprintf(out, "Action=%s&Version=2011-06-15", query->action);
        write_field(out, "RoleArn", query->role_arn);
        write_field(out, "RoleSessionName", query->session ? query->session : session);
        write_field(out, "ExternalId", query->external_id);
        write_field(out, "DurationSeconds", query->duration_s);
        write_field(out, "WebIdentityToken", query->token);
        if (fclose(out) != 0) {
                free(body);
                return NULL;
        }
        return body;
}

/* The caller's to free; NULL: no memory. */
static char *make_url(const struct aws_context *context) {
        const char *custom = aws_variable("AWS_ENDPOINT_URL_STS");
        char *url;

        if (custom)
                return asprintf(&url, "%s%s", custom,
                                custom[strlen(custom) - 1] == '/' ? "" : "/") < 0
                               ? NULL
                               : url;
        return asprintf(&url, "https://sts.%s.amazonaws.com%s/", context->region,
                        strncmp(context->region, "cn-", 3) == 0 ? ".cn" : "") < 0
                       ? NULL
                       : url;
}

#define HEADERS_MOST 5

struct headers {
        char *texts[HEADERS_MOST + 1];
        size_t count;
};

static int add_header(struct headers *headers, const char *name, const char *value) {
        char *text;

        if (asprintf(&text, "%s: %s", name, value) < 0)
                return -ENOMEM;
        headers->texts[headers->count++] = text;
        return 0;
}

static void headers_deinit(struct headers *headers) {
        for (size_t i = 0; i < headers->count; i++) {
                explicit_bzero(headers->texts[i], strlen(headers->texts[i]));
                free(headers->texts[i]);
        }
}

static int host_of(const char *url, char **ret_host) {
        struct http_url parsed;
        const char *message;
        int r = http_url_init(&parsed, url, &message);
        bool is_default;

        if (r < 0)
                return r;
        is_default = strcmp(parsed.port, strcmp(parsed.scheme, "https") == 0 ? "443" : "80") == 0;
        if (asprintf(ret_host, "%s%s%s", parsed.host, is_default ? "" : ":",
                     is_default ? "" : parsed.port) < 0) {
                *ret_host = NULL;
                r = -ENOMEM;
        }
        http_url_deinit(&parsed);
        return r;
}

static int sign(const struct aws_context *context, const struct credentials_value *signer,
                const char *url, const char *body, struct headers *headers) {
        CLEANUP(freep) char *host = NULL, *authorization = NULL;
        char date[17], digest[AWS_SIGN_HEX_SHA256_SIZE];
        struct aws_sign_key key = { .is_made = false };
        struct aws_sign_header signed_headers[3];
        const char *path = strstr(url, "://") + strlen("://");
        struct aws_sign_input input = { .method = "POST",
                                        .path = path + strcspn(path, "/"),
                                        .query = "",
                                        .headers = signed_headers,
                                        .header_count = signer->token ? 3 : 2,
                                        .payload_sha256 = digest,
                                        .region = context->region,
                                        .service = "sts",
                                        .date = date };
        int r = host_of(url, &host);

        if (r < 0)
                return r;
        aws_sign_date((int64_t)time(NULL), date);
        aws_sign_sha256(body, strlen(body), digest);
        signed_headers[0] = (struct aws_sign_header){ "host", host };
        signed_headers[1] = (struct aws_sign_header){ "x-amz-date", date };
        signed_headers[2] = (struct aws_sign_header){ "x-amz-security-token", signer->token };
        r = aws_sign(&key, signer, &input, &authorization);
        explicit_bzero(&key, sizeof(key));
        if (r == 0)
                r = add_header(headers, "x-amz-date", date);
        if (r == 0 && signer->token)
                r = add_header(headers, "x-amz-security-token", signer->token);
        return r == 0 ? add_header(headers, "Authorization", authorization) : r;
}

static int ask(const struct aws_context *context, const struct aws_sts_query *query,
               struct aws_sts *sts) {
        CLEANUP(freep) char *url = make_url(context);
        CLEANUP(freep) char *body = make_body(query);
        struct headers headers = { .count = 0 };
        int r = url && body
                        ? add_header(&headers, "Content-Type", "application/x-www-form-urlencoded")
                        : -ENOMEM;

        if (r == 0 && query->signer)
                r = sign(context, query->signer, url, body, &headers);
        if (r == 0)
                r = http_exchange_start(context->loop,
                                        &(struct http_exchange_query){
                                                .url = url,
                                                .method = "POST",
                                                .headers = (const char *const *)headers.texts,
                                                .body = body,
                                                .body_size = strlen(body),
                                                .requests = context->requests,
                                        },
                                        on_answer, sts, &sts->exchange);
        headers_deinit(&headers);
        if (body)
                explicit_bzero(body, strlen(body));
        return r;
}

int aws_sts_start(const struct aws_context *context, const struct aws_sts_query *query,
                  aws_on_done *on_done, void *userdata, struct aws_sts **ret_sts) {
        struct aws_sts *sts = calloc(1, sizeof(*sts));
        int r;

        if (!sts)
                return -ENOMEM;
        sts->on_done = on_done;
        sts->userdata = userdata;
        sts->role_arn = strdup(query->role_arn);
        if (asprintf(&sts->label, "%s%s", query->label ? "" : "profile ",
                     query->label ? query->label : context->profile) < 0)
                sts->label = NULL;
        r = sts->role_arn && sts->label ? ask(context, query, sts) : -ENOMEM;
        if (r < 0) {
                sts_free(sts);
                return r;
        }
        *ret_sts = sts;
        return 0;
}

void aws_sts_cancel(struct aws_sts *sts) {
        http_exchange_cancel(sts->exchange);
        sts_free(sts);
}
