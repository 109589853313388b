/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of a connection that was opened for a list of them: runs and paths are then given out
 * as NAME/RUN.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/extent_view.h"
#include "common/source_spec.h"

struct source_names;

/* Of a list, whose URLs are brought into their normal form. As source_url_normalize(). */
int source_names_new(const struct source_spec *spec, struct source_names **ret_names);

/* Takes NULL, returns NULL. */
struct source_names *source_names_free(struct source_names *names);

/*
 * Puts the source's name before a run or path: "NAME/a", for the run "." only "NAME". NULL names,
 * and sources without a name, leave it as it is. The result lies in *ret_memory (the caller's to
 * free) or is *name itself. -ENOMEM.
 */
int source_names_join(const struct source_names *names, uint64_t source_id, bool is_run,
                      struct extent_string *name, char **ret_memory);
