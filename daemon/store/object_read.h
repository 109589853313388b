/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of an object store: the operations of struct store_operations. */
#pragma once

#include "daemon/store/store.h"

int object_read_start(struct store *store, const struct store_read_range *range,
                      void (*on_done)(void *userdata, const struct store_read_result *result),
                      void *userdata, struct store_read **ret_read);
uint64_t object_read_waits_since_ns(const struct store_read *read);
bool object_read_cancel(struct store_read *read, void (*on_released)(void *userdata),
                        void *userdata);
