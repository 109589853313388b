/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of a source are left out: by globs on their paths (common/path_glob.h) and by when
 * they were modified last (common/since.h). Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/config.h"

struct filter;

/*
 * Of the options (NULL: none are there); *ret_filter is NULL where they leave nothing out. now_ns
 * (since 1970) is what a `since` like "7d" is reckoned from, once. -EINVAL, -ENOMEM.
 */
int filter_new(const struct config_filter *options, int64_t now_ns, struct filter **ret_filter);

/* Takes NULL, returns NULL. */
struct filter *filter_free(struct filter *filter);

/*
 * Why a file is left out: "exclude old", "include", "since 7d", borrowed from the filter. NULL: it
 * is not; a NULL filter leaves nothing out. A file whose time is not known (mtime_ns INT64_MIN) is
 * not too old.
 */
const char *filter_excludes(const struct filter *filter, const char *path, size_t size,
                            int64_t mtime_ns);
