/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/azure_sign.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/percent.h"

#define PARAMETERS_MOST 16
#define KEY_MOST_BYTES 512

struct parameter {
        char *name, *value; /* decoded, the name in lower case */
};

static int compare(const void *one, const void *other) {
        return strcmp(((const struct parameter *)one)->name,
                      ((const struct parameter *)other)->name);
}

/* query is taken apart in place. */
static size_t split(char *query, struct parameter parameters[PARAMETERS_MOST]) {
        size_t count = 0;

        while (query && *query && count < PARAMETERS_MOST) {
                char *next = strchr(query, '&'), *equals;

                if (next)
                        *next++ = '\0';
                equals = strchr(query, '=');
                if (equals)
                        *equals++ = '\0';
                for (char *c = query; *c; c++)
                        *c = (char)tolower((unsigned char)*c);
                if (equals)
                        percent_decode(equals, strlen(equals));
                parameters[count++] = (struct parameter){ query, equals ? equals : (char *)"" };
                query = next;
        }
        qsort(parameters, count, sizeof(parameters[0]), compare);
        return count;
}

static int write_resource(FILE *out, const char *account, const char *target) {
        struct parameter parameters[PARAMETERS_MOST];
        size_t path_size = strcspn(target, "?"), count;
        CLEANUP(freep) char *query = strdup(target[path_size] ? target + path_size + 1 : "");

        if (!query)
                return -ENOMEM;
        fprintf(out, "/%s%.*s", account, (int)path_size, target);
        count = split(query, parameters);
        for (size_t i = 0; i < count; i++)
                fprintf(out, "\n%s:%s", parameters[i].name, parameters[i].value);
        return 0;
}

/* The caller's to free. */
static int string_to_sign(const char *account, const struct azure_sign_input *input,
                          char **ret_text) {
        CLEANUP(freep) char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        int r;

        if (!out)
                return -ENOMEM;
        /* encoding, language, length, MD5, type, date, If-Modified-Since: none of them is sent */
        fprintf(out, "%s\n\n\n\n\n\n\n\n%s\n\n\n%s\n", input->method,
                input->if_match ? input->if_match : "", input->range ? input->range : "");
        for (size_t i = 0; i < input->header_count; i++)
                fprintf(out, "%s:%s\n", input->headers[i].name, input->headers[i].value);
        r = write_resource(out, account, input->target);
        if (fclose(out) != 0)
                r = -ENOMEM;
        if (r == 0)
                *ret_text = steal_pointer(&text);
        return r;
}

/* Base64 of any length, without its padding. */
static int decode_key(const char *key, uint8_t ret_bytes[KEY_MOST_BYTES], size_t *ret_size) {
        size_t size = strlen(key), padding = 0;
        int decoded;

        while (padding < size && key[size - 1 - padding] == '=')
                padding++;
        if (size == 0 || size % 4 || size / 4 * 3 > KEY_MOST_BYTES || padding > 2)
                return -EINVAL;
        decoded = EVP_DecodeBlock(ret_bytes, (const uint8_t *)key, (int)size);
        if (decoded < 0)
                return -EINVAL;
        *ret_size = (size_t)decoded - padding;
        return 0;
}

int azure_sign(const char *account, const char *key, const struct azure_sign_input *input,
               char **ret_authorization) {
        uint8_t bytes[KEY_MOST_BYTES], digest[32];
        CLEANUP(freep) char *text = NULL;
        char signature[64];
        unsigned digest_size = sizeof(digest);
        size_t size;
        int r = decode_key(key, bytes, &size);

        if (r == 0)
                r = string_to_sign(account, input, &text);
        if (r == 0 && !HMAC(EVP_sha256(), bytes, (int)size, (uint8_t *)text, strlen(text), digest,
                            &digest_size))
                r = -ENOMEM;
        explicit_bzero(bytes, sizeof(bytes));
        if (r < 0)
                return r;
        EVP_EncodeBlock((uint8_t *)signature, digest, sizeof(digest));
        return asprintf(ret_authorization, "SharedKey %s:%s", account, signature) < 0 ? -ENOMEM : 0;
}
