/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Azure's Shared Key: requests signed with an account's key. Source: "Authorize with Shared Key",
 * Azure Storage REST API. Pure but for libcrypto.
 */
#pragma once

#include <stddef.h>

#define AZURE_SIGN_HEADERS_MOST 8

struct azure_sign_header {
        const char *name; /* lower case, begins with "x-ms-" */
        const char *value;
};

struct azure_sign_input {
        const char *method;
        const char *target;                      /* path and query, encoded, as it is sent */
        const char *range;                       /* "bytes=0-99"; NULL: none */
        const char *if_match;                    /* with its quotes; NULL: none */
        const struct azure_sign_header *headers; /* all of x-ms-*, sorted by name */
        size_t header_count;
};

/*
 * The value of the Authorization header, the caller's to free. key is base64. -EINVAL: it is not;
 * -ENOMEM.
 */
int azure_sign(const char *account, const char *key, const struct azure_sign_input *input,
               char **ret_authorization);
