/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon's socket is. The daemon asks for the one path to listen on, a client for those
 * to try, in order. The rules are those of docs/PROTOCOL.md; they live here so that the two cannot
 * disagree.
 */
#pragma once

#include <stddef.h>

#define SOCKET_PATH_SYSTEM "/run/headrace/headrace.sock"

enum socket_place {
        SOCKET_GIVEN,       /* by --socket: no other is tried */
        SOCKET_ENVIRONMENT, /* by HEADRACE_SOCKET */
        SOCKET_USER,        /* of the own user: whoever could write there is the user */
        SOCKET_SYSTEM,
};

struct socket_path {
        enum socket_place place;
        char *path;
};

#define SOCKET_PATHS_MOST 5

/*
 * The path to listen on: given (may be NULL), else the system's for root, else the runtime
 * directory's, else one below TMPDIR. Except where it is given the directory is made (0700; the
 * system's 0755) and, where other users can write beside it, checked. *ret_path is the caller's to
 * free. -ENAMETOOLONG: does not fit a socket address; -EPERM: the directory is another user's, open
 * to others, or a symbolic link; -ENOMEM; what mkdir(2) says. *ret_directory (may be NULL) is, on
 * these errors too, the directory that was tried, the caller's to free.
 */
int socket_path_listen(const char *given, char **ret_path, char **ret_directory);

/*
 * The paths that a client tries, in order; *ret_count of them in ret_paths[SOCKET_PATHS_MOST].
 * Paths below TMPDIR whose directory is not the user's own are left out. Free with
 * socket_paths_clear(). -ENOMEM.
 */
int socket_path_search(const char *given, struct socket_path *ret_paths, size_t *ret_count);
void socket_paths_clear(struct socket_path *paths, size_t count);
