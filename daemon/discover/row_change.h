/* SPDX-License-Identifier: Apache-2.0 */
/* What a new row of a listing says of a file, compared with the last one. Pure. */
#pragma once

#include <stdbool.h>

#include "daemon/discover/catalog.h"

enum watch_change {
        WATCH_APPEARED,       /* new, or back */
        WATCH_GREW,           /* larger than before */
        WATCH_MAY_HAVE_GROWN, /* the listing does not say sizes */
        WATCH_SHRANK,
        WATCH_TOUCHED, /* the same size, but another version (mtime or tag) */
        /*
         * As large as before, but another file has taken its place (a rename); or smaller or
         * another one, but by a row that is older than the last one (a stale listing): what was
         * read of it may still hold.
         */
        WATCH_SWAPPED,
        WATCH_RESTORED, /* the same, but no longer archived */
};

/*
 * False: nothing. The catalog still has what the last row said. A remembered file is one of which
 * all that was read came after that row.
 */
bool row_change(const struct catalog_file *file, const struct store_row *row,
                enum watch_change *ret_change);
