/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of objects.list, as the functions of struct object_dialect. The parser of JSON wants a
 * whole document, so a page is gathered; a longer one than GCS_PAGE_MOST_BYTES is refused. Source:
 * "Objects: list", Cloud Storage JSON API.
 */
#pragma once

#include "daemon/store/object_store.h"

/* A thousand names of 1024 bytes, each byte of them escaped as \u00XX, and the other fields. */
#define GCS_PAGE_MOST_BYTES (8u << 20)

int gcs_listing_new(const struct object_page_events *events, void *userdata, void **ret_page);
int gcs_listing_feed(void *userdata, const uint8_t *bytes, size_t size);
int gcs_listing_end(void *userdata, char **ret_token);
void gcs_listing_free(void *userdata);
