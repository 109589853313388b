/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headraced --check: would the daemon work as it is configured? Looks at storage once, serves
 * nobody.
 */
#pragma once

#include "daemon/core/config.h"

/*
 * Prints what it finds on standard output. 0: all is well; 1: some directories cannot be read; 3: it
 * would not work: a source cannot be listed, the socket's directory cannot be written to, the machine
 * has too little memory. -errno.
 */
int check_run(const struct config *config);
