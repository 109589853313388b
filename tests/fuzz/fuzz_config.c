/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a configuration file, and as an option. What is refused must have a reason in words.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/core/config.h"

static void load_file(struct config *config, const uint8_t *data, size_t size) {
        CLEANUP(close_fdp) int fd = memfd_create("fuzz", MFD_CLOEXEC);
        CLEANUP(freep) char *error = NULL;
        char path[64];

        MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (config_load_file(config, path, &error) < 0)
                MUST(error && strstr(error, path));
}

static void set_option(struct config *config, const uint8_t *data, size_t size) {
        CLEANUP(freep) char *text = calloc(1, size + 1);
        CLEANUP(freep) char *error = NULL;

        MUST(text);
        memcpy(text, data, size);
        if (config_set_assignment(config, "--set", text, &error) < 0)
                MUST(error && strstr(error, "--set"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(config_deinit) struct config config;

        config_init(&config);
        load_file(&config, data, size);
        set_option(&config, data, size);
        load_file(&config, data, size);
        return 0;
}
