/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of endpoints that are not asked any more stay until the end: there are few (a bucket has
 * one region), and what was sent to them ends where it is.
 */
#include "daemon/store/object_store.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/store/object_call.h"
#include "daemon/store/object_client.h"
#include "daemon/store/object_list.h"
#include "daemon/store/object_read.h"

#define OBJECT_WINDOW_START 512 /* of a cloud's own hosts */
#define OBJECT_CUSTOM_WINDOW_START 128

/* ---- Endpoints ---- */

struct object_client *object_client_now(const struct object_store *store) {
        return list_owner(store->clients.next, struct object_client, node);
}

const struct http_url *object_store_endpoint(const struct object_store *store) {
        return &object_client_now(store)->url;
}

static int client_new(struct object_store *store, const char *endpoint, const char **ret_message) {
        struct object_client *client = calloc(1, sizeof(*client));
        int r;

        if (!client)
                return -ENOMEM;
        client->store = store;
        r = http_url_init(&client->url, endpoint, ret_message);
        if (r == 0)
                r = http_client_new(store->loop, &client->url, &store->client_options,
                                    &client->client);
        if (r < 0) {
                http_url_deinit(&client->url);
                free(client);
                return r;
        }
        list_prepend(&store->clients, &client->node);
        store->open_parts++;
        return 0;
}

int object_store_set_endpoint(struct object_store *store, const char *endpoint) {
        CLEANUP(http_url_deinit) struct http_url url = { 0 };
        const char *message;
        int r = http_url_init(&url, endpoint, &message);

        if (r < 0)
                return r;
        list_for_each(node, &store->clients) {
                struct object_client *client = list_owner(node, struct object_client, node);

                if (strcmp(client->url.endpoint, url.endpoint) == 0) {
                        list_remove(node);
                        list_prepend(&store->clients, node);
                        return 0;
                }
        }
        return client_new(store, endpoint, &message);
}

/* ---- Life ---- */

static void part_closed(void *userdata) {
        struct object_store *store = userdata;
        void (*on_closed)(void *userdata) = store->on_closed;
        void *on_closed_userdata = store->userdata;

        if (--store->open_parts > 0)
                return;
        if (store->dialect->deinit)
                store->dialect->deinit(store);
        free(store->prefix);
        free(store->store.url);
        free(store->store.endpoint);
        free(store->store.identity);
        free(store);
        if (on_closed)
                on_closed(on_closed_userdata);
}

static void on_client_closed(void *userdata) {
        struct object_client *client = userdata;
        struct object_store *store = client->store;

        http_url_deinit(&client->url);
        free(client);
        part_closed(store);
}

static void object_close(struct store *store, void (*on_closed)(void *userdata), void *userdata) {
        struct object_store *objects = (struct object_store *)store;

        objects->on_closed = on_closed;
        objects->userdata = userdata;
        while (!list_is_empty(&objects->calls)) {
                struct object_call *call = list_owner(objects->calls.next, struct object_call,
                                                      node);

                call->type->on_drop(call);
        }
        list_for_each(node, &objects->clients) {
                struct object_client *client = list_owner(node, struct object_client, node);

                list_remove(node);
                http_client_close(client->client, on_client_closed, client);
        }
        if (objects->credentials)
                credentials_close(objects->credentials, part_closed, objects);
        else
                part_closed(objects);
}

static const struct store_operations operations = {
        .list = object_list_start,
        .list_cancel = object_list_cancel,
        .read = object_read_start,
        .read_waits_since_ns = object_read_waits_since_ns,
        .read_cancel = object_read_cancel,
        .close = object_close,
};

/* What people and windows know the store by. */
static int describe(struct object_store *objects, const struct object_store_place *place) {
        struct store *store = &objects->store;
        int r;

        store->has_shared_tags = place->has_shared_tags;
        store->window_start = place->is_custom ? OBJECT_CUSTOM_WINDOW_START : OBJECT_WINDOW_START;
        store->price = place->is_custom ? NULL : place->price;
        if (!place->endpoint || !(store->endpoint = strdup(place->endpoint)))
                return -ENOMEM;
        r = source_url_normalize(place->url, &store->url);
        if (r < 0) {
                store->url = NULL;
                return r;
        }
        if (asprintf(&objects->prefix, "%s%s", place->prefix, *place->prefix ? "/" : "") < 0) {
                objects->prefix = NULL;
                return -ENOMEM;
        }
        objects->prefix_size = strlen(objects->prefix);
        return 0;
}

int object_store_open(struct object_store *take_store, uv_loop_t *loop,
                      const struct object_dialect *dialect, const struct object_store_place *place,
                      const struct http_client_options *client_options,
                      struct credentials *take_credentials, const char **ret_message) {
        int r;

        take_store->store.operations = &operations;
        take_store->store.is_flat = true;
        take_store->dialect = dialect;
        take_store->loop = loop;
        take_store->client_options = client_options ? *client_options : http_client_defaults;
        take_store->client_options.no_credentials = true;
        take_store->credentials = take_credentials;
        take_store->open_parts = 1; /* of the credentials, or of close() itself */
        list_init(&take_store->clients);
        list_init(&take_store->calls);
        r = describe(take_store, place);
        if (r == 0)
                r = client_new(take_store, place->endpoint, ret_message);
        if (r < 0)
                object_close(&take_store->store, NULL, NULL);
        return r;
}
