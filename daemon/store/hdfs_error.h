/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document that WebHDFS sends with an error. What it means says the exception's name, not the
 * status: 403 is a right that is missing, a wrong user, or an offset behind the end of a file.
 * Source: "WebHDFS REST API", Error Responses.
 */
#pragma once

#include <stddef.h>

#include "daemon/store/store.h"

/* thing: what was asked for, for people. Whatever the body is. */
void hdfs_error_judge(long status, const char *body, size_t size, const char *thing,
                      struct store_failure *ret_failure);
