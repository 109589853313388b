/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress bar on a terminal's standard error. It listens to the daemon's notifications;
 * without a terminal it does nothing. There is one standard error, so there is one bar.
 */
#pragma once

#include "client/include/headrace.h"

/* Shows the bar from now on. name is borrowed until progress_end(). */
void progress_begin(struct hr_connection *connection, const char *name);

/* Takes the bar away, so that a line can be written; the next notification brings it back. */
void progress_clear(void);

void progress_end(struct hr_connection *connection);

/* True if standard error is a terminal on which colours are wanted. */
bool progress_has_colours(void);
