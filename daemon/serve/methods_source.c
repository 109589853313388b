/* SPDX-License-Identifier: Apache-2.0 */
/* add_source and remove_source: what is watched changes while the daemon runs. */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/source_url.h"
#include "daemon/core/config_value.h"
#include "daemon/core/log.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/server.h"

/* Root, the daemon's own user, and who is named in admin_uids. */
static int check_admin(struct rpc_call *call) {
        const struct peer *peer = call->userdata;
        const struct server_options *options = server_options(peer->server);

        if (peer->uid == 0 || peer->uid == geteuid())
                return 0;
        for (size_t i = 0; i < options->admin_uid_count; i++) {
                if (options->admin_uids[i] == peer->uid)
                        return 0;
        }
        return rpc_fail(call, WIRE_E_NOT_ALLOWED,
                        "sources are changed by root, the daemon's own user and admin_uids");
}

/* 0; -EACCES: it lies below none of allow_sources; as source_url_normalize(). */
static int check_allowed(const struct server_options *options, const char *url) {
        CLEANUP(freep) char *normal = NULL;
        size_t prefix_size;
        int r = source_url_normalize(url, &normal);

        if (r < 0 || !options->allow_sources || !options->allow_sources[0])
                return r;
        for (char *const *allowed = options->allow_sources; *allowed; allowed++) {
                CLEANUP(freep) char *above = NULL;

                r = source_url_normalize(*allowed, &above);
                if (r == -ENOMEM)
                        return r;
                if (r == 0 && source_url_is_below(above, normal, &prefix_size))
                        return 0;
        }
        return -EACCES;
}

/* Whoever may add sources need not be allowed to read the daemon's files, nor to send them away. */
static bool names_files(const struct config_access *access) {
        return access->bearer_file || access->client_certificate || access->client_key;
}

static int parse_source(struct rpc_call *call, struct config_source *ret_source) {
        const struct peer *peer = call->userdata;
        struct config_source source = { 0 };
        int r = config_source_from_json(call->params, &source);

        if (r == -EINVAL)
                return rpc_fail(call, WIRE_E_PARAMS,
                                "a source is {url, name?, include?, exclude?, since?}");
        if (r == 0 && names_files(&source.access)) {
                config_source_deinit(&source);
                return rpc_fail(call, WIRE_E_PARAMS,
                                "bearer_file, client_certificate and client_key are for the "
                                "configuration alone");
        }
        if (r == 0)
                r = check_allowed(server_options(peer->server), source.url);
        if (r < 0)
                config_source_deinit(&source);
        if (r == -EACCES)
                return rpc_fail(call, WIRE_E_NOT_ALLOWED, "the URL lies outside of allow_sources");
        if (r == -EINVAL)
                return rpc_fail(call, WIRE_E_PARAMS, "not a URL or a path");
        if (r == 0)
                *ret_source = source;
        return r;
}

int methods_add_source(struct rpc_call *call, json_t **ret_result) {
        CLEANUP(config_source_deinit) struct config_source configured = { 0 };
        const struct peer *peer = call->userdata;
        struct pipeline *pipeline = server_pipeline(peer->server);
        const struct catalog *catalog = pipeline_catalog(pipeline);
        const char *message = NULL;
        int r = check_admin(call);

        if (!r)
                r = parse_source(call, &configured);
        if (r)
                return r;
        r = pipeline_add_source(pipeline, &configured, &message);
        if (r == -EEXIST)
                return rpc_fail(call, WIRE_E_PARAMS, "there is a source with that URL or name");
        if (r == -EBUSY)
                return rpc_fail(call, WIRE_E_LIMIT, "it is just being removed: try again");
        if (r == -EINVAL)
                return rpc_fail(call, WIRE_E_PARAMS, "%s", message ? message : strerror(EINVAL));
        if (r < 0)
                return r;
        *ret_result = catalog_json_source(catalog->sources[catalog->source_count - 1]);
        return *ret_result ? 0 : -ENOMEM;
}

static void on_removed(void *userdata) {
        struct peer_call *call = userdata;

        peer_call_answer(call, rpc_result(call->id, json_object()));
}

int methods_remove_source(struct rpc_call *call, json_t **ret_result) {
        const struct peer *peer = call->userdata;
        struct catalog_source *source = NULL;
        struct peer_call *waiting;
        int r = check_admin(call);

        (void)ret_result;
        if (!r)
                r = methods_find_source(call, &source);
        if (!r && !source)
                r = rpc_fail(call, WIRE_E_PARAMS, "source must be the name or URL of a source");
        if (!r)
                r = peer_call_new(call, &waiting);
        if (r)
                return r;
        r = pipeline_remove_source(server_pipeline(peer->server), source, on_removed, waiting,
                                   &waiting->request);
        if (r) {
                waiting->request = NULL;
                peer_call_free(waiting);
                return r;
        }
        return RPC_LATER;
}
