/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of storage that store_open() knows. */
#pragma once

#include "daemon/store/store.h"

extern const struct store_type store_type_file;    /* paths, file:// */
extern const struct store_type store_type_s3;      /* s3:// */
extern const struct store_type store_type_azure;   /* az://, abfs://, https:// of its hosts */
extern const struct store_type store_type_webhdfs; /* webhdfs://, swebhdfs:// */
extern const struct store_type store_type_http;    /* http://, https:// */
extern const struct store_type store_type_gcs;     /* gs:// */
