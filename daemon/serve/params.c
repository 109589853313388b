/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/params.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "common/base.h"
#include "daemon/serve/name.h"

/* The member, or NULL if it is absent or null. */
static const json_t *get(const struct rpc_call *call, const char *key) {
        const json_t *value = json_object_get(call->params, key);

        return json_is_null(value) ? NULL : value;
}

int params_string(struct rpc_call *call, const char *key, const char **ret_string) {
        const json_t *value = get(call, key);

        if (!value)
                return 0;
        if (!json_is_string(value))
                return rpc_fail(call, WIRE_E_PARAMS, "%s must be a string", key);
        *ret_string = json_string_value(value);
        return 0;
}

int params_bool(struct rpc_call *call, const char *key, bool *ret_bool) {
        const json_t *value = get(call, key);

        if (!value)
                return 0;
        if (!json_is_boolean(value))
                return rpc_fail(call, WIRE_E_PARAMS, "%s must be true or false", key);
        *ret_bool = json_is_true(value);
        return 0;
}

int params_u64(struct rpc_call *call, const char *key, uint64_t most, uint64_t *ret_number) {
        const json_t *value = get(call, key);
        json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

        if (number < 0 || (uint64_t)number > most)
                return rpc_fail(call, WIRE_E_PARAMS, "%s must be an integer from 0 to %llu", key,
                                (unsigned long long)most);
        *ret_number = (uint64_t)number;
        return 0;
}

bool params_parse_id(const json_t *value, uint64_t *ret_id) {
        const char *text = json_string_value(value);

        if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdefABCDEF") != 16)
                return false;
        *ret_id = strtoull(text, NULL, 16);
        return true;
}

int params_id(struct rpc_call *call, const char *key, uint64_t *ret_id) {
        if (!params_parse_id(get(call, key), ret_id))
                return rpc_fail(call, WIRE_E_PARAMS, "%s must be a string of 16 hex digits", key);
        return 0;
}

void params_globs_deinit(struct params_globs *globs) {
        for (size_t i = 0; i < globs->count; i++)
                free(globs->globs[i]);
        free(globs->globs);
        *globs = (struct params_globs){ 0 };
}

/* The glob's bytes, or NULL: no string, no right hex, a NUL in it, or no memory. */
static char *glob_dup(const json_t *value, bool hex) {
        const char *text = json_string_value(value);
        size_t size;
        char *glob;

        if (!text)
                return NULL;
        if (!hex)
                return strdup(text);
        glob = name_from_hex(text, json_string_length(value), &size);
        if (glob && memchr(glob, 0, size)) {
                free(glob);
                return NULL;
        }
        return glob;
}

static int globs_add(struct rpc_call *call, const char *key, const json_t *value, bool hex,
                     struct params_globs *globs) {
        size_t more = json_is_array(value) ? json_array_size(value) : 1;
        char **grown;

        if (more > PARAMS_GLOBS_MOST - globs->count)
                return rpc_fail(call, WIRE_E_LIMIT, "%s: more than %d globs", key,
                                PARAMS_GLOBS_MOST);
        grown = realloc(globs->globs, (globs->count + more + 1) * sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        globs->globs = grown;
        for (size_t i = 0; i < more; i++) {
                char *glob = glob_dup(json_is_array(value) ? json_array_get(value, i) : value, hex);

                if (!glob)
                        return rpc_fail(call, WIRE_E_PARAMS,
                                        "%s must be a string%s or a list of them", key,
                                        hex ? " of hex digits" : "");
                globs->globs[globs->count++] = glob;
        }
        return 0;
}

int params_globs(struct rpc_call *call, const char *key, struct params_globs *ret_globs) {
        char hex_key[64];
        const json_t *plain, *hex;
        int r = 0;

        *ret_globs = (struct params_globs){ 0 };
        snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
        plain = get(call, key);
        hex = get(call, hex_key);
        if (plain)
                r = globs_add(call, key, plain, false, ret_globs);
        if (!r && hex)
                r = globs_add(call, hex_key, hex, true, ret_globs);
        return r;
}

bool params_globs_match(const struct params_globs *globs, const char *name) {
        for (size_t i = 0; i < globs->count; i++) {
                if (fnmatch(globs->globs[i], name, 0) == 0)
                        return true;
        }
        return globs->count == 0;
}
