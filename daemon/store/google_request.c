/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/google_request.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/percent.h"

struct parameter {
        const char *name, *value;
};

static char *form(const struct parameter *parameters) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        for (const struct parameter *each = parameters; each->name; each++) {
                fprintf(out, "%s%s=", each == parameters ? "" : "&", each->name);
                percent_write(out, each->value, strlen(each->value));
        }
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}

char *google_request_jwt(const char *jwt) {
        return form((struct parameter[]){
                { "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer" },
                { "assertion", jwt },
                { NULL, NULL },
        });
}

char *google_request_refresh(const struct google_account *account) {
        return form((struct parameter[]){
                { "grant_type", "refresh_token" },
                { "client_id", account->client_id },
                { "client_secret", account->client_secret },
                { "refresh_token", account->refresh_token },
                { NULL, NULL },
        });
}

char *google_request_exchange(const struct google_account *account, const char *subject_token) {
        return form((struct parameter[]){
                { "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange" },
                { "audience", account->audience },
                { "scope", account->impersonation_url ? GOOGLE_SCOPE_OF_SOURCE : GOOGLE_SCOPE },
                { "requested_token_type", "urn:ietf:params:oauth:token-type:access_token" },
                { "subject_token", subject_token },
                { "subject_token_type", account->subject_token_type },
                { NULL, NULL },
        });
}

/* Text files end in a newline, which is not the token's. */
static char *text_token(const char *text, size_t size) {
        while (size > 0 && strchr("\r\n\t ", text[size - 1]))
                size--;
        return strndup(text, size);
}

int google_subject_token(const struct google_account *account, const char *text, size_t size,
                         char **ret_token) {
        json_t *root;
        const char *field;
        char *token;

        if (!account->subject_field) {
                token = text_token(text, size);
        } else {
                root = json_loadb(text, size, 0, NULL);
                field = json_string_value(json_object_get(root, account->subject_field));
                token = field ? strdup(field) : NULL;
                json_decref(root);
                if (!field)
                        return -EBADMSG;
        }
        if (!token)
                return -ENOMEM;
        if (!*token) {
                free(token);
                return -EBADMSG;
        }
        *ret_token = token;
        return 0;
}
