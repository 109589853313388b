/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of S3's ListObjectsV2, as the functions of struct object_dialect. Rows are given when the
 * page has ended: only then it is known whether keys are encoded, as some servers say that last. A
 * page holds a thousand keys. Source: ListObjectsV2, Amazon S3 API Reference.
 */
#pragma once

#include "daemon/store/object_store.h"

int s3_listing_new(const struct object_page_events *events, void *userdata, void **ret_page);
int s3_listing_feed(void *userdata, const uint8_t *bytes, size_t size);
int s3_listing_end(void *userdata, char **ret_token);
void s3_listing_free(void *userdata);
