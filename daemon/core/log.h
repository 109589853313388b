/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line for each event on standard error, `LEVEL what happened key=value ...`. Only the
 * layer that handles an error logs it, once. The level is set at start, before any thread exists;
 * lines of several threads do not mix.
 */
#pragma once

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);

/* what is a sentence for people; format and what follows are `key=value` pairs (may be ""). */
void log_error(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_warning(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_info(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_debug(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
