/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4, in the Authorization header, with libcrypto. Source: "Create a signed AWS
 * API request" and "Authenticating Requests: Using the Authorization Header" of the S3 API
 * Reference, docs.aws.amazon.com. Pure but for libcrypto.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/credentials.h"

#define AWS_SIGN_HEADERS_MOST 8
#define AWS_SIGN_HEX_SHA256_SIZE 65 /* with its NUL */

/* SHA-256 of nothing, in hex. */
#define AWS_SIGN_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct aws_sign_header {
        const char *name; /* lower case */
        const char *value;
};

struct aws_sign_input {
        const char *method;
        const char *path;  /* encoded once, as it is sent */
        const char *query; /* encoded, without its question mark; any order; "" */
        /* all that are signed, "host" and "x-amz-date" among them; any order */
        const struct aws_sign_header *headers;
        size_t header_count;
        const char *payload_sha256; /* of the body, in hex, or "UNSIGNED-PAYLOAD" */
        const char *region, *service;
        const char *date; /* aws_sign_date() */
};

/* The signing key of a day, kept between requests. Zeros to begin with. */
struct aws_sign_key {
        uint8_t key[32];
        uint8_t of[32]; /* SHA-256 of what it was made from */
        bool is_made;
};

/* "20130524T000000Z" */
void aws_sign_date(int64_t time_s, char ret_date[17]);

/*
 * The value of the Authorization header, the caller's to free. -EINVAL: too many headers or query
 * parameters; -ENOMEM (also for whatever libcrypto lacks).
 */
int aws_sign(struct aws_sign_key *key, const struct credentials_value *credentials,
             const struct aws_sign_input *input, char **ret_authorization);

void aws_sign_sha256(const void *bytes, size_t size, char ret_hex[AWS_SIGN_HEX_SHA256_SIZE]);
