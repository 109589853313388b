/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints of an object store, each with its client. Only object_*.c look at it. */
#pragma once

#include "daemon/store/object_store.h"

struct object_client {
        struct list node; /* of store->clients */
        struct object_store *store;
        struct http_url url;
        struct http_client *client;
};

/* The one that is asked now. */
struct object_client *object_client_now(const struct object_store *store);
