/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as a whole: everything hangs off struct daemon and lives on one loop. */
#pragma once

#include <stdbool.h>

#include "daemon/core/config.h"

struct daemon_options {
        struct config config; /* borrowed while it runs */
        const char *version;  /* "headraced 0.1.0" */
        bool is_private;      /* for one client, on socket_fd, and ends with it */
        int socket_fd;        /* taken; -1 if it is not private */
};

/*
 * Runs until a signal or the private client ends it. 0; -errno, after the reason has been logged;
 * PRIVATE_SOURCE_REFUSED after the private client has been told why its URL cannot be used.
 */
int daemon_run(const struct daemon_options *options);
