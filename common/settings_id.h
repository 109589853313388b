/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which storage a process would reach: a hash of the environment variables that credentials,
 * endpoints, proxies and certificates come from. A client uses its own user's daemon only where
 * both have the same, or it would read with other rights.
 */
#pragma once

#include <stdint.h>

/*
 * XXH3-64 of the "NAME=value" of those variables that are set, sorted and joined by NUL.
 * environment is as environ(7); the first of a doubled name counts, as it does for getenv(3).
 * -ENOMEM.
 */
int settings_id_compute(char *const *environment, uint64_t *ret_id);
