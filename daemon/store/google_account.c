/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/google_account.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/secret_file.h"

/* ---- Fields ---- */

#define FIELD(member) offsetof(struct google_account, member)

static const struct {
        const char *outer, *name; /* outer: an object in the file, or NULL */
        size_t at;
} fields[] = {
        { NULL, "client_email", FIELD(client_email) },
        { NULL, "private_key", FIELD(private_key) },
        { NULL, "private_key_id", FIELD(private_key_id) },
        { NULL, "token_uri", FIELD(token_url) },
        { NULL, "token_url", FIELD(token_url) },
        { NULL, "client_id", FIELD(client_id) },
        { NULL, "client_secret", FIELD(client_secret) },
        { NULL, "refresh_token", FIELD(refresh_token) },
        { NULL, "audience", FIELD(audience) },
        { NULL, "subject_token_type", FIELD(subject_token_type) },
        { "credential_source", "file", FIELD(subject_file) },
        { "credential_source", "url", FIELD(subject_url) },
        { NULL, "service_account_impersonation_url", FIELD(impersonation_url) },
};

static char **member(struct google_account *account, size_t at) {
        return (char **)((char *)account + at);
}

static int copy(char **to, const json_t *value) {
        if (!json_string_value(value) || *to)
                return 0;
        *to = strdup(json_string_value(value));
        return *to ? 0 : -ENOMEM;
}

static int take_fields(struct google_account *account, const json_t *root) {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                const json_t *in = fields[i].outer ? json_object_get(root, fields[i].outer) : root;
                int r = copy(member(account, fields[i].at), json_object_get(in, fields[i].name));

                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_headers(struct google_account *account, json_t *headers) {
        const char *name;
        json_t *value;
        size_t count = 0;

        json_object_foreach(headers, name, value) {
                const char *text = json_string_value(value);

                if (!text || count == GOOGLE_HEADERS_MOST || strpbrk(text, "\r\n") ||
                    strpbrk(name, "\r\n:"))
                        return -EINVAL;
                if (asprintf(&account->subject_headers[count], "%s: %s", name, text) < 0) {
                        account->subject_headers[count] = NULL;
                        return -ENOMEM;
                }
                count++;
        }
        return 0;
}

static int take_source(struct google_account *account, const json_t *root) {
        json_t *source = json_object_get(root, "credential_source");
        json_t *format = json_object_get(source, "format");
        const char *type = json_string_value(json_object_get(format, "type"));
        int r = take_headers(account, json_object_get(source, "headers"));

        if (r == 0 && type && strcmp(type, "json") == 0)
                r = copy(&account->subject_field,
                         json_object_get(format, "subject_token_field_name"));
        return r;
}

/* ---- Kinds ---- */

static const struct {
        const char *type;
        enum google_kind kind;
        const char *token_url; /* where the file need not say it */
        size_t needs[4];
        const char *why; /* what is missing */
} kinds[] = {
        { "service_account",
          GOOGLE_SERVICE_ACCOUNT,
          "https://oauth2.googleapis.com/token",
          { FIELD(client_email), FIELD(private_key), FIELD(private_key), FIELD(private_key) },
          "client_email or private_key is missing" },
        { "authorized_user",
          GOOGLE_AUTHORIZED_USER,
          "https://oauth2.googleapis.com/token",
          { FIELD(client_id), FIELD(client_secret), FIELD(refresh_token), FIELD(refresh_token) },
          "client_id, client_secret or refresh_token is missing" },
        { "external_account",
          GOOGLE_EXTERNAL_ACCOUNT,
          NULL,
          { FIELD(audience), FIELD(subject_token_type), FIELD(token_url), FIELD(token_url) },
          "audience, subject_token_type or token_url is missing" },
};

static int take_kind(struct google_account *account, const json_t *root, const char *type,
                     const char **ret_why) {
        for (size_t i = 0; type && i < ARRAY_SIZE(kinds); i++) {
                if (strcmp(kinds[i].type, type) != 0)
                        continue;
                account->kind = kinds[i].kind;
                for (size_t j = 0; j < ARRAY_SIZE(kinds[i].needs); j++) {
                        if (!*member(account, kinds[i].needs[j])) {
                                *ret_why = kinds[i].why;
                                return -EINVAL;
                        }
                }
                if (!account->token_url && !(account->token_url = strdup(kinds[i].token_url)))
                        return -ENOMEM;
                if (account->kind != GOOGLE_EXTERNAL_ACCOUNT)
                        return 0;
                *ret_why =
                        "credential_source has neither a file nor a url, or headers that are none";
                return account->subject_file || account->subject_url ? take_source(account, root)
                                                                     : -EINVAL;
        }
        *ret_why = "its type is none of service_account, authorized_user, external_account and "
                   "impersonated_service_account";
        return -EINVAL;
}

static int take(struct google_account *account, const json_t *root, const char **ret_why) {
        const char *type = json_string_value(json_object_get(root, "type"));
        const json_t *source = root;
        int r = 0;

        if (type && strcmp(type, "impersonated_service_account") == 0) {
                source = json_object_get(root, "source_credentials");
                type = json_string_value(json_object_get(source, "type"));
                r = copy(&account->impersonation_url,
                         json_object_get(root, "service_account_impersonation_url"));
                if (r == 0 && !account->impersonation_url) {
                        *ret_why = "service_account_impersonation_url is missing";
                        return -EINVAL;
                }
        }
        if (r == 0)
                r = take_fields(account, source);
        return r < 0 ? r : take_kind(account, source, type, ret_why);
}

int google_account_parse(struct google_account *account, const char *text, size_t size,
                         const char **ret_why) {
        json_error_t error;
        json_t *root = json_loadb(text, size, 0, &error);
        int r;

        *account = (struct google_account){ 0 };
        if (!root) {
                *ret_why = "it is no JSON";
                return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
        }
        r = take(account, root, ret_why);
        json_decref(root);
        if (r < 0)
                google_account_deinit(account);
        return r;
}

void google_account_deinit(struct google_account *account) {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                secret_free(*member(account, fields[i].at));
                *member(account, fields[i].at) = NULL;
        }
        for (size_t i = 0; account->subject_headers[i]; i++)
                secret_free(account->subject_headers[i]);
        secret_free(account->subject_field);
        *account = (struct google_account){ 0 };
}

const char *google_impersonated(const char *url, size_t *ret_size) {
        static const char before[] = "/serviceAccounts/";
        const char *at = url ? strstr(url, before) : NULL;

        at = at ? at + strlen(before) : "";
        *ret_size = strcspn(at, ":/?");
        return at;
}
