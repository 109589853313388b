/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many descriptors the process may spend on connections.
 */
#pragma once

/*
 * Raises the soft limit to the hard one (once is enough) and returns what is left for connections:
 * the limit less 64, at least 8.
 */
unsigned fd_limit_for_connections(void);
