/* SPDX-License-Identifier: Apache-2.0 */
/* The requests for tokens, as texts. Each is the caller's to wipe; NULL: no memory. */
#pragma once

#include "daemon/store/google_account.h"

#define GOOGLE_SCOPE "https://www.googleapis.com/auth/devstorage.read_only"
/* with which a token for another account may be asked for */
#define GOOGLE_SCOPE_OF_SOURCE "https://www.googleapis.com/auth/cloud-platform"

/* Of a service account: grant type jwt-bearer (RFC 7523). */
char *google_request_jwt(const char *jwt);

/* Of a user: grant type refresh_token (RFC 6749, section 6). */
char *google_request_refresh(const struct google_account *account);

/* Of a federated identity: token exchange (RFC 8693). */
char *google_request_exchange(const struct google_account *account, const char *subject_token);

/* The subject token in a file or an answer; -EBADMSG: there is none, -ENOMEM. */
int google_subject_token(const struct google_account *account, const char *text, size_t size,
                         char **ret_token);
