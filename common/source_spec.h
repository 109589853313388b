/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names sources on a command line: one URL or path, or several with names, as TensorBoard's
 * --logdir_spec has them: "baseline:/logs/a,new:s3://bucket/b". It is a list where its first part
 * has a name; then each comma begins another source. A path that is there is never taken for a list.
 */
#pragma once

#include <stddef.h>

struct source_spec_item {
        char *name; /* NULL: none was given */
        char *url;  /* as it was given */
};

struct source_spec {
        struct source_spec_item *items;
        size_t count;
};

/*
 * -EINVAL: a part is empty, or two have the same name; -ENOMEM. source_spec_deinit() gives it back.
 */
int source_spec_parse(const char *text, struct source_spec *ret_spec);

void source_spec_deinit(struct source_spec *spec);
