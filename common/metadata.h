/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a series is: its plugin, its class and the texts that describe it, found from its values in
 * file order. The first value that says a class decides, as TensorBoard's data server has it:
 *
 *   1. metadata with a class            as it is
 *   2. a legacy value (simple_value, image, audio, histogram), a graph, run metadata
 *                                       plugin and class of that kind; display name and description
 *                                       are kept
 *   3. metadata with a known plugin     as it is, with the plugin's class
 *
 * A value that says none leaves the question to the next one; what metadata it has is shown
 * meanwhile. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/extent_format.h"
#include "common/extent_view.h"

struct metadata {
        struct extent_string plugin, content, display_name, description; /* borrowed */
        uint8_t data_class;                                              /* enum extent_class */
        uint8_t written_as; /* enum extent_written_as, of the value that this is from */
        bool is_given;      /* a value of the series had metadata, or its kind stands for some */
};

/*
 * The class that a value says: of its own metadata (data_class and plugin may be 0 and empty) and
 * its kind.
 */
enum extent_class metadata_class(uint32_t data_class, struct extent_string plugin,
                                 enum extent_written_as written_as);

/*
 * Goes on from what is known of a series (all zero: nothing yet) with the next extent that has it.
 * True if *metadata changed: its strings are then borrowed from the extent, or static, and the
 * caller copies what it keeps.
 */
bool metadata_update(struct metadata *metadata, const struct extent_view *view,
                     const struct extent_series *series);
