/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/unread.h"

#include <errno.h>

#include "daemon/pipeline/reader_state.h"

static void settle_empty(struct pipeline *pipeline, struct catalog_file *file) {
        list_remove(&file->unread);
        catalog_set_state(file, CATALOG_EMPTY, true);
        PIPELINE_TELL(pipeline, progress, file->run->source);
}

int unread_listed(struct pipeline *pipeline, struct catalog_file *file) {
        struct feed *feed;

        if (readers_want_run(pipeline, file->run))
                return unread_wake(pipeline, file, &feed);
        if (file->listed_bytes == 0) {
                settle_empty(pipeline, file);
                return 0;
        }
        catalog_set_state(file, CATALOG_QUEUED, false);
        if (!list_is_linked(&file->unread))
                list_append(&pipeline->unread, &file->unread);
        pipeline_touch(pipeline);
        return 0;
}

int unread_wake(struct pipeline *pipeline, struct catalog_file *file, struct feed **ret_feed) {
        int r;

        *ret_feed = file->blocks;
        if (file->blocks || file->excluded)
                return 0;
        r = feed_new(pipeline, file, ret_feed);
        if (r < 0)
                return r;
        list_remove(&file->unread);
        feed_changed(*ret_feed, WATCH_APPEARED);
        return 0;
}

void unread_gone(struct pipeline *pipeline, struct catalog_file *file) {
        if (file->run->file_count == 1 && !file->excluded)
                PIPELINE_TELL(pipeline, run_gone, file->run);
        catalog_remove_file(file);
}
