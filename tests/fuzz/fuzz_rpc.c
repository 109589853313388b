/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher and every reader of parameters, in front of methods that do nothing: whatever text
 * comes, the answer is a JSON-RPC 2.0 message or none, and nothing leaks.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "common/base.h"
#include "daemon/serve/name.h"
#include "daemon/serve/params.h"
#include "daemon/serve/rpc.h"

static int read_all(struct rpc_call *call, json_t **ret_result) {
        CLEANUP(params_globs_deinit) struct params_globs globs = { 0 };
        const char *text = "";
        uint64_t number = 0, id = 0;
        bool flag = false;
        int r = params_string(call, "text", &text);

        if (!r)
                r = params_bool(call, "flag", &flag);
        if (!r)
                r = params_globs(call, "run", &globs);
        if (!r && json_object_get(call->params, "number"))
                r = params_u64(call, "number", 1000, &number);
        if (!r && json_object_get(call->params, "id"))
                r = params_id(call, "id", &id);
        if (r)
                return r;
        MUST(number <= 1000);
        params_globs_match(&globs, "a/b/c");
        *ret_result = json_object();
        return name_set(*ret_result, "text", text, strlen(text));
}

static const struct rpc_method table[] = {
        { "hello", read_all, RPC_FIRST },
        { "runs", read_all, 0 },
        { "subscribe", read_all, RPC_FRAMED },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct rpc_caller caller = { .framed = size & 1, .greeted = size & 2 };
        json_t *reply = rpc_dispatch(table, ARRAY_SIZE(table), caller, NULL, (const char *)data,
                                     size);
        char *text;

        if (!reply)
                return 0;
        MUST(!strcmp(json_string_value(json_object_get(reply, "jsonrpc")), "2.0"));
        MUST(json_object_get(reply, "id"));
        MUST(!json_object_get(reply, "result") != !json_object_get(reply, "error"));
        text = json_dumps(reply, JSON_COMPACT);
        MUST(text);
        free(text);
        json_decref(reply);
        return 0;
}
