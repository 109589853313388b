/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials on a loop of their own, with the fault server over a directory of files as all servers
 * that they ask. Everything here asserts that it works.
 */
#pragma once

#include <uv.h>

#include "daemon/store/credentials.h"
#include "tests/unit/daemon/store/fault_server.h"

struct credentials_harness {
        struct fault_server server;
        uv_loop_t loop;
        struct credentials *credentials; /* the test makes them */
        struct store_failure outcome;    /* of the last wait */
        bool is_done;
};

void credentials_harness_begin(struct credentials_harness *harness);

/* Closes the credentials, if there are any, and asserts that nothing is left on the loop. */
void credentials_harness_end(struct credentials_harness *harness);

/* Waits for a value. NULL: there is none, outcome says why. */
const struct credentials_value *credentials_harness_wait(struct credentials_harness *harness);

/* Waits for so many turns of the loop, and not any longer. */
void credentials_harness_give_up(struct credentials_harness *harness, unsigned turns);

/* A file below the server's root, directories on the way, too. */
void credentials_harness_write(struct credentials_harness *harness, const char *name,
                               const char *text);
