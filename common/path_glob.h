/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Globs for paths, as `include` and `exclude` have them. A path is relative, its components are
 * separated by '/', and both may be any bytes. The work for one path is bounded by its length times
 * the length of the glob, whatever the two are. Pure.
 *
 *   ?      one byte, but no '/'
 *   *      any bytes without a '/', also none
 *   **     any bytes; as a whole component of the glob: any directories, also none
 *   [a-z]  one byte of the set, but no '/'; [!a-z] and [^a-z]: one that is not in the set
 *   \x     x itself
 *
 * A glob that matches a directory covers all that lies below it. Slashes at its ends do not count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PATH_GLOB_BYTES_MOST 1024u

struct path_glob;

/*
 * -EINVAL: it is empty, longer than PATH_GLOB_BYTES_MOST, has a '[' without its ']' or a '\' at its
 * end; -ENOMEM.
 */
int path_glob_new(const char *text, struct path_glob **ret_glob);

/* Takes NULL, returns NULL. */
struct path_glob *path_glob_free(struct path_glob *glob);

/* Does the glob match the path, or a directory above it? */
bool path_glob_matches(const struct path_glob *glob, const char *path, size_t size);
