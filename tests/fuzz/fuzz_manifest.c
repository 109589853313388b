/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image of any bytes. As its header would keep nearly all of them out, what it must have there is
 * put right first, the checksum as well; the counts stay what they are. All that is read lies within
 * the image.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base.h"
#include "daemon/discover/manifest.h"

#define URL "s3://b/p"

static void check_within(const uint8_t *image, size_t size, const void *at, size_t at_size) {
        MUST((const uint8_t *)at >= image && (const uint8_t *)at + at_size <= image + size);
}

static void read_all(const uint8_t *image, size_t size) {
        struct manifest manifest;
        struct store_row row;
        const char *name;
        size_t name_size;
        uint64_t rows = 0;

        if (manifest_open(&manifest, image, size, URL) < 0)
                return;
        while (manifest_next_bound(&manifest, &name, &name_size) > 0)
                check_within(image, size, name, name_size);
        while (manifest_next_file(&manifest, &row) > 0) {
                check_within(image, size, row.name, row.name_size);
                MUST(row.name_size > 0 && memchr(row.tag, '\0', sizeof(row.tag)));
                MUST(++rows <= size);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct manifest_header header;
        uint8_t *image;

        read_all(data, size);
        if (size < sizeof(header) + strlen(URL))
                return 0;
        image = malloc(size);
        MUST(image);
        memcpy(image, data, size);
        memcpy(&header, data, sizeof(header));
        memcpy(header.magic, "hrknown\n", sizeof(header.magic));
        header.version = 1;
        header.size_bytes = size;
        header.url_size = strlen(URL);
        header.checksum = 0;
        memcpy(image + sizeof(header), URL, strlen(URL));
        memcpy(image, &header, sizeof(header));
        header.checksum = XXH3_64bits(image, size);
        memcpy(image, &header, sizeof(header));
        read_all(image, size);
        free(image);
        return 0;
}
