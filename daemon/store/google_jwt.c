/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/google_jwt.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "common/base.h"

static void free_key(EVP_PKEY **key) {
        EVP_PKEY_free(*key);
}

static void free_digest(EVP_MD_CTX **digest) {
        EVP_MD_CTX_free(*digest);
}

static void free_json(json_t **value) {
        json_decref(*value);
}

/* base64url without padding (RFC 7515, section 2). NULL: no memory. */
static char *base64url(const void *bytes, size_t size) {
        char *text = malloc((size + 2) / 3 * 4 + 1);

        if (!text)
                return NULL;
        EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
        text[strcspn(text, "=")] = '\0';
        for (char *c = text; *c; c++)
                *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
        return text;
}

static char *encode(json_t *value) {
        CLEANUP(freep) char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

        return text ? base64url(text, strlen(text)) : NULL;
}

static int statement(const struct google_account *account, const char *scope, int64_t now_s,
                     char **ret_text) {
        CLEANUP(free_json)
        json_t *head = json_pack("{s:s, s:s, s:s*}", "alg", "RS256", "typ", "JWT", "kid",
                                 account->private_key_id);
        CLEANUP(free_json)
        json_t *claims = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", account->client_email,
                                   "scope", scope, "aud", account->token_url, "iat",
                                   (json_int_t)now_s, "exp", (json_int_t)now_s + GOOGLE_JWT_LIFE_S);
        CLEANUP(freep) char *first = encode(head), *second = encode(claims);

        return first && second && asprintf(ret_text, "%s.%s", first, second) >= 0 ? 0 : -ENOMEM;
}

/* Nobody is asked for the password of a key that has one. */
static int no_password(char *password, int size, int rwflag, void *userdata) {
        (void)password;
        (void)size;
        (void)rwflag;
        (void)userdata;
        return -1;
}

static EVP_PKEY *read_key(const char *pem) {
        BIO *bio = BIO_new_mem_buf(pem, -1);
        EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;

        BIO_free(bio);
        return key;
}

static int sign(EVP_PKEY *key, const char *text, char **ret_signature) {
        CLEANUP(free_digest) EVP_MD_CTX *digest = EVP_MD_CTX_new();
        CLEANUP(freep) unsigned char *signature = NULL;
        size_t size = 0;

        if (!digest)
                return -ENOMEM;
        if (EVP_DigestSignInit(digest, NULL, EVP_sha256(), NULL, key) != 1 ||
            EVP_DigestSign(digest, NULL, &size, (const unsigned char *)text, strlen(text)) != 1)
                return -EINVAL;
        signature = malloc(size);
        if (!signature)
                return -ENOMEM;
        if (EVP_DigestSign(digest, signature, &size, (const unsigned char *)text, strlen(text)) !=
            1)
                return -EINVAL;
        *ret_signature = base64url(signature, size);
        return *ret_signature ? 0 : -ENOMEM;
}

int google_jwt(const struct google_account *account, const char *scope, int64_t now_s,
               char **ret_jwt) {
        CLEANUP(free_key) EVP_PKEY *key = read_key(account->private_key);
        CLEANUP(freep) char *text = NULL, *signature = NULL;
        int r;

        if (!key || !EVP_PKEY_is_a(key, "RSA"))
                return -EINVAL;
        r = statement(account, scope, now_s, &text);
        if (r == 0)
                r = sign(key, text, &signature);
        if (r == 0 && asprintf(ret_jwt, "%s.%s", text, signature) < 0)
                r = -ENOMEM;
        return r;
}
