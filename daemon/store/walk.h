/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over a directory tree on the threads of a pool: directories are read in parallel, and so
 * are the stats of a large one. Symbolic links are followed; a directory that stands on its own
 * path already (by device and inode) is left out. Only regular files whose names say that they are
 * event files are reported; nothing but directories is ever opened.
 */
#pragma once

#include "daemon/store/mount.h"
#include "daemon/store/notify.h"
#include "daemon/store/store.h"
#include "daemon/store/work_pool.h"

struct walk;

/*
 * Walks everything under root, or root itself if it is an event file. The callbacks are those of
 * store_operations.list(). The walk is freed after its last callback or by walk_cancel(), but for
 * what threads still have in hands. on_released is called when no thread has, after everything
 * else; the pool must live until then, and so must notify (NULL: nobody listens), which gets each
 * directory before it is read, if the file system is a local one.
 */
int walk_start(struct work_pool *pool, struct notify *notify, const char *root,
               const struct store_list_callbacks *callbacks, void *userdata,
               void (*on_released)(void *owner), void *owner, struct walk **ret_walk);

void walk_cancel(struct walk *walk);

/* Ends a walk with on_done and this failure: the file system does not answer. */
void walk_fail(struct walk *walk, const struct store_failure *failure);

/* What the root is on; NULL while that is not known, or the root is a file. */
const struct mount *walk_mount(const struct walk *walk);

/* Grows with every piece of work that the file system has answered. */
uint64_t walk_progress(const struct walk *walk);
