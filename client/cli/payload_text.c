/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/payload_text.h"

#include <errno.h>
#include <openssl/evp.h>

#include "client/cli/element_text.h"
#include "client/cli/json_line.h"
#include "common/base.h"
#include "common/tensor_type.h"

#define SHA256_BYTES 32

static void add_string(struct sink *sink, const void *bytes, size_t size) {
        char *out = sink_reserve(sink, json_line_string_most(size));

        if (out)
                sink_commit(sink, json_line_string(out, bytes, size));
}

static void add_key(struct sink *sink, const char *key) {
        char *out = sink_reserve(sink, strlen(key) + 4);

        if (out)
                sink_commit(sink, json_line_key(out, key));
}

static void add_unsigned(struct sink *sink, uint64_t value) {
        char *out = sink_reserve(sink, JSON_LINE_NUMBER_MOST);

        if (out)
                sink_commit(sink, json_line_unsigned(out, value));
}

/* ---- Hashes ---------------------------------------------------------------------------------- */

struct hash {
        EVP_MD_CTX *context;
        bool failed;
};

static void hash_begin(struct hash *hash) {
        hash->context = EVP_MD_CTX_new();
        hash->failed = !hash->context || !EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL);
}

static void hash_update(struct hash *hash, const void *bytes, size_t size) {
        hash->failed = hash->failed || !EVP_DigestUpdate(hash->context, bytes, size);
}

/* Ends the hash and writes it as a member. */
static void hash_add(struct hash *hash, struct sink *sink) {
        uint8_t digest[SHA256_BYTES];
        char *out;

        hash->failed = hash->failed || !EVP_DigestFinal_ex(hash->context, digest, NULL);
        EVP_MD_CTX_free(hash->context);
        if (hash->failed) {
                sink->error = sink->error ? sink->error : -ENOMEM;
                return;
        }
        add_key(sink, "sha256");
        out = sink_reserve(sink, 2 * SHA256_BYTES + 2);
        if (out)
                sink_commit(sink, json_line_hex(out, digest, SHA256_BYTES));
}

static void hash_string(struct hash *hash, struct hr_text string) {
        uint64_t size = string.size;

        hash_update(hash, &size, sizeof(size));
        hash_update(hash, string.bytes, string.size);
}

/* ---- Data ------------------------------------------------------------------------------------ */

static void add_base64(struct sink *sink, struct hr_text bytes) {
        size_t most = (bytes.size + 2) / 3 * 4;
        char *out;

        if (bytes.size > INT32_MAX / 2 || !(out = sink_reserve(sink, most + 3))) {
                sink_add_text(sink, "null");
                return;
        }
        *out++ = '"';
        out += EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)bytes.bytes,
                               (int)bytes.size);
        *out++ = '"';
        sink_commit(sink, out);
}

/* Text where it is UTF-8, else {"base64":...}: nothing is lost. */
static void add_string_element(struct sink *sink, struct hr_text string) {
        if (json_line_is_utf8(string.bytes, string.size)) {
                add_string(sink, string.bytes, string.size);
                return;
        }
        sink_add_text(sink, "{\"base64\":");
        add_base64(sink, string);
        sink_add_text(sink, "}");
}

static void add_element(struct sink *sink, const struct hr_payload *payload, uint32_t index) {
        char *out;

        if (payload->element_bytes == 0) {
                add_string_element(sink, hr_payload_string(payload, index));
                return;
        }
        out = sink_reserve(sink, ELEMENT_TEXT_MOST);
        if (out)
                sink_commit(sink,
                            element_text_put(out, payload->dtype,
                                             (const uint8_t *)payload->elements +
                                                     (uint64_t)index * payload->element_bytes));
}

static void add_data(struct sink *sink, const struct hr_payload *payload) {
        add_key(sink, "data");
        sink_add(sink, "[", 1);
        for (uint32_t i = 0; i < payload->element_count && !sink->error; i++) {
                if (i > 0)
                        sink_add(sink, ",", 1);
                add_element(sink, payload, i);
        }
        sink_add(sink, "]", 1);
}

static void add_hash(struct sink *sink, const struct hr_payload *payload) {
        struct hash hash;

        hash_begin(&hash);
        if (payload->element_bytes) {
                hash_update(&hash, payload->elements, payload->elements_size);
        } else {
                for (uint32_t i = 0; i < payload->element_count; i++)
                        hash_string(&hash, hr_payload_string(payload, i));
        }
        hash_add(&hash, sink);
}

/* ---- Members --------------------------------------------------------------------------------- */

static void add_shape(struct sink *sink, const struct hr_payload *payload) {
        add_key(sink, "shape");
        sink_add(sink, "[", 1);
        for (uint32_t i = 0; i < payload->rank; i++) {
                char *out = sink_reserve(sink, JSON_LINE_NUMBER_MOST + 1);

                if (!out)
                        return;
                if (i > 0)
                        *out++ = ',';
                sink_commit(sink, json_line_signed(out, payload->shape[i]));
        }
        sink_add(sink, "]", 1);
        if (!payload->rank_known)
                sink_add_text(sink, ",\"unknown_rank\":true");
}

/* "value" and "bits", big-endian, of a tensor that is one number. */
static void add_number(struct sink *sink, const struct hr_payload *payload) {
        uint8_t bits[8];
        char *out;

        add_key(sink, "value");
        add_element(sink, payload, 0);
        for (uint32_t i = 0; i < payload->element_bytes; i++)
                bits[i] = ((const uint8_t *)payload->elements)[payload->element_bytes - 1 - i];
        add_key(sink, "bits");
        out = sink_reserve(sink, 2 * sizeof(bits) + 2);
        if (out)
                sink_commit(sink, json_line_hex(out, bits, payload->element_bytes));
}

/* One number of a type that JSON's numbers say well: neither half nor complex. */
static bool is_number(const struct hr_payload *payload) {
        uint8_t type = tensor_type_base(payload->dtype);

        return !payload->malformed && payload->element_count == 1 && tensor_type_is_number(type) &&
               type != DT_BFLOAT16 && type != DT_HALF;
}

void payload_text_tensor(struct sink *sink, const struct hr_record *record,
                         const struct hr_value *value, enum payload_mode mode) {
        const struct hr_payload *payload = &value->payload;
        char text[TENSOR_TYPE_NAME_SIZE];

        tensor_type_name(record->dtype, text);
        add_key(sink, "dtype");
        add_string(sink, text, strlen(text));
        if (!value->has_payload)
                return;
        add_shape(sink, payload);
        if (payload->malformed) {
                sink_add_text(sink, ",\"malformed\":true");
                add_key(sink, "elements");
                add_unsigned(sink, payload->element_count);
        }
        if (mode == PAYLOAD_FULL)
                add_data(sink, payload);
        else if (mode == PAYLOAD_SHA256 && is_number(payload))
                add_number(sink, payload);
        else if (mode == PAYLOAD_SHA256 && !payload->malformed)
                add_hash(sink, payload);
}

static void add_blob(struct sink *sink, struct hr_text blob, enum payload_mode mode) {
        struct hash hash;

        sink_add_text(sink, "{\"bytes\":");
        add_unsigned(sink, blob.size);
        if (mode != PAYLOAD_NONE) {
                hash_begin(&hash);
                hash_update(&hash, blob.bytes, blob.size);
                hash_add(&hash, sink);
        }
        if (mode == PAYLOAD_FULL) {
                add_key(sink, "base64");
                add_base64(sink, blob);
        }
        sink_add(sink, "}", 1);
}

void payload_text_blobs(struct sink *sink, const struct hr_value *value, enum payload_mode mode) {
        if (!value->has_payload)
                return;
        add_key(sink, "blobs");
        sink_add(sink, "[", 1);
        for (uint32_t i = 0; i < value->blob_count && !sink->error; i++) {
                if (i > 0)
                        sink_add(sink, ",", 1);
                add_blob(sink, hr_value_blob(value, i), mode);
        }
        sink_add(sink, "]", 1);
}
