/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A glob and a path of any bytes, a NUL between them. A path that is matched stays so with more
 * below it; a glob that escapes every byte of the path matches it.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/path_glob.h"

static void check_escaped(const char *path, size_t size) {
        char text[PATH_GLOB_BYTES_MOST + 1];
        struct path_glob *glob = NULL;
        size_t used = 0;

        if (size == 0 || size > PATH_GLOB_BYTES_MOST / 2 || path[0] == '/' ||
            path[size - 1] == '/' || memchr(path, '\0', size))
                return;
        for (size_t i = 0; i < size; i++) {
                text[used++] = '\\';
                text[used++] = path[i];
        }
        text[used] = '\0';
        MUST(path_glob_new(text, &glob) == 0);
        MUST(path_glob_matches(glob, path, size));
        path_glob_free(glob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *)data;
        const char *end = memchr(text, '\0', size);
        struct path_glob *glob = NULL;
        const char *path;
        size_t path_size;
        int r;

        if (!end)
                return 0;
        path = end + 1;
        path_size = size - (size_t)(path - text);
        check_escaped(path, path_size);
        r = path_glob_new(text, &glob);
        MUST(r == 0 || r == -EINVAL);
        if (r == 0 && path_size > 0 && path_glob_matches(glob, path, path_size)) {
                CLEANUP(freep) char *below = malloc(path_size + 2);

                MUST(below);
                memcpy(below, path, path_size);
                memcpy(below + path_size, "/x", 2);
                MUST(path_glob_matches(glob, below, path_size + 2));
        }
        path_glob_free(glob);
        return 0;
}
