/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that leaves while the daemon runs: requests and readers hear of it at once, its files are
 * gone, and when no decoder has anything of them any more its store is closed. Loop thread.
 */
#pragma once

#include "daemon/pipeline/pipeline_state.h"

/* A file of a removed source has left the catalog: it may have been the last. */
void source_removal_look(struct catalog_source *source);

/* The pipeline closes, its decoders have: what is still being removed goes with it. */
void source_removal_end_all(struct pipeline *pipeline);

/* True while a source with that URL is being removed: its ids are still in use. */
bool source_removal_has(const struct pipeline *pipeline, const char *url);
