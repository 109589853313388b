/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pipeline/named_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int named_file_init(struct named_file *named, const struct block_file *file) {
        named->file = *file;
        named->url = strdup(file->source_url);
        named->run = strndup(file->run_name, file->run_name_size);
        named->path = strndup(file->path, file->path_size);
        named->file.source_url = named->url;
        named->file.run_name = named->run;
        named->file.path = named->path;
        return named->url && named->run && named->path ? 0 : -ENOMEM;
}

void named_file_deinit(struct named_file *named) {
        free(named->url);
        free(named->run);
        free(named->path);
        *named = (struct named_file){ 0 };
}
