/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum is of the whole image, so that what passes it was written by us; what is read behind
 * it is bounded all the same, as whoever can write the file can make a checksum, too.
 */
#include "daemon/discover/manifest.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base.h"
#include "daemon/store/event_name.h"

#define MAGIC "hrknown\n"
#define VERSION 1u
#define FILE_FIXED_BYTES 19u /* of a file before its names */

static_assert(sizeof(struct manifest_header) == 64, "it is a format");

struct image {
        uint8_t *bytes;
        uint64_t size, space;
};

static int image_put(struct image *image, const void *bytes, uint64_t size) {
        if (image->size + size > MANIFEST_MOST_BYTES)
                return -EFBIG;
        if (image->size + size > image->space) {
                uint64_t space = max_u64(2 * image->space, image->size + size + 4096);
                uint8_t *longer = realloc(image->bytes, space);

                if (!longer)
                        return -ENOMEM;
                image->bytes = longer;
                image->space = space;
        }
        memcpy(image->bytes + image->size, bytes, size);
        image->size += size;
        return 0;
}

static bool file_is_kept(const struct catalog_file *file) {
        return !file->excluded && file->state != CATALOG_GONE && file->listed_bytes != UINT64_MAX &&
               file->path.size <= UINT16_MAX;
}

static int put_file(struct image *image, const struct catalog_file *file) {
        uint8_t fixed[FILE_FIXED_BYTES], tag_size = (uint8_t)strlen(file->tag);
        uint16_t path_size = (uint16_t)file->path.size;
        int r;

        memcpy(fixed, &file->listed_bytes, 8);
        memcpy(fixed + 8, &file->mtime_ns, 8);
        memcpy(fixed + 16, &path_size, 2);
        fixed[18] = tag_size;
        r = image_put(image, fixed, sizeof(fixed));
        if (r == 0)
                r = image_put(image, file->path.bytes, path_size);
        return r == 0 ? image_put(image, file->tag, tag_size) : r;
}

static int put_files(struct image *image, const struct catalog_source *source,
                     uint64_t *ret_count) {
        int r = 0;

        *ret_count = 0;
        for (size_t i = 0; i < source->run_count; i++)
                for (size_t k = 0; r == 0 && k < source->runs[i]->file_count; k++) {
                        if (!file_is_kept(source->runs[i]->files[k]))
                                continue;
                        r = put_file(image, source->runs[i]->files[k]);
                        ++*ret_count;
                }
        return r;
}

static int put_bounds(struct image *image, const struct sweep_bounds *bounds, uint32_t *ret_count) {
        int r = 0;

        *ret_count = 0;
        for (size_t i = 0; r == 0 && i < bounds->count; i++) {
                size_t size = strlen(bounds->names[i]);
                uint16_t short_size = (uint16_t)size;

                if (size > UINT16_MAX)
                        continue;
                r = image_put(image, &short_size, sizeof(short_size));
                if (r == 0)
                        r = image_put(image, bounds->names[i], size);
                ++*ret_count;
        }
        return r;
}

int manifest_encode(const struct catalog_source *source, unsigned window,
                    const struct sweep_bounds *bounds, uint8_t **ret_image,
                    uint64_t *ret_size_bytes) {
        const char *url = source->store->url;
        struct manifest_header header = { .magic = MAGIC,
                                          .version = VERSION,
                                          .window = window,
                                          .url_size = (uint32_t)strlen(url) };
        struct image image = { 0 };
        int r = image_put(&image, &header, sizeof(header));

        if (r == 0)
                r = image_put(&image, url, header.url_size);
        if (r == 0)
                r = put_bounds(&image, bounds, &header.bound_count);
        if (r == 0)
                r = put_files(&image, source, &header.file_count);
        if (r < 0) {
                free(image.bytes);
                return r;
        }
        header.size_bytes = image.size;
        memcpy(image.bytes, &header, sizeof(header));
        header.checksum = XXH3_64bits(image.bytes, image.size);
        memcpy(image.bytes, &header, sizeof(header));
        *ret_image = image.bytes;
        *ret_size_bytes = image.size;
        return 0;
}

/* Of the image with 0 where the checksum stands. */
static uint64_t checksum_of(const uint8_t *image, uint64_t size_bytes,
                            const struct manifest_header *header) {
        struct manifest_header blank = *header;
        XXH3_state_t *state = XXH3_createState();
        uint64_t checksum = 0;

        blank.checksum = 0;
        if (!state)
                return ~header->checksum; /* without memory it is as a damaged one */
        XXH3_64bits_reset(state);
        XXH3_64bits_update(state, &blank, sizeof(blank));
        XXH3_64bits_update(state, image + sizeof(blank), size_bytes - sizeof(blank));
        checksum = XXH3_64bits_digest(state);
        XXH3_freeState(state);
        return checksum;
}

int manifest_open(struct manifest *manifest, const uint8_t *image, uint64_t size_bytes,
                  const char *url) {
        struct manifest_header header;

        if (size_bytes < sizeof(header) || size_bytes > MANIFEST_MOST_BYTES)
                return -EBADMSG;
        memcpy(&header, image, sizeof(header));
        if (memcmp(header.magic, MAGIC, sizeof(header.magic)) != 0 || header.version != VERSION ||
            header.size_bytes != size_bytes || header.url_size != strlen(url) ||
            header.url_size > size_bytes - sizeof(header) ||
            memcmp(image + sizeof(header), url, header.url_size) != 0 ||
            checksum_of(image, size_bytes, &header) != header.checksum)
                return -EBADMSG;
        *manifest = (struct manifest){
                .window = header.window,
                .bounds_left = header.bound_count,
                .files_left = header.file_count,
                .at = image + sizeof(header) + header.url_size,
                .end = image + size_bytes,
        };
        return 0;
}

/* So many bytes, or NULL: there are fewer. */
static const uint8_t *take(struct manifest *manifest, uint64_t size) {
        const uint8_t *at = manifest->at;

        if (size > (uint64_t)(manifest->end - at))
                return NULL;
        manifest->at += size;
        return at;
}

int manifest_next_bound(struct manifest *manifest, const char **ret_name, size_t *ret_size) {
        const uint8_t *at;
        uint16_t size;

        if (manifest->bounds_left == 0)
                return 0;
        if (!(at = take(manifest, sizeof(size))))
                return -EBADMSG;
        memcpy(&size, at, sizeof(size));
        if (!(at = take(manifest, size)) || memchr(at, '\0', size))
                return -EBADMSG;
        manifest->bounds_left--;
        *ret_name = (const char *)at;
        *ret_size = size;
        return 1;
}

static bool name_is_right(const char *name, size_t size) {
        return size > 0 && name[0] != '/' && !memchr(name, '\0', size) && event_name_is(name, size);
}

int manifest_next_file(struct manifest *manifest, struct store_row *ret_row) {
        struct store_row row = { 0 };
        const uint8_t *at, *tag;
        uint16_t path_size;

        if (manifest->files_left == 0)
                return 0;
        if (manifest->bounds_left > 0 || !(at = take(manifest, FILE_FIXED_BYTES)))
                return -EBADMSG;
        memcpy(&row.size_bytes, at, 8);
        memcpy(&row.mtime_ns, at + 8, 8);
        memcpy(&path_size, at + 16, 2);
        row.name_size = path_size;
        row.name = (const char *)take(manifest, path_size);
        tag = take(manifest, at[18]);
        if (!row.name || !tag || at[18] >= sizeof(row.tag) || memchr(tag, '\0', at[18]) ||
            !name_is_right(row.name, row.name_size) || row.size_bytes == UINT64_MAX)
                return -EBADMSG;
        memcpy(row.tag, tag, at[18]);
        manifest->files_left--;
        *ret_row = row;
        return 1;
}
