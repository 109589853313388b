/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/PROTOCOL.md says of sources, runs, files and series, as JSON. Objects are the caller's;
 * NULL: no memory.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "daemon/pipeline/pipeline.h"

struct catalog_totals {
        uint64_t size_bytes, loaded_bytes, records, damaged;
        uint64_t damaged_by[DAMAGE_COUNT];
        uint64_t failed;   /* files that are settled because they cannot be read, but for those */
        uint64_t archived; /* that somebody must bring back first */
        uint64_t runs, files, settled; /* without those that filters leave out */
};

/* Adds up the source's files. */
struct catalog_totals catalog_json_totals(const struct catalog_source *source);

/* A row of `sources`. */
json_t *catalog_json_source(const struct catalog_source *source);

/* The parameters of `progress`. */
json_t *catalog_json_progress(const struct catalog_source *source);

json_t *catalog_json_run(const struct catalog_run *run);
json_t *catalog_json_file(const struct catalog_file *file);
json_t *catalog_json_series(const struct catalog_series *series);

/* True if reading the file has failed and holds nothing back any more. */
bool catalog_json_is_failed(const struct catalog_file *file);

/* {"code", "message"} */
json_t *catalog_json_failure(const struct store_failure *failure);

json_t *catalog_json_number(uint64_t number);

/* {"offset", "bytes", "reason", "ring_bytes"?} */
json_t *catalog_json_place(const struct damaged_place *place);

/* Number of damaged places for each reason of which there are any, and their sum. 0; else failed. */
int catalog_json_set_damage(json_t *object, const struct file_damage *damage);
