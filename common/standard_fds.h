/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input, output and error of a program that was started without some of them. */
#pragma once

/*
 * Opens those of the descriptors 0, 1 and 2 that are closed, so that no other file takes their
 * place, and what is printed does not land in it. Reading from 0 and writing to 1 and 2 stay the
 * errors that they were (EBADF). The first thing that main() does. -errno of open(2).
 */
int standard_fds_fill(void);
