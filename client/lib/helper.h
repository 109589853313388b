/* SPDX-License-Identifier: Apache-2.0 */
/* The private daemon: a headraced that serves one socket, and ends when that closes. */
#pragma once

#include <sys/types.h>

/*
 * Finds headraced (given, HEADRACE_DAEMON, beside this program, where this library was installed,
 * PATH) and starts it for the URL on its end of a socket pair. arguments (may be NULL) are more of
 * them, NULL at the end. *ret_program is what was started, the caller's to free; set where starting failed,
 * too. -errno of socketpair(2) and posix_spawn(3).
 */
int helper_start(const char *given, const char *url, const char *const *arguments, int *ret_fd,
                 pid_t *ret_pid, char **ret_program);

/*
 * Its socket is closed: waits until it has ended, and ends it by force where that takes too long.
 * Returns its exit status; -1: a signal ended it.
 */
int helper_end(pid_t pid);
