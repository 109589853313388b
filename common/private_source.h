/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a client tells its private daemon what to load: in the environment, as the URL may hold a
 * password.
 */
#pragma once

#define PRIVATE_SOURCE_VARIABLE "HEADRACE_PRIVATE_SOURCE"

/*
 * Exit status of a private daemon that cannot use the URL; it has told its client why, in an error
 * frame.
 */
#define PRIVATE_SOURCE_REFUSED 3
