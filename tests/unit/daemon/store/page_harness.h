/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of listings, parsed in pieces as they arrive, and what they gave as text. */
#pragma once

#include "daemon/store/object_store.h"

/* Of the last page, a line for each row: "key|size|mtime in ms or -1|tag[|archived|directory]", or "prefix/". */
extern char page_given[16384];
extern char *page_token; /* NULL: it was the last page */

extern const struct object_page_events page_events;

/* With the dialect's functions of pages. What they give, or 0. */
int page_parse(const struct object_dialect *dialect, const char *text, size_t size, size_t piece);
