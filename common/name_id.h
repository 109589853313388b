/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of extents: XXH3-64 of names joined by NUL bytes. An id is a hint; equality is by the
 * names. The URL is that of the source without user, password and query. Names are bytes as they
 * are in storage.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t name_id_source(const char *source_url);
uint64_t name_id_run(const char *source_url, const void *run_name, size_t run_name_size);
uint64_t name_id_file(const char *source_url, const void *path, size_t path_size);
uint64_t name_id_series(const char *source_url, const void *run_name, size_t run_name_size,
                        const void *tag, size_t tag_size);

#define NAME_ID_HEAD_BYTES 24

/*
 * The version of a file: XXH3-64 of its first 24 bytes (fewer are filled up with zeros, more are
 * not looked at), seeded with the number of replacements seen at its path.
 */
uint64_t name_id_file_version(const void *head, size_t head_size, uint64_t replacements);
