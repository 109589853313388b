/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/aws_source.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/base.h"

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
