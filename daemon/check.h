/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headraced --check: would the daemon work as it is configured? Looks at storage once, serves
 * nobody.
 */
#pragma once

#include "daemon/core/config.h"

/*
 * Prints what it finds on standard output. 0: all is well; 3: a source cannot be listed, or its URL
 * is wrong. -errno.
 */
int check_run(const struct config *config);
