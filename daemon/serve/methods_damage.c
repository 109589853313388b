/* SPDX-License-Identifier: Apache-2.0 */
/* damage: every damaged place of a file, page by page. */
#include <errno.h>

#include "common/base.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/page.h"
#include "daemon/serve/server.h"

static json_t *result_of(const struct damaged_place *places, uint32_t count,
                         const struct pipeline_place *next) {
        json_t *list = json_array();
        json_t *result = json_pack("{s:o}", "damage", list);

        for (uint32_t i = 0; result && i < count; i++)
                json_array_append_new(list, catalog_json_place(&places[i]));
        if (result && next)
                json_object_set_new(result, "next",
                                    json_pack("{s:o, s:I}", "offset",
                                              catalog_json_number(next->offset), "index",
                                              (json_int_t)next->index));
        return result;
}

static void on_damage(void *userdata, int error, const struct store_failure *failure,
                      const struct damaged_place *places, uint32_t count,
                      const struct pipeline_place *next) {
        struct peer_call *call = userdata;
        struct peer *peer = call->peer;

        json_t *result = error ? NULL : result_of(places, count, next);

        call->request = NULL;
        peer_call_answer(call,
                         result ? rpc_result(call->id, result)
                                : methods_read_error(call->id, error ? error : -ENOMEM, failure));
        connection_soon(peer->connection); /* the next one starts from the loop */
}

int methods_start_damage(struct peer_call *call) {
        struct pipeline_place from = { call->place.offset, call->place.index };

        return pipeline_damage(server_pipeline(call->peer->server), call->place.file_id,
                               call->place.file_version, from, call->place.most, on_damage, call,
                               &call->request);
}

/* A number that may be absent. */
static int optional(struct rpc_call *rpc, const char *key, uint64_t most, uint64_t *value) {
        return json_object_get(rpc->params, key) ? params_u64(rpc, key, most, value) : 0;
}

int methods_damage(struct rpc_call *rpc, json_t **ret_result) {
        struct peer *peer = rpc->userdata;
        uint64_t file_id, file_version, offset = 0, index = 0, limit = PAGE_ROWS_MOST;
        struct peer_call *call;
        int r = params_id(rpc, "file", &file_id);

        (void)ret_result;
        if (!r)
                r = params_id(rpc, "file_version", &file_version);
        if (!r)
                r = optional(rpc, "offset", INT64_MAX, &offset);
        if (!r)
                r = optional(rpc, "index", UINT32_MAX, &index);
        if (!r)
                r = optional(rpc, "limit", INT64_MAX, &limit);
        if (!r)
                r = peer_call_new(rpc, &call);
        if (r)
                return r;
        call->kind = PEER_CALL_DAMAGE;
        call->place.file_id = file_id;
        call->place.file_version = file_version;
        call->place.offset = offset;
        call->place.index = (uint32_t)index;
        call->place.most = (uint32_t)max_u64(1, min_u64(limit, PAGE_ROWS_MOST));
        methods_start_reads(peer);
        return RPC_LATER;
}
