/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of which nothing has been asked for yet, and that no reader and no request wants: they are
 * known by their row in the catalog alone, and there may be a million of them. One that is wanted, or
 * whose turn comes, gets a feed, and keeps it. Loop thread.
 */
#pragma once

#include "daemon/pipeline/feed.h"

/* A listing has its row, and it has no feed. -ENOMEM. */
int unread_listed(struct pipeline *pipeline, struct catalog_file *file);

/* Its feed, which is made if it has none, or NULL if a filter leaves it out. -ENOMEM. */
int unread_wake(struct pipeline *pipeline, struct catalog_file *file, struct feed **ret_feed);

/* A file without a feed leaves the catalog. */
void unread_gone(struct pipeline *pipeline, struct catalog_file *file);
