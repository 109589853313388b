/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/aws_source.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/iso_time.h"

static bool copy(char **to, const char *text) {
        *to = text ? strdup(text) : NULL;
        return !text || *to;
}

int aws_value_set(struct credentials_value *ret_value, const char *id, const char *secret,
                  const char *token, int64_t expires_s, const char *identity_format, ...) {
        struct credentials_value value = { .expires_s = expires_s };
        va_list arguments;
        int size;

        va_start(arguments, identity_format);
        size = vasprintf(&value.identity, identity_format, arguments);
        va_end(arguments);
        if (size < 0)
                value.identity = NULL;
        if (!copy(&value.id, id) || !copy(&value.secret, secret) || !copy(&value.token, token) ||
            size < 0) {
                credentials_value_deinit(&value);
                return -ENOMEM;
        }
        *ret_value = value;
        return 0;
}

/*
 * Source: "Retry behavior", AWS SDKs and Tools Reference Guide; IDPCommunicationError: "Errors" of
 * AssumeRoleWithWebIdentity, AWS Security Token Service API Reference.
 */
enum store_failure_class aws_failure_class(long status, const char *code) {
        static const char *const passing[] = {
                "Throttling",
                "ThrottlingException",
                "ThrottledException",
                "RequestThrottled",
                "RequestThrottledException",
                "TooManyRequestsException",
                "RequestLimitExceeded",
                "BandwidthLimitExceeded",
                "LimitExceededException",
                "PriorRequestNotComplete",
                "TransactionInProgressException",
                "ProvisionedThroughputExceededException",
                "SlowDown",
                "EC2ThrottledException",
                "RequestTimeout",
                "RequestTimeoutException",
                "InternalError",
                "IDPCommunicationError",
        };

        if (status == 408 || status == 429 || status >= 500)
                return STORE_TRANSIENT;
        for (size_t i = 0; code && i < ARRAY_SIZE(passing); i++) {
                if (strcmp(passing[i], code) == 0)
                        return STORE_TRANSIENT;
        }
        return STORE_PERMANENT;
}

const char *aws_variable(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

const char *aws_setting(const struct aws_context *context, const char *key) {
        const char *value = aws_profiles_get(context->profiles, "profile", context->profile, key);

        return value && *value ? value : NULL;
}

static int64_t time_of(json_t *time) {
        int64_t ns;

        if (json_is_integer(time))
                return json_integer_value(time) / 1000;
        if (!json_is_string(time))
                return time ? INT64_MIN : CREDENTIALS_NEVER;
        ns = iso_time_parse(json_string_value(time));
        return ns == INT64_MIN ? ns : ns / 1000000000;
}

int aws_value_from_json(struct credentials_value *ret_value, const char *text, size_t size,
                        const struct aws_json_names *names, const char *identity) {
        json_t *root = json_loadb(text, size, 0, NULL);
        const char *id = json_string_value(json_object_get(root, names->id));
        const char *secret = json_string_value(json_object_get(root, names->secret));
        const char *token = json_string_value(json_object_get(root, names->token));
        int64_t expires_s = time_of(json_object_get(root, names->expiration));
        int r = -EBADMSG;

        if (id && secret && expires_s != INT64_MIN)
                r = aws_value_set(ret_value, id, secret, token, expires_s, "%s", identity);
        json_decref(root);
        return r;
}
