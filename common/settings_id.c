/* SPDX-License-Identifier: Apache-2.0 */
#include "common/settings_id.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "common/base.h"

/* What decides where bytes come from and with which rights. A trailing '*' stands for any rest. */
static const char *const names[] = {
        "AWS_*",
        "S3_*",
        "AZURE_*",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "STORAGE_EMULATOR_HOST",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "CURL_CA_BUNDLE",
        "SSL_CERT_FILE",
};

static bool is_storage_setting(const char *variable) {
        size_t size = strcspn(variable, "=");

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                size_t name_size = strlen(names[i]);

                if (names[i][name_size - 1] == '*') {
                        if (size >= name_size && strncmp(variable, names[i], name_size - 1) == 0)
                                return true;
                } else if (size == name_size && memcmp(variable, names[i], size) == 0) {
                        return true;
                }
        }
        return false;
}

static int compare_names(const void *a, const void *b) {
        const char *left = *(char *const *)a, *right = *(char *const *)b;
        size_t left_size = strcspn(left, "="), right_size = strcspn(right, "=");
        int order = memcmp(left, right, min_u64(left_size, right_size));

        return order ? order : (left_size > right_size) - (left_size < right_size);
}

static bool same_name(const char *a, const char *b) {
        return compare_names(&a, &b) == 0;
}

static bool stands_before(char *const *settings, size_t count, const char *variable) {
        for (size_t i = 0; i < count; i++) {
                if (same_name(settings[i], variable))
                        return true;
        }
        return false;
}

static uint64_t hash_joined(char *const *settings, size_t count) {
        XXH3_state_t *state = XXH3_createState();
        uint64_t id;

        if (!state)
                return 0;
        XXH3_64bits_reset(state);
        for (size_t i = 0; i < count; i++) {
                if (i > 0)
                        XXH3_64bits_update(state, "", 1);
                XXH3_64bits_update(state, settings[i], strlen(settings[i]));
        }
        id = XXH3_64bits_digest(state);
        XXH3_freeState(state);
        return id;
}

int settings_id_compute(char *const *environment, uint64_t *ret_id) {
        CLEANUP(freep) char **settings = NULL;
        size_t count = 0, space = 0;

        while (environment[space])
                space++;
        settings = calloc(space + 1, sizeof(*settings));
        if (!settings)
                return -ENOMEM;
        for (size_t i = 0; i < space; i++) {
                if (is_storage_setting(environment[i]) &&
                    !stands_before(settings, count, environment[i]))
                        settings[count++] = environment[i];
        }
        qsort(settings, count, sizeof(*settings), compare_names);
        *ret_id = hash_joined(settings, count);
        return 0;
}
