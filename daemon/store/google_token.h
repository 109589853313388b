/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of token endpoints: OAuth 2.0 (RFC 6749), token exchange (RFC 8693), and Google's
 * generateAccessToken. Not bound to a thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

struct google_token {
        char *text; /* the caller's to wipe */
        int64_t expires_s;
};

/* -EBADMSG: it is no such answer; -ENOMEM. now_s: since 1970, what a lifetime counts from. */
int google_token_parse(const char *body, size_t size, int64_t now_s,
                       struct google_token *ret_token);

/* Of a status that is no success: "invalid_grant", or the status. whose: what was asked, for whom. */
void google_token_refusal(const char *body, size_t size, long status, const char *whose,
                          struct store_failure *ret_failure);
