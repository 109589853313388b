/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are written once and then read once, from the start: in memory up to a limit, what is
 * beyond it in a temporary file without a name, in TMPDIR or else /var/tmp or /tmp.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cli/sink.h"

struct spool {
        char *memory;
        size_t size, space, limit; /* of the memory */
        size_t at;                 /* read so far, of the memory */
        struct sink file;          /* fd -1: not needed so far */
        uint64_t file_size, file_at;
        char *buffer; /* of what was read ahead of the file */
        size_t buffer_size, buffer_at;
};

/* limit: bytes of memory at most. */
void spool_init(struct spool *spool, size_t limit);
void spool_deinit(struct spool *spool);

/* -ENOMEM, or what open(2) and write(2) say of the file (-ENOSPC). */
int spool_append(struct spool *spool, const void *bytes, size_t size);

/* Begins to read. -errno: the file's last bytes could not be written. */
int spool_rewind(struct spool *spool);

/* The next bytes, all of them: -EIO if there are fewer. */
int spool_read(struct spool *spool, void *ret_bytes, size_t size);
int spool_skip(struct spool *spool, size_t size);

bool spool_is_at_end(const struct spool *spool);

/* Forgets all bytes; for the next ones. -errno of ftruncate(2). */
int spool_clear(struct spool *spool);
