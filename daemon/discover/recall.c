/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/recall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/core/log.h"
#include "daemon/discover/manifest_file.h"

#define WRITE_MS 60000u
#define WINDOW_MOST 1024u

int recall_init(struct recall *recall, const char *directory) {
        *recall = (struct recall){ 0 };
        if (directory && !(recall->directory = strdup(directory)))
                return -ENOMEM;
        return 0;
}

void recall_deinit(struct recall *recall) {
        free(recall->directory);
        free(recall->image);
        *recall = (struct recall){ 0 };
}

static void complain(struct recall *recall, const struct catalog_source *source, const char *what,
                     int error) {
        if (recall->has_complained)
                return;
        recall->has_complained = true;
        log_warning(what, "source=%s directory=%s reason=%s", source->store->url, recall->directory,
                    error == -EBADMSG ? "damaged, or of another version or source"
                                      : strerror(-error));
}

static void forget(struct recall *recall) {
        free(recall->image);
        recall->image = NULL;
}

static int read_bounds(struct manifest *manifest, struct sweep_bounds *bounds) {
        const char *name;
        size_t size;
        int r;

        while ((r = manifest_next_bound(manifest, &name, &size)) > 0) {
                CLEANUP(freep) char *copy = strndup(name, size);

                r = copy ? sweep_bounds_add(bounds, copy) : -ENOMEM;
                if (r < 0)
                        break;
        }
        if (r < 0)
                sweep_bounds_deinit(bounds);
        return r;
}

void recall_read(struct recall *recall, const struct catalog_source *source,
                 struct sweep_bounds *bounds) {
        uint64_t size_bytes;
        int r;

        if (!recall->directory)
                return;
        r = manifest_file_read(recall->directory, source->id, &recall->image, &size_bytes);
        if (r == 0)
                r = manifest_open(&recall->manifest, recall->image, size_bytes, source->store->url);
        if (r == 0)
                r = read_bounds(&recall->manifest, bounds);
        if (r < 0) {
                forget(recall);
                if (r != -ENOENT)
                        complain(recall, source, "cannot read what is remembered of a source", r);
                return;
        }
        if (recall->manifest.window > 0)
                source->store->window_start = (unsigned)min_u64(recall->manifest.window,
                                                                WINDOW_MOST);
}

void recall_give(struct recall *recall, const struct catalog_source *source,
                 void (*on_row)(void *userdata, const struct store_row *row), void *userdata) {
        struct store_row row;
        int r = 0;

        while (recall->image && (r = manifest_next_file(&recall->manifest, &row)) > 0)
                on_row(userdata, &row);
        if (r < 0)
                complain(recall, source, "cannot read what is remembered of a source", r);
        forget(recall);
}

void recall_note(struct recall *recall, bool is_new) {
        recall->is_new |= is_new;
        recall->is_other = true;
}

void recall_write(struct recall *recall, const struct catalog_source *source, unsigned window,
                  const struct sweep_bounds *bounds, bool is_end) {
        bool is_due = recall->is_new ||
                      (recall->is_other && (is_end || recall->since_ms >= WRITE_MS));
        CLEANUP(freep) uint8_t *image = NULL;
        uint64_t size_bytes;
        int r;

        if (!recall->directory || !is_due)
                return;
        r = manifest_encode(source, window, bounds, &image, &size_bytes);
        if (r == 0)
                r = manifest_file_write(recall->directory, source->id, image, size_bytes);
        if (r < 0)
                complain(recall, source, "cannot remember a source", r);
        recall->is_new = recall->is_other = false;
        recall->since_ms = 0;
}
