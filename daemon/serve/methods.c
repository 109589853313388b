/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/methods.h"

#include "common/base.h"
#include "daemon/serve/server.h"

const struct rpc_method methods[] = {
        { "hello", methods_hello, RPC_FIRST },
        { "sources", methods_sources, RPC_ASKS },
        { "add_source", methods_add_source, 0 },
        { "remove_source", methods_remove_source, 0 },
        { "runs", methods_runs, RPC_ASKS },
        { "files", methods_files, RPC_ASKS },
        { "series", methods_series, RPC_ASKS },
        { "subscribe", methods_subscribe, RPC_FRAMED | RPC_ASKS },
        { "ack", methods_ack, RPC_FRAMED },
        { "prioritize", methods_prioritize, RPC_FRAMED },
        { "payload", methods_payload, RPC_FRAMED },
        { "damage", methods_damage, 0 },
        { "reload", methods_reload, RPC_ASKS },
        { "wait_loaded", methods_wait_loaded, RPC_ASKS },
        { "status", methods_status, 0 },
};

const size_t method_count = ARRAY_SIZE(methods);

int methods_find_source(struct rpc_call *call, struct catalog_source **ret_source) {
        const struct peer *peer = call->userdata;
        struct catalog_source *source;
        const char *name = NULL;
        int r = params_string(call, "source", &name);

        if (r || !name)
                return r;
        source = catalog_find_source(pipeline_catalog(server_pipeline(peer->server)), name);
        if (!source)
                return rpc_fail(call, WIRE_E_PARAMS, "no source is called %s", name);
        *ret_source = source;
        return 0;
}
