/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/aws_sign.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <string.h>
#include <time.h>

#include "common/base.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define QUERY_PARAMETERS_MOST 32

void aws_sign_date(int64_t time_s, char ret_date[17]) {
        struct tm parts;
        time_t time = (time_t)time_s;

        if (!gmtime_r(&time, &parts))
                memset(&parts, 0, sizeof(parts));
        strftime(ret_date, 17, "%Y%m%dT%H%M%SZ", &parts);
}

static void hex(const uint8_t *bytes, size_t size, char *ret_text) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < size; i++) {
                *ret_text++ = digits[bytes[i] >> 4];
                *ret_text++ = digits[bytes[i] & 15];
        }
        *ret_text = '\0';
}

void aws_sign_sha256(const void *bytes, size_t size, char ret_hex[AWS_SIGN_HEX_SHA256_SIZE]) {
        uint8_t digest[32];

        SHA256(bytes, size, digest);
        hex(digest, sizeof(digest), ret_hex);
}

static int hmac(const uint8_t *key, size_t key_size, const char *text, uint8_t ret_digest[32]) {
        unsigned size = 32;

        return HMAC(EVP_sha256(), key, (int)key_size, (const uint8_t *)text, strlen(text),
                    ret_digest, &size)
                       ? 0
                       : -ENOMEM;
}

/* ---- The canonical request ---- */

static int compare_headers(const void *one, const void *other) {
        return strcmp(((const struct aws_sign_header *)one)->name,
                      ((const struct aws_sign_header *)other)->name);
}

struct parameter {
        const char *text; /* "name=value", not terminated */
        size_t name_size, size;
};

static int compare_bytes(const char *one, size_t one_size, const char *other, size_t other_size) {
        int order = memcmp(one, other, min_u64(one_size, other_size));

        return order ? order : one_size < other_size ? -1 : one_size > other_size;
}

/* By name, then by value: "=" sorts behind some bytes that a name may go on with. */
static int compare_parameters(const void *one, const void *other) {
        const struct parameter *a = one, *b = other;
        int order = compare_bytes(a->text, a->name_size, b->text, b->name_size);

        return order ? order
                     : compare_bytes(a->text + a->name_size, a->size - a->name_size,
                                     b->text + b->name_size, b->size - b->name_size);
}

/* A parameter without "=" gets one. */
static int write_query(FILE *out, const char *query) {
        struct parameter parameters[QUERY_PARAMETERS_MOST];
        size_t count = 0;

        while (*query) {
                size_t size = strcspn(query, "&"), name_size = strcspn(query, "=&");

                if (count == QUERY_PARAMETERS_MOST)
                        return -EINVAL;
                if (size > 0)
                        parameters[count++] = (struct parameter){ query, name_size, size };
                query += size;
                query += *query == '&';
        }
        qsort(parameters, count, sizeof(parameters[0]), compare_parameters);
        for (size_t i = 0; i < count; i++) {
                const struct parameter *one = &parameters[i];

                fprintf(out, "%s%.*s%s", i ? "&" : "", (int)one->size, one->text,
                        one->size == one->name_size ? "=" : "");
        }
        return 0;
}

/* Spaces around a value do not count, several in a row are one. */
static void write_value(FILE *out, const char *value) {
        bool spaces = false, begun = false;

        for (; *value; value++) {
                if (*value == ' ') {
                        spaces = true;
                        continue;
                }
                if (spaces && begun)
                        fputc(' ', out);
                spaces = false;
                begun = true;
                fputc(*value, out);
        }
}

static void write_names(FILE *out, const struct aws_sign_header *headers, size_t count) {
        for (size_t i = 0; i < count; i++)
                fprintf(out, "%s%s", i ? ";" : "", headers[i].name);
}

/* headers are sorted. */
static int canonical_request(const struct aws_sign_input *input,
                             const struct aws_sign_header *headers, char **ret_text) {
        CLEANUP(freep) char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        int r;

        if (!out)
                return -ENOMEM;
        fprintf(out, "%s\n%s\n", input->method, input->path);
        r = write_query(out, input->query);
        fputc('\n', out);
        for (size_t i = 0; i < input->header_count; i++) {
                fprintf(out, "%s:", headers[i].name);
                write_value(out, headers[i].value);
                fputc('\n', out);
        }
        fputc('\n', out);
        write_names(out, headers, input->header_count);
        fprintf(out, "\n%s", input->payload_sha256);
        if (fclose(out) != 0)
                return -ENOMEM;
        if (r == 0)
                *ret_text = steal_pointer(&text);
        return r;
}

/* ---- The key ---- */

/* Four HMACs, which change once a day. */
static int make_key(struct aws_sign_key *key, const char *secret, const char *day,
                    const struct aws_sign_input *input) {
        CLEANUP(freep) char *of = NULL, *first = NULL;
        uint8_t digest[32];
        int r;

        if (asprintf(&of, "%s\n%s\n%s\n%s", secret, day, input->region, input->service) < 0) {
                of = NULL;
                return -ENOMEM;
        }
        SHA256((uint8_t *)of, strlen(of), digest);
        explicit_bzero(of, strlen(of));
        if (key->is_made && memcmp(key->of, digest, sizeof(digest)) == 0)
                return 0;
        if (asprintf(&first, "AWS4%s", secret) < 0) {
                first = NULL;
                return -ENOMEM;
        }
        key->is_made = false;
        if ((r = hmac((uint8_t *)first, strlen(first), day, key->key)) == 0 &&
            (r = hmac(key->key, 32, input->region, key->key)) == 0 &&
            (r = hmac(key->key, 32, input->service, key->key)) == 0)
                r = hmac(key->key, 32, "aws4_request", key->key);
        explicit_bzero(first, strlen(first));
        memcpy(key->of, digest, sizeof(digest));
        key->is_made = r == 0;
        return r;
}

/* ---- The signature ---- */

static int write_authorization(const struct aws_sign_key *key, const char *id, const char *day,
                               const struct aws_sign_input *input,
                               const struct aws_sign_header *headers, const char *canonical,
                               char **ret_authorization) {
        CLEANUP(freep) char *to_sign = NULL, *names = NULL;
        char digest[AWS_SIGN_HEX_SHA256_SIZE], signature[AWS_SIGN_HEX_SHA256_SIZE];
        uint8_t bytes[32];
        size_t size;
        FILE *out;

        aws_sign_sha256(canonical, strlen(canonical), digest);
        if (asprintf(&to_sign, ALGORITHM "\n%s\n%s/%s/%s/aws4_request\n%s", input->date, day,
                     input->region, input->service, digest) < 0) {
                to_sign = NULL;
                return -ENOMEM;
        }
        if (hmac(key->key, 32, to_sign, bytes) < 0)
                return -ENOMEM;
        hex(bytes, sizeof(bytes), signature);
        out = open_memstream(&names, &size);
        if (!out)
                return -ENOMEM;
        write_names(out, headers, input->header_count);
        if (fclose(out) != 0)
                return -ENOMEM;
        return asprintf(ret_authorization,
                        ALGORITHM " Credential=%s/%s/%s/%s/aws4_request, SignedHeaders=%s, "
                                  "Signature=%s",
                        id, day, input->region, input->service, names, signature) < 0
                       ? -ENOMEM
                       : 0;
}

int aws_sign(struct aws_sign_key *key, const struct credentials_value *credentials,
             const struct aws_sign_input *input, char **ret_authorization) {
        struct aws_sign_header headers[AWS_SIGN_HEADERS_MOST];
        CLEANUP(freep) char *canonical = NULL;
        char day[9];
        int r;

        if (input->header_count > AWS_SIGN_HEADERS_MOST || !credentials->id || !credentials->secret)
                return -EINVAL;
        memcpy(headers, input->headers, input->header_count * sizeof(headers[0]));
        qsort(headers, input->header_count, sizeof(headers[0]), compare_headers);
        snprintf(day, sizeof(day), "%.8s", input->date);
        r = make_key(key, credentials->secret, day, input);
        if (r == 0)
                r = canonical_request(input, headers, &canonical);
        return r < 0 ? r
                     : write_authorization(key, credentials->id, day, input, headers, canonical,
                                           ret_authorization);
}
