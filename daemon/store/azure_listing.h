/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of Azure's List Blobs, as the functions of struct object_dialect. Source: "List Blobs",
 * Azure Storage REST API.
 */
#pragma once

#include "daemon/store/object_store.h"

int azure_listing_new(const struct object_page_events *events, void *userdata, void **ret_page);
int azure_listing_feed(void *userdata, const uint8_t *bytes, size_t size);
int azure_listing_end(void *userdata, char **ret_token);
void azure_listing_free(void *userdata);
