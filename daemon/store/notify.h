/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hears of changes in local directories by inotify(7): one instance, a budget of watches. What it
 * says is a hint, as the kernel's queue overflows silently and there may be no watches left: listings
 * stay the truth. Loop thread, but for notify_add().
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct notify;

/*
 * Deaf until notify_listen(). watches_most: 0 for half of what the user may have. -errno of
 * inotify_init1(2), -ENOMEM.
 */
int notify_new(uv_loop_t *loop, unsigned watches_most, struct notify **ret_notify);

/*
 * on_change is called from the loop when something changed that may be an event file or a directory;
 * is_deletion: something is gone, or went elsewhere. NULL: not any more; the watches stay.
 */
void notify_listen(struct notify *notify, void (*on_change)(void *userdata, bool is_deletion),
                   void *userdata);

/*
 * Hears of what happens in that directory from now on. Again is no harm. From any thread: the path is
 * looked up, which may wait for the file system.
 */
void notify_add(struct notify *notify, const char *directory);

/* How many directories are heard of. */
unsigned notify_watches(const struct notify *notify);

/* What `status` says: "inotify", or why some directories are not heard of. */
const char *notify_state(const struct notify *notify);

void notify_close(struct notify *notify, void (*on_closed)(void *userdata), void *userdata);
