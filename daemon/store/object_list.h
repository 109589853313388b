/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of an object store: the operations of struct store_operations. */
#pragma once

#include "daemon/store/store.h"

int object_list_start(struct store *store, const struct store_list_range *range,
                      const struct store_list_callbacks *callbacks, void *userdata,
                      struct store_list **ret_list);
void object_list_cancel(struct store_list *list);
