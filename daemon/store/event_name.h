/* SPDX-License-Identifier: Apache-2.0 */
/* Which names are event files: what all stores look for in their listings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Does the last component of the name contain "tfevents"? */
static inline bool event_name_is(const char *name, size_t size) {
        const char *slash = memrchr(name, '/', size);
        const char *base = slash ? slash + 1 : name;

        return memmem(base, size - (size_t)(base - name), "tfevents", strlen("tfevents")) != NULL;
}
