/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of a source from one run of the daemon to the next, as bytes: the event files
 * of its last listing, where that was split, and how many requests its endpoint took at once. Only
 * to begin sooner: the next listing decides. Pure.
 *
 * An image is a header, the source's URL, the bounds and the files, little-endian, without padding:
 *
 *     header   64 bytes, struct manifest_header
 *     URL      url_size bytes
 *     bound    u16 size, bytes                                                  bound_count times
 *     file     u64 size_bytes, i64 mtime_ns, u16 path size, u8 tag size, path, tag   file_count times
 *
 * It is binary, and not JSON, because a hundred thousand rows are then read in milliseconds, with
 * no more memory than the image.
 */
#pragma once

#include <stdint.h>

#include "daemon/discover/catalog.h"
#include "daemon/discover/sweep_bounds.h"

#define MANIFEST_MOST_BYTES (256u << 20)

struct manifest_header {
        char magic[8];       /* "hrknown\n" */
        uint32_t version;    /* 1 */
        uint32_t window;     /* requests at once; 0: not known */
        uint64_t checksum;   /* XXH3 of the whole image with this as 0 */
        uint64_t size_bytes; /* of the image */
        uint64_t file_count;
        uint32_t url_size, bound_count;
        uint64_t reserved[2]; /* 0 */
};

/*
 * The source's files as an image; the caller frees it. Left out are files that a filter leaves out,
 * that are gone, or whose size is not listed. -ENOMEM, -EFBIG (more than MANIFEST_MOST_BYTES).
 */
int manifest_encode(const struct catalog_source *source, unsigned window,
                    const struct sweep_bounds *bounds, uint8_t **ret_image,
                    uint64_t *ret_size_bytes);

/* An image that is read; it borrows the bytes. */
struct manifest {
        unsigned window;
        uint64_t bounds_left, files_left;
        const uint8_t *at, *end;
};

/* -EBADMSG: it is damaged, of another version, or of another source. */
int manifest_open(struct manifest *manifest, const uint8_t *image, uint64_t size_bytes,
                  const char *url);

/*
 * The next bound; all of them come before the files. 1: there is one, *ret_name is borrowed and not
 * terminated. 0: no more. -EBADMSG.
 */
int manifest_next_bound(struct manifest *manifest, const char **ret_name, size_t *ret_size);

/* The next file. 1: *ret_row is filled, its name borrowed and not terminated; 0: no more; -EBADMSG. */
int manifest_next_file(struct manifest *manifest, struct store_row *ret_row);
