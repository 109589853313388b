/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statement with which a service account asks for a token: a JWT (RFC 7519) signed with RS256
 * (RFC 7515, RFC 7518). Source: "Using OAuth 2.0 for Server to Server Applications", Google
 * Identity. Not bound to a thread.
 */
#pragma once

#include <stdint.h>

#include "daemon/store/google_account.h"

#define GOOGLE_JWT_LIFE_S 3600

/* *ret_jwt is the caller's to wipe. -EINVAL: the private key is none of RSA; -ENOMEM. */
int google_jwt(const struct google_account *account, const char *scope, int64_t now_s,
               char **ret_jwt);
