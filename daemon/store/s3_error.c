/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/s3_error.h"

#include <string.h>

#include "common/base.h"
#include "daemon/store/xml_stream.h"

static void take(char *to, size_t space, const char *text) {
        snprintf(to, space, "%s", text);
}

static void on_close(void *userdata, const char *name, unsigned depth, const char *text,
                     size_t size) {
        struct s3_error *error = userdata;
        const struct {
                const char *name;
                char *to;
                size_t space;
        } fields[] = {
                { "Code", error->code, sizeof(error->code) },
                { "Message", error->message, sizeof(error->message) },
                { "Region", error->region, sizeof(error->region) },
                { "Endpoint", error->endpoint, sizeof(error->endpoint) },
                { "ServerTime", error->server_time, sizeof(error->server_time) },
        };

        (void)size;
        /* STS puts its errors a level deeper. */
        for (size_t i = 0; (depth == 2 || depth == 3) && i < ARRAY_SIZE(fields); i++) {
                if (strcmp(fields[i].name, name) == 0)
                        take(fields[i].to, fields[i].space, text);
        }
}

void s3_error_parse(const char *body, size_t size, struct s3_error *ret_error) {
        static const struct xml_stream_events events = { .on_close = on_close };
        struct xml_stream *xml;

        *ret_error = (struct s3_error){ .code = "" };
        if (xml_stream_new(&events, ret_error, &xml) < 0)
                return;
        /* What came before it stops to be XML is as good as any. */
        xml_stream_feed(xml, body, size);
        xml_stream_free(xml);
}

static const struct {
        const char *code;
        enum s3_error_kind kind;
} kinds[] = {
        { "InternalError", S3_ERROR_TRANSIENT },
        { "RequestTimeout", S3_ERROR_TRANSIENT },
        { "OperationAborted", S3_ERROR_TRANSIENT },
        { "SlowDown", S3_ERROR_THROTTLED },
        { "ServiceUnavailable", S3_ERROR_THROTTLED },
        { "Throttling", S3_ERROR_THROTTLED },
        { "ThrottlingException", S3_ERROR_THROTTLED },
        { "RequestLimitExceeded", S3_ERROR_THROTTLED },
        { "TooManyRequests", S3_ERROR_THROTTLED },
        { "ExpiredToken", S3_ERROR_CREDENTIALS },
        { "TokenRefreshRequired", S3_ERROR_CREDENTIALS },
        { "InvalidToken", S3_ERROR_CREDENTIALS },
        { "InvalidAccessKeyId", S3_ERROR_CREDENTIALS },
        { "SignatureDoesNotMatch", S3_ERROR_CREDENTIALS },
        { "InvalidClientTokenId", S3_ERROR_CREDENTIALS },
        { "RequestTimeTooSkewed", S3_ERROR_CLOCK },
        { "RequestExpired", S3_ERROR_CLOCK },
        { "PermanentRedirect", S3_ERROR_REGION },
        { "TemporaryRedirect", S3_ERROR_REGION },
        { "AuthorizationHeaderMalformed", S3_ERROR_REGION },
        { "IllegalLocationConstraintException", S3_ERROR_REGION },
        { "AccessDenied", S3_ERROR_DENIED },
        { "AllAccessDisabled", S3_ERROR_DENIED },
        { "AccountProblem", S3_ERROR_DENIED },
        { "NoSuchBucket", S3_ERROR_NO_BUCKET },
        { "InvalidObjectState", S3_ERROR_ARCHIVED },
};

enum s3_error_kind s3_error_kind(const char *code) {
        if (strncmp(code, "KMS.", 4) == 0)
                return S3_ERROR_KMS;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                if (strcmp(kinds[i].code, code) == 0)
                        return kinds[i].kind;
        }
        return S3_ERROR_OTHER;
}
