/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of Google's credentials: a service account's key, a user's login, a federated or an
 * impersonated identity. Source: "How Application Default Credentials works", Google Cloud; AIP-4110
 * to AIP-4117 (google.aip.dev). Not bound to a thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOOGLE_HEADERS_MOST 16

enum google_kind {
        GOOGLE_SERVICE_ACCOUNT,
        GOOGLE_AUTHORIZED_USER,
        GOOGLE_EXTERNAL_ACCOUNT,
};

/* Each string is the struct's own; NULL: the file has it not. */
struct google_account {
        enum google_kind kind;
        char *client_email, *private_key, *private_key_id;
        char *token_url;
        char *client_id, *client_secret, *refresh_token;
        char *audience, *subject_token_type;
        char *subject_file, *subject_url;
        char *subject_field; /* of JSON; NULL: the subject token is the whole text */
        char *subject_headers[GOOGLE_HEADERS_MOST + 1];
        char *impersonation_url;
};

/*
 * Takes the text of a file. -EINVAL: *ret_why (static) says what is wrong or missing, never what
 * stands there; -ENOMEM.
 */
int google_account_parse(struct google_account *account, const char *text, size_t size,
                         const char **ret_why);

/* Secrets are overwritten. */
void google_account_deinit(struct google_account *account);

/* The email in "https://.../serviceAccounts/EMAIL:generateAccessToken"; size 0: there is none. */
const char *google_impersonated(const char *url, size_t *ret_size);
