/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures of storage in words: what class they are, and a message that names the thing. Messages
 * are printable UTF-8, whatever bytes the names in them have.
 */
#pragma once

#include "daemon/store/store.h"

/* Fills the failure; what does not fit is cut. retry_after_ms is 0. */
void failure_set(struct store_failure *ret_failure, enum store_failure_class class,
                 const char *code, const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * Adds what to do about it: a second line of the message, shown indented. Nothing is added to a
 * message that has no room for all of it.
 */
void failure_advise(struct store_failure *failure, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

void failure_clear(struct store_failure *ret_failure);

/* Of an errno (positive) that a file system gave for the thing. */
void failure_set_errno(struct store_failure *ret_failure, int error, const char *thing);

/* Of an HTTP status that is no success. */
void failure_set_status(struct store_failure *ret_failure, long status, const char *thing);
