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

#define GOOGLE_FILE_MOST_BYTES (1u << 20)
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

/* A file as it was read, to see whether it is another one now. */
struct google_stamp {
        uint64_t device, inode, size_bytes;
        int64_t mtime_ns; /* INT64_MIN: it was not there */
};

struct google_stamp google_stamp_of(const char *path);
bool google_stamp_is(const struct google_stamp *stamp, const char *path);

/*
 * A whole small file; the caller wipes and frees it. -errno; -EFBIG beyond GOOGLE_FILE_MOST_BYTES;
 * -EINVAL: it is no regular file.
 */
int google_file_read(const char *path, char **ret_text, size_t *ret_size);

/* Overwrites and frees; NULL is fine. */
void google_wipe(char *text);
