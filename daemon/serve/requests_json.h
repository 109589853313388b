/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked of storage, and what it costs, as docs/PROTOCOL.md says. Loop thread. */
#pragma once

#include <jansson.h>

#include "daemon/pipeline/pipeline.h"

/*
 * `requests` of a source: its numbers by kind, those of today and those that were asked once more,
 * and their price where they have one. NULL: no memory.
 */
json_t *requests_json(const struct catalog_source *source, int64_t now_s);

/* What was sent today to an endpoint, by kind. NULL: no memory. */
json_t *requests_json_today(const struct catalog *catalog, const char *endpoint, int64_t now_s);

/* `polling` of a source: whether and when it looks at storage by itself. NULL: no memory. */
json_t *requests_json_polling(const struct catalog_source *source);
