/* SPDX-License-Identifier: Apache-2.0 */
/* hello, subscribe, ack, prioritize: attaching, the stream, what was done with it, what is next. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/name.h"
#include "daemon/serve/server.h"

#define PROTOCOL 1

static bool speaks_ours(const json_t *versions) {
        if (!versions)
                return true;
        for (size_t i = 0; i < json_array_size(versions); i++) {
                if (json_integer_value(json_array_get(versions, i)) == PROTOCOL)
                        return true;
        }
        return false;
}

static json_t *source_urls(const struct catalog *catalog) {
        json_t *urls = json_array();

        for (size_t i = 0; i < catalog->source_count; i++) {
                const char *url = catalog->sources[i]->store->url;
                json_t *holder = json_object();

                if (!name_set(holder, "url", url, strlen(url)))
                        json_array_append(urls, json_object_get(holder, "url"));
                json_decref(holder);
        }
        return urls;
}

static json_t *limits(const struct pipeline *pipeline) {
        return json_pack("{s:i, s:i, s:i}", "client_frame", WIRE_CLIENT_BODY_MAX, "daemon_frame",
                         WIRE_DAEMON_BODY_MAX, "sessions", (int)pipeline_readers_max(pipeline));
}

int methods_hello(struct rpc_call *call, json_t **ret_result) {
        struct peer *peer = call->userdata;
        struct pipeline *pipeline = server_pipeline(peer->server);
        const struct server_options *options = server_options(peer->server);
        struct ring_status ring;

        if (!speaks_ours(json_object_get(call->params, "protocol")))
                return rpc_fail(call, WIRE_E_PARAMS, "this daemon speaks protocol %d only",
                                PROTOCOL);
        ring_status(pipeline_ring(pipeline), &ring);
        *ret_result = json_pack("{s:s, s:i, s:[s,s], s:o, s:o, s:b, s:I, s:I, s:o, s:o}", "server",
                                options->version, "protocol", PROTOCOL, "features", "map", "inline",
                                "instance", name_id(ring.instance_id), "settings",
                                name_id(options->settings_id), "private",
                                options->socket_path == NULL, "pid", (json_int_t)getpid(), "uid",
                                (json_int_t)geteuid(), "limits", limits(pipeline), "sources",
                                source_urls(pipeline_catalog(pipeline)));
        if (!*ret_result)
                return -ENOMEM;
        peer->greeted = true;
        return 0;
}

/* What a subscription asks for; holds what struct reader_options borrows. */
struct subscription {
        struct reader_options options;
        struct params_globs runs, tags, plugins;
        struct reader_position *positions;
        enum session_transport transport;
};

static void subscription_deinit(struct subscription *subscription) {
        params_globs_deinit(&subscription->runs);
        params_globs_deinit(&subscription->tags);
        params_globs_deinit(&subscription->plugins);
        free(subscription->positions);
}

static bool parse_position(const json_t *value, struct reader_position *position) {
        const json_t *offset = json_object_get(value, "offset"),
                     *index = json_object_get(value, "index");
        json_int_t index_value = json_integer_value(index);

        if (!params_parse_id(json_object_get(value, "file"), &position->file_id) ||
            !params_parse_id(json_object_get(value, "file_version"), &position->file_version))
                return false;
        if (!json_is_integer(offset) || json_integer_value(offset) < 0)
                return false;
        if (index && (!json_is_integer(index) || index_value < 0 || index_value > UINT32_MAX))
                return false;
        position->offset = (uint64_t)json_integer_value(offset);
        position->index = (uint32_t)index_value;
        return true;
}

static int parse_positions(struct rpc_call *call, const json_t *list,
                           struct subscription *subscription) {
        size_t count = json_array_size(list);

        if (!json_is_array(list))
                return rpc_fail(call, WIRE_E_PARAMS, "from: positions must be a list");
        subscription->positions = calloc(count ? count : 1, sizeof(*subscription->positions));
        if (!subscription->positions)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                if (!parse_position(json_array_get(list, i), &subscription->positions[i]))
                        return rpc_fail(call, WIRE_E_PARAMS,
                                        "from: a position is {file, file_version, offset, index}");
        }
        subscription->options.from = READER_FROM_POSITIONS;
        subscription->options.positions = subscription->positions;
        subscription->options.position_count = count;
        return 0;
}

static int parse_from(struct rpc_call *call, struct subscription *subscription) {
        const json_t *from = json_object_get(call->params, "from");
        const char *word = json_string_value(from);

        subscription->options.from = READER_FROM_START;
        if (!from || json_is_null(from) || (word && !strcmp(word, "start")))
                return 0;
        if (word && !strcmp(word, "now")) {
                subscription->options.from = READER_FROM_NOW;
                return 0;
        }
        if (json_is_object(from))
                return parse_positions(call, json_object_get(from, "positions"), subscription);
        return rpc_fail(call, WIRE_E_PARAMS,
                        "from must be \"start\", \"now\" or {\"positions\": [...]}");
}

/* One of several words; the first is what an absent parameter means. */
static int parse_word(struct rpc_call *call, const char *key, const char *const words[2],
                      unsigned *ret_index) {
        const char *word = words[0];
        int r = params_string(call, key, &word);

        if (r)
                return r;
        for (unsigned i = 0; i < 2; i++) {
                if (!strcmp(word, words[i])) {
                        *ret_index = i;
                        return 0;
                }
        }
        return rpc_fail(call, WIRE_E_PARAMS, "%s must be \"%s\" or \"%s\"", key, words[0],
                        words[1]);
}

static int parse_filters(struct rpc_call *call, struct subscription *subscription) {
        struct reader_options *options = &subscription->options;
        int r = params_globs(call, "runs", &subscription->runs);

        if (!r)
                r = params_globs(call, "tags", &subscription->tags);
        if (!r)
                r = params_globs(call, "plugins", &subscription->plugins);
        options->runs = (const char *const *)subscription->runs.globs;
        options->run_count = subscription->runs.count;
        options->tags = (const char *const *)subscription->tags.globs;
        options->tag_count = subscription->tags.count;
        options->plugins = (const char *const *)subscription->plugins.globs;
        options->plugin_count = subscription->plugins.count;
        return r;
}

static int parse_subscription(struct rpc_call *call, struct subscription *subscription) {
        static const char *const transports[] = {
                [SESSION_MAP] = "map", [SESSION_INLINE] = "inline"
        };
        static const char *const orders[] = {
                [READER_ORDER_RUN] = "run", [READER_ORDER_SORTED] = "sorted"
        };
        unsigned transport = 0, order = 0;
        struct catalog_source *source = NULL;
        int r = methods_find_source(call, &source);

        subscription->options.source = source;
        if (!r)
                r = parse_filters(call, subscription);
        if (!r)
                r = parse_from(call, subscription);
        if (!r)
                r = parse_word(call, "transport", transports, &transport);
        if (!r)
                r = parse_word(call, "order", orders, &order);
        if (!r)
                r = params_bool(call, "follow", &subscription->options.follow);
        subscription->transport = (enum session_transport)transport;
        subscription->options.order = (enum reader_order)order;
        return r;
}

static json_t *describe_session(const struct pipeline *pipeline, const struct session *session) {
        struct reader_status status;
        struct ring_status ring;

        ring_status(pipeline_ring((struct pipeline *)pipeline), &ring);
        session_status(session, &status);
        return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I}", "session",
                         (json_int_t)session_number(session), "transport",
                         session_transport_name(session_transport(session)), "segment_bytes",
                         (json_int_t)ring.segment_bytes, "segments", (json_int_t)ring.segment_count,
                         "ring_bytes", (json_int_t)ring.size_bytes, "quota_segments",
                         (json_int_t)status.quota_segments);
}

/*
 * Either the ring is too small for one more, or the configuration allows fewer than it has room
 * for.
 */
static int refuse_session(struct rpc_call *call, const struct pipeline *pipeline,
                          uint64_t needed_bytes) {
        struct ring_status ring;

        ring_status(pipeline_ring((struct pipeline *)pipeline), &ring);
        if (needed_bytes <= ring.size_bytes)
                return rpc_fail(call, WIRE_E_LIMIT,
                                "there are as many sessions as sessions_max allows");
        return rpc_fail(call, WIRE_E_LIMIT,
                        "no room for one more session: it needs a ring of %" PRIu64 " bytes",
                        needed_bytes);
}

/* The reply carries descriptors, which the dispatcher knows nothing of: it is sent here. */
static int begin_session(struct rpc_call *call, struct peer *peer,
                         const struct subscription *subscription) {
        struct pipeline *pipeline = server_pipeline(peer->server);
        int fds[SESSION_FDS];
        uint64_t ring_bytes = 0;
        int r = session_new(pipeline, peer->connection, server_next_session(peer->server),
                            subscription->transport, &subscription->options, &peer->session, fds,
                            &ring_bytes);

        if (r == READER_E_NO_ROOM)
                return refuse_session(call, pipeline, ring_bytes);
        if (r)
                return r;
        connection_send_json(peer->connection,
                             rpc_result(call->id, describe_session(pipeline, peer->session)), fds,
                             subscription->transport == SESSION_MAP ? SESSION_FDS : 0);
        return RPC_LATER;
}

int methods_subscribe(struct rpc_call *call, json_t **ret_result) {
        CLEANUP(subscription_deinit) struct subscription subscription = { 0 };
        struct peer *peer = call->userdata;
        int r;

        (void)ret_result;
        if (peer->session)
                return rpc_fail(call, WIRE_E_INVALID,
                                "this connection has a session: one a connection");
        if (!call->id)
                return rpc_fail(call, WIRE_E_INVALID,
                                "subscribe must be answered, so it needs an id");
        r = parse_subscription(call, &subscription);
        return r ? r : begin_session(call, peer, &subscription);
}

int methods_ack(struct rpc_call *call, json_t **ret_result) {
        struct peer *peer = call->userdata;
        uint64_t position;
        int r = params_u64(call, "position", INT64_MAX, &position);

        if (r)
                return r;
        if (!peer->session)
                return rpc_fail(call, WIRE_E_INVALID, "there is no session");
        session_acknowledge(peer->session, position);
        *ret_result = json_object();
        return *ret_result ? 0 : -ENOMEM;
}

int methods_prioritize(struct rpc_call *call, json_t **ret_result) {
        CLEANUP(params_globs_deinit) struct params_globs runs = { 0 };
        struct peer *peer = call->userdata;
        int r = params_globs(call, "runs", &runs);

        if (r)
                return r;
        if (!peer->session)
                return rpc_fail(call, WIRE_E_INVALID, "there is no session");
        r = session_prioritize(peer->session, (const char *const *)runs.globs, runs.count);
        if (r == -EINVAL)
                return rpc_fail(call, WIRE_E_INVALID, "a sorted stream has its own order");
        if (r < 0)
                return r;
        *ret_result = json_object();
        return *ret_result ? 0 : -ENOMEM;
}
