/* SPDX-License-Identifier: Apache-2.0 */
#define XXH_STATIC_LINKING_ONLY /* the streaming state on the stack */
#include "common/name_id.h"

#include <string.h>
#include <xxhash.h>

static void join(XXH3_state_t *state, const void *name, size_t size) {
        static const char separator = 0;

        XXH3_64bits_update(state, &separator, 1);
        XXH3_64bits_update(state, name, size);
}

static void begin(XXH3_state_t *state, const char *source_url) {
        XXH3_INITSTATE(state);
        XXH3_64bits_reset(state);
        XXH3_64bits_update(state, source_url, strlen(source_url));
}

uint64_t name_id_source(const char *source_url) {
        return XXH3_64bits(source_url, strlen(source_url));
}

uint64_t name_id_run(const char *source_url, const void *run_name, size_t run_name_size) {
        XXH3_state_t state;

        begin(&state, source_url);
        join(&state, run_name, run_name_size);
        return XXH3_64bits_digest(&state);
}

uint64_t name_id_file(const char *source_url, const void *path, size_t path_size) {
        return name_id_run(source_url, path, path_size);
}

uint64_t name_id_series(const char *source_url, const void *run_name, size_t run_name_size,
                        const void *tag, size_t tag_size) {
        XXH3_state_t state;

        begin(&state, source_url);
        join(&state, run_name, run_name_size);
        join(&state, tag, tag_size);
        return XXH3_64bits_digest(&state);
}

uint64_t name_id_file_version(const void *head, size_t head_size, uint64_t replacements) {
        uint8_t filled[NAME_ID_HEAD_BYTES] = { 0 };

        memcpy(filled, head, head_size < sizeof(filled) ? head_size : sizeof(filled));
        return XXH3_64bits_withSeed(filled, sizeof(filled), replacements);
}
