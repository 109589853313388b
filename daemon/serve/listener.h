/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket that clients connect to. A lock file beside it (PATH.lock), held for life, decides who
 * owns the path: a second daemon is refused, and what a dead one left behind is taken over. The
 * socket appears by a rename, complete and with its mode; at the end only our own is removed. Loop
 * thread.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct listener;

/* Positive outcome of listener_new(): a running daemon has that path. */
#define LISTENER_E_RUNNING 1

/*
 * Listens on path. on_connection gets each accepted socket (non-blocking, close-on-exec), which it
 * takes, with its peer. *ret_error is a sentence for people, the caller's to free, on
 * LISTENER_E_RUNNING and on -errno (NULL: no memory).
 */
int listener_new(uv_loop_t *loop, const char *path,
                 void (*on_connection)(void *userdata, int take_fd, uid_t uid, pid_t pid),
                 void *userdata, struct listener **ret_listener, char **ret_error);

/*
 * Stops, removes the socket and gives the lock back. NULL is taken: on_closed is called all the
 * same, from the loop or at once.
 */
void listener_close(struct listener *listener, void (*on_closed)(void *userdata), void *userdata);
