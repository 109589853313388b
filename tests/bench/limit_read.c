/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bytes alone cost: reads every file below the given directories and adds up its words,
 * and keeps nothing. Prints one JSON object.
 *
 *      limit_read DIRECTORY...
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"

#define BUFFER_BYTES (1u << 20) /* stays in the processor's cache */

static double now_s(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t touch(const uint64_t *words, size_t count) {
        uint64_t sum = 0;

        for (size_t i = 0; i < count; i++)
                sum += words[i];
        return sum;
}

static uint64_t read_file(const char *path, uint64_t *buffer, uint64_t *sum) {
        CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
        uint64_t size = 0;
        ssize_t n;

        MUST(fd >= 0);
        while ((n = read(fd, buffer, BUFFER_BYTES)) > 0) {
                *sum += touch(buffer, (size_t)n / sizeof(*buffer));
                size += (uint64_t)n;
        }
        return size;
}

int main(int argc, char **argv) {
        CLEANUP(freep) uint64_t *buffer = malloc(BUFFER_BYTES);
        uint64_t bytes = 0, files = 0, sum = 0;
        double begin = now_s();
        FTS *tree;
        FTSENT *entry;

        if (argc < 2 || !buffer) {
                fprintf(stderr, "usage: limit_read DIRECTORY...\n");
                return 2;
        }
        tree = fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
        MUST(tree);
        while ((entry = fts_read(tree))) {
                if (entry->fts_info != FTS_F)
                        continue;
                bytes += read_file(entry->fts_accpath, buffer, &sum);
                files++;
        }
        fts_close(tree);
        printf("{\"seconds\": %.4f, \"files\": %" PRIu64 ", \"bytes\": %" PRIu64
               ", \"sum\": %" PRIu64 "}\n",
               now_s() - begin, files, bytes, sum);
        return 0;
}
