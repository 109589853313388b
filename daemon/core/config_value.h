/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of the configuration: from JSON, or from text on the way of JSON, into the fields of
 * struct config.
 */
#pragma once

#include <jansson.h>

#include "daemon/core/config.h"
#include "daemon/core/config_key.h"

/*
 * Checks the value and stores it in the key's field, whose old value is freed. -EINVAL: it is not
 * allowed; *ret_culprit (borrowed from value) is the part that is not. -ENOMEM.
 */
int config_value_store(const struct config_key *key, const json_t *value, struct config *config,
                       const json_t **ret_culprit);

/*
 * A source as `sources` has it: a URL or path, or an object with url, name, include, exclude and
 * since. config_source_deinit() gives it back. -EINVAL, -ENOMEM.
 */
int config_source_from_json(const json_t *value, struct config_source *ret_source);

/* Sets the field to the default, freeing what was there. */
void config_value_reset(const struct config_key *key, struct config *config);

/*
 * What an option or a variable says, as JSON: a list from an array or from one element. NULL: no
 * memory, or not UTF-8.
 */
json_t *config_value_from_text(const struct config_key *key, const char *text);
