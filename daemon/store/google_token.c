/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/google_token.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"
#include "daemon/store/iso_time.h"

#define TOKEN_LIFE_S 3600 /* of one that does not say */
#define TOKEN_LIFE_MOST_S 86400

/* A number, or a string of one. */
static int64_t life_of(const json_t *value) {
        int64_t life_s = json_is_integer(value)  ? json_integer_value(value)
                         : json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                                 : TOKEN_LIFE_S;

        return life_s < 0 ? 0 : life_s > TOKEN_LIFE_MOST_S ? TOKEN_LIFE_MOST_S : life_s;
}

/* A token goes into a header. */
static bool is_token(const char *text) {
        if (!text || !*text)
                return false;
        for (; *text; text++) {
                if (*text <= ' ' || *text > '~')
                        return false;
        }
        return true;
}

static int take(const json_t *root, int64_t now_s, struct google_token *ret_token) {
        const char *text = json_string_value(json_object_get(root, "access_token"));
        const char *until = json_string_value(json_object_get(root, "expireTime"));
        int64_t expires_ns = until ? iso_time_parse(until) : INT64_MIN;

        if (!text)
                text = json_string_value(json_object_get(root, "accessToken"));
        if (!is_token(text))
                return -EBADMSG;
        ret_token->text = strdup(text);
        ret_token->expires_s = expires_ns != INT64_MIN
                                       ? expires_ns / 1000000000
                                       : now_s + life_of(json_object_get(root, "expires_in"));
        return ret_token->text ? 0 : -ENOMEM;
}

int google_token_parse(const char *body, size_t size, int64_t now_s,
                       struct google_token *ret_token) {
        json_t *root = json_loadb(body, size, 0, NULL);
        int r = root ? take(root, now_s, ret_token) : -EBADMSG;

        json_decref(root);
        return r;
}

/* Only the code: descriptions are known to repeat what was sent. */
void google_token_refusal(const char *body, size_t size, long status, const char *whose,
                          struct store_failure *ret_failure) {
        json_t *root = json_loadb(body, size, 0, NULL), *error = json_object_get(root, "error");
        const char *code = json_string_value(error);
        struct store_failure by_status;

        if (!code)
                code = json_string_value(json_object_get(error, "status"));
        failure_set_status(&by_status, status, "");
        failure_set(ret_failure, by_status.class, code ? code : by_status.code,
                    "%ld%s%.60s from the server of %s", status, code ? " " : "", code ? code : "",
                    whose);
        json_decref(root);
}
