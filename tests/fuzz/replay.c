/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files and directories of inputs, each in memory of exactly its size, and
 * says how many there were.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/fuzz/fuzz.h"

static unsigned inputs;

static void replay_file(const char *path) {
        CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
        CLEANUP(freep) uint8_t *data = NULL;
        struct stat status;

        MUST(fd >= 0 && fstat(fd, &status) == 0);
        data = malloc(status.st_size > 0 ? (size_t)status.st_size : 1);
        MUST(data && read(fd, data, (size_t)status.st_size) == status.st_size);
        fprintf(stderr, "%s\n", path);
        LLVMFuzzerTestOneInput(data, (size_t)status.st_size);
        inputs++;
}

static void replay(const char *path) {
        DIR *directory = opendir(path);
        struct dirent *entry;

        if (!directory) {
                replay_file(path);
                return;
        }
        while ((entry = readdir(directory))) {
                char *below = NULL;

                if (entry->d_name[0] == '.')
                        continue;
                MUST(asprintf(&below, "%s/%s", path, entry->d_name) > 0);
                replay(below);
                free(below);
        }
        closedir(directory);
}

int main(int argc, char **argv) {
        LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
        for (int i = 1; i < argc; i++)
                replay(argv[i]);
        printf("%u inputs replayed\n", inputs);
        return 0;
}
