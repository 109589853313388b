/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/sweep_bounds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

void sweep_bounds_deinit(struct sweep_bounds *bounds) {
        for (size_t i = 0; i < bounds->count; i++)
                free(bounds->names[i]);
        free(bounds->names);
        *bounds = (struct sweep_bounds){ 0 };
}

int sweep_bounds_add(struct sweep_bounds *bounds, const char *name) {
        char **longer = bounds->names;

        if ((bounds->count & (bounds->count - 1)) == 0) /* a power of two is full */
                longer = realloc(bounds->names,
                                 2 * (bounds->count ? bounds->count : 1) * sizeof(longer[0]));
        if (!longer)
                return -ENOMEM;
        bounds->names = longer;
        longer[bounds->count] = strdup(name);
        if (!longer[bounds->count])
                return -ENOMEM;
        bounds->count++;
        return 0;
}

static int compare_paths(const void *a, const void *b) {
        const struct catalog_file *const *first = a, *const *second = b;

        return strcmp((*first)->path.bytes, (*second)->path.bytes);
}

/* Runs are sorted by directory, which is not the order of whole names: a-b/x stands before a/x. */
static const struct catalog_file **sorted_files(const struct catalog_source *source) {
        const struct catalog_file **files = calloc(source->file_count + 1, sizeof(files[0]));
        size_t count = 0;

        if (!files)
                return NULL;
        for (size_t i = 0; i < source->run_count; i++)
                for (size_t k = 0; k < source->runs[i]->file_count; k++)
                        files[count++] = source->runs[i]->files[k];
        MUST(count == source->file_count);
        qsort(files, count, sizeof(files[0]), compare_paths);
        return files;
}

int sweep_bounds_set_files(struct sweep_bounds *bounds, const struct catalog_source *source,
                           uint64_t page_rows) {
        CLEANUP(freep) const struct catalog_file **files = sorted_files(source);
        int r = files ? 0 : -ENOMEM;

        sweep_bounds_deinit(bounds);
        bounds->are_files = true;
        for (size_t i = page_rows; r == 0 && i < source->file_count; i += page_rows)
                r = sweep_bounds_add(bounds, files[i - 1]->path.bytes);
        if (r < 0)
                sweep_bounds_deinit(bounds);
        return r;
}

int sweep_bounds_set_directories(struct sweep_bounds *bounds, char *const *directories,
                                 size_t count, size_t parts) {
        int r = 0;

        sweep_bounds_deinit(bounds);
        parts = min_u64(parts, count);
        for (size_t i = 1; r == 0 && i < parts; i++) {
                CLEANUP(freep) char *name = NULL;

                /* What is in the directory is behind this, what stands before it is not. */
                r = asprintf(&name, "%s/", directories[i * count / parts]) < 0
                            ? -ENOMEM
                            : sweep_bounds_add(bounds, name);
        }
        if (r < 0)
                sweep_bounds_deinit(bounds);
        return r;
}
