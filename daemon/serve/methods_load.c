/* SPDX-License-Identifier: Apache-2.0 */
/* reload and wait_loaded: calls that are answered when storage has answered. */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/name.h"
#include "daemon/serve/server.h"

#define FAILED_MOST 1000u /* files named; the count says how many there are */

/* What storage says may be any bytes: it is made into text first. */
static json_t *source_error(json_t *id, const char *source, const struct store_failure *failure) {
        json_t *text = catalog_json_failure(failure);
        json_t *message = NULL, *error = NULL;

        if (text && !name_set(text, "source", source, strlen(source)))
                message = json_sprintf("%s: %s %s",
                                       json_string_value(json_object_get(text, "source")),
                                       json_string_value(json_object_get(text, "code")),
                                       json_string_value(json_object_get(text, "message")));
        if (message)
                error = rpc_error(id, WIRE_E_SOURCE, json_string_value(message),
                                  json_pack("{s:O}", "code", json_object_get(text, "code")));
        json_decref(message);
        json_decref(text);
        return error;
}

struct load_result {
        uint64_t files, runs, records, damaged, failed_count;
        json_t *failed;
};

static json_t *failed_row(const struct catalog_file *file) {
        json_t *row = file->failure ? catalog_json_failure(file->failure) : json_object();

        if (row && name_set(row, "path", file->path.bytes, file->path.size)) {
                json_decref(row);
                return NULL;
        }
        return row;
}

static void count_run(const struct catalog_run *run, struct load_result *result) {
        result->runs += !catalog_run_is_excluded(run);
        for (size_t i = 0; i < run->file_count; i++) {
                const struct catalog_file *file = run->files[i];

                if (file->excluded)
                        continue;
                result->files++;
                result->records += file->records;
                result->damaged += file_damage_count(file->damage);
                if (!catalog_json_is_failed(file))
                        continue;
                if (result->failed_count++ < FAILED_MOST)
                        json_array_append_new(result->failed, failed_row(file));
        }
}

/* Adds up one source, or all. */
static struct load_result count(const struct peer_call *call) {
        const struct catalog *catalog = pipeline_catalog(server_pipeline(call->peer->server));
        struct load_result result = { .failed = json_array() };

        for (size_t i = 0; i < catalog->source_count; i++) {
                const struct catalog_source *source = catalog->sources[i];

                if (call->source && call->source != source)
                        continue;
                for (size_t k = 0; k < source->run_count; k++)
                        count_run(source->runs[k], &result);
        }
        return result;
}

static void on_reloaded(void *userdata, const struct store_failure *failure) {
        struct peer_call *call = userdata;
        struct load_result result;

        if (failure && failure->class != STORE_OK) {
                peer_call_answer(call, source_error(call->id,
                                                    call->source ? call->source->name : "reload",
                                                    failure));
                return;
        }
        result = count(call);
        json_decref(result.failed);
        peer_call_answer(call,
                         rpc_result(call->id, json_pack("{s:o, s:o}", "files",
                                                        catalog_json_number(result.files), "runs",
                                                        catalog_json_number(result.runs))));
}

static void on_loaded(void *userdata, const struct catalog_source *failed) {
        struct peer_call *call = userdata;
        struct load_result result;

        if (failed && failed->failure.class != STORE_OK) {
                peer_call_answer(call, source_error(call->id, failed->name, &failed->failure));
                return;
        }
        result = count(call);
        peer_call_answer(
                call, rpc_result(call->id, json_pack("{s:o, s:o, s:o, s:o, s:o}", "files",
                                                     catalog_json_number(result.files), "records",
                                                     catalog_json_number(result.records), "damaged",
                                                     catalog_json_number(result.damaged), "failed",
                                                     result.failed, "failed_count",
                                                     catalog_json_number(result.failed_count))));
}

/* Ends a call whose request could not be made. */
static int give_up(struct peer_call *call, int r) {
        call->request = NULL;
        peer_call_free(call);
        return r;
}

int methods_reload(struct rpc_call *rpc, json_t **ret_result) {
        const struct peer *peer = rpc->userdata;
        struct catalog_source *source = NULL;
        struct peer_call *call;
        int r = methods_find_source(rpc, &source);

        (void)ret_result;
        if (!r)
                r = peer_call_new(rpc, &call);
        if (r)
                return r;
        call->source = source;
        r = pipeline_reload(server_pipeline(peer->server), source, on_reloaded, call,
                            &call->request);
        return r ? give_up(call, r) : RPC_LATER;
}

int methods_wait_loaded(struct rpc_call *rpc, json_t **ret_result) {
        struct peer *peer = rpc->userdata;
        struct catalog_source *source = NULL;
        struct peer_call *call;
        int r = methods_find_source(rpc, &source);

        (void)ret_result;
        if (!r)
                r = peer_call_new(rpc, &call);
        if (r)
                return r;
        call->source = source;
        call->kind = PEER_CALL_LOAD;
        peer->waiting_loads++;
        r = pipeline_wait_loaded(server_pipeline(peer->server), source, on_loaded, call,
                                 &call->request);
        return r ? give_up(call, r) : RPC_LATER;
}
