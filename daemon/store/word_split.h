/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a command line into words as a POSIX shell does, quotes and backslashes included, without
 * anything else that a shell does.
 */
#pragma once

/*
 * *ret_words is NULL-terminated, one block of memory, the caller's to free. -EINVAL: a quote is not
 * closed, or there is no word; -ENOMEM.
 */
int word_split(const char *line, char ***ret_words);
