/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/row_change.h"

#include <string.h>

static bool row_is_other_version(const struct catalog_file *file, const struct store_row *row) {
        return file->mtime_ns != row->mtime_ns || strcmp(file->tag, row->tag) != 0;
}

/* Stores other than file systems set the times themselves: they only go back in a stale listing. */
static bool row_is_stale(const struct catalog_file *file, const struct store_row *row) {
        return !file->run->source->store->tags_name_files && row->mtime_ns != INT64_MIN &&
               row->mtime_ns < file->mtime_ns;
}

/* In a file system: another inode. */
static bool row_is_swapped(const struct catalog_file *file, const struct store_row *row) {
        return file->run->source->store->tags_name_files && strcmp(file->tag, row->tag) != 0;
}

bool row_change(const struct catalog_file *file, const struct store_row *row,
                enum watch_change *ret_change) {
        if (file->seen_listing == 0 || file->state == CATALOG_GONE)
                *ret_change = WATCH_APPEARED;
        else if (row->size_bytes == UINT64_MAX &&
                 (row->mtime_ns == INT64_MIN || row_is_other_version(file, row)))
                *ret_change = WATCH_MAY_HAVE_GROWN;
        else if (row->size_bytes != UINT64_MAX && row->size_bytes > file->listed_bytes)
                *ret_change = WATCH_GREW;
        else if (file->listed_bytes != UINT64_MAX && row->size_bytes < file->listed_bytes)
                *ret_change = row_is_stale(file, row) ? WATCH_SWAPPED : WATCH_SHRANK;
        else if (row_is_other_version(file, row))
                *ret_change = row_is_swapped(file, row) || row_is_stale(file, row) ? WATCH_SWAPPED
                                                                                   : WATCH_TOUCHED;
        else if (file->is_archived && !row->is_archived)
                *ret_change = WATCH_RESTORED;
        else
                return false;
        /* What has been read was read after that: it may well be what the row is of. */
        if (file->is_remembered && (*ret_change == WATCH_SHRANK || *ret_change == WATCH_TOUCHED))
                *ret_change = WATCH_SWAPPED;
        return true;
}
