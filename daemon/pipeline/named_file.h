/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a file with names of its own: for work outside of the loop thread, which must not
 * mind if the file leaves the catalog meanwhile.
 */
#pragma once

#include "daemon/pipeline/block_decode.h"

struct named_file {
        struct block_file file;
        char *url, *run, *path;
};

/* Copies the names. -ENOMEM; then, too, named_file_deinit() is right. */
int named_file_init(struct named_file *named, const struct block_file *file);
void named_file_deinit(struct named_file *named);
