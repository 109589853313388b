/* SPDX-License-Identifier: Apache-2.0 */
/* Where the images of manifest.h are kept: one file for each source. Loop thread. */
#pragma once

#include <stdint.h>

/*
 * The directory where nothing is configured: $STATE_DIRECTORY (of a unit), else
 * $XDG_CACHE_HOME/headrace, else $HOME/.cache/headrace. NULL: there is none, or no memory. The
 * caller frees it.
 */
char *manifest_file_directory(void);

/*
 * Reads the image of the source with that id; the caller frees it. -ENOENT: there is none; -EPERM:
 * it is another user's, or no regular file; -EFBIG; -ENOMEM; what open(2) and read(2) say.
 */
int manifest_file_read(const char *directory, uint64_t source_id, uint8_t **ret_image,
                       uint64_t *ret_size_bytes);

/*
 * Writes it in one step: whoever reads sees the old one or the new one. The directory is made (mode
 * 0700), and its parent. What mkdir(2), open(2), write(2) and rename(2) say; -ENOMEM.
 */
int manifest_file_write(const char *directory, uint64_t source_id, const uint8_t *image,
                        uint64_t size_bytes);
