/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of an object store: the operations of struct store_operations. */
#pragma once

#include "daemon/store/store.h"

/*
 * Pages in a row that lead on and have no name behind those of the page before: stores give empty
 * ones where much was deleted, or where a partition of theirs ends; more than this many are a
 * listing that goes round in circles, which fails.
 */
#define OBJECT_LIST_STILL_PAGES_MOST 1000

int object_list_start(struct store *store, const struct store_list_range *range,
                      const struct store_list_callbacks *callbacks, void *userdata,
                      struct store_list **ret_list);
void object_list_cancel(struct store_list *list);
