/* SPDX-License-Identifier: Apache-2.0 */
#include "common/damage.h"

#include "common/base.h"

const char *damage_name(enum damage reason) {
        static const char *const names[] = {
                [DAMAGE_NONE] = "none",
                [DAMAGE_LENGTH_CRC] = "length CRC",
                [DAMAGE_DATA_CRC] = "data CRC",
                [DAMAGE_NOT_AN_EVENT] = "not an event",
                [DAMAGE_TOO_LARGE] = "too large",
                [DAMAGE_ZEROS] = "zeros",
                [DAMAGE_GZIP] = "not an event file (gzip)",
                [DAMAGE_ZLIB] = "not an event file (zlib)",
        };

        _Static_assert(ARRAY_SIZE(names) == DAMAGE_COUNT, "a reason without words");
        return names[reason];
}
