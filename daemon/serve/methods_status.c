/* SPDX-License-Identifier: Apache-2.0 */
/* status: everything an operator or a progress bar wants, in one answer. */
#include <errno.h>
#include <time.h>

#include "common/base.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/methods.h"
#include "daemon/serve/name.h"
#include "daemon/serve/requests_json.h"
#include "daemon/serve/server.h"

#define ENDPOINTS_MOST 64

static const char *tier_name(enum ring_tier tier) {
        static const char *const names[] = {
                [RING_TIER_HUGETLBFS] = "hugetlbfs",
                [RING_TIER_MEMFD_HUGE] = "memfd-huge",
                [RING_TIER_THP] = "thp",
                [RING_TIER_4K] = "4k",
        };

        return names[tier];
}

static json_t *ring_object(const struct ring_status *ring) {
        return json_pack(
                "{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "size_bytes",
                (json_int_t)ring->size_bytes, "segment_bytes", (json_int_t)ring->segment_bytes,
                "segments", (json_int_t)ring->segment_count, "segments_ready",
                (json_int_t)ring->segments_ready, "segments_used", (json_int_t)ring->segments_used,
                "pinned", (json_int_t)ring->segments_pinned, "tier", tier_name(ring->tier),
                "tier_reason", ring->tier_reason);
}

static json_t *memory_object(const struct fetch_counters *fetch, uint64_t inflight_limit_bytes) {
        return json_pack("{s:I, s:I, s:I}", "inflight_bytes", (json_int_t)fetch->inflight_bytes,
                         "inflight_peak_bytes", (json_int_t)fetch->inflight_bytes_peak,
                         "inflight_limit_bytes", (json_int_t)inflight_limit_bytes);
}

static json_t *counters_object(const struct pipeline_counters *counters,
                               const struct fetch_counters *fetch) {
        const struct {
                const char *name;
                uint64_t value;
        } rows[] = {
                { "extents", counters->extents },
                { "extent_bytes", counters->extent_bytes },
                { "records", counters->records },
                { "damaged", counters->damaged },
                { "refetched_blocks", counters->refetched_blocks },
                { "recycled_segments", counters->recycled_segments },
                { "reread_ranges", counters->reread_ranges },
                { "reads", fetch->reads },
                { "retries", fetch->retries },
                { "hedges", fetch->hedges },
                { "hedges_won", fetch->hedges_won },
                { "read_bytes", fetch->bytes },
                { "request_ns", fetch->request_ns },
        };
        json_t *object = json_object();

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                json_object_set_new(object, rows[i].name, catalog_json_number(rows[i].value));
        return object;
}

static json_t *endpoint_rows(const struct fetch *fetch, const struct catalog *catalog) {
        struct fetch_endpoint_status rows[ENDPOINTS_MOST];
        size_t count = fetch_endpoints(fetch, rows, ENDPOINTS_MOST);
        json_t *list = json_array();

        for (size_t i = 0; i < count && i < ENDPOINTS_MOST; i++)
                json_array_append_new(
                        list,
                        json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:o}", "name", rows[i].name,
                                  "today", requests_json_today(catalog, rows[i].name, time(NULL)),
                                  "window", (int)rows[i].window, "in_flight",
                                  (int)rows[i].in_flight, "waiting", (int)rows[i].waiting,
                                  "retry_tokens", (int)rows[i].retry_tokens, "errors",
                                  catalog_json_number(rows[i].errors)));
        return list;
}

static json_t *session_row(const struct peer *peer) {
        const struct session *session = peer->session;
        struct reader_status status;

        session_status(session, &status);
        return json_pack("{s:I, s:I, s:I, s:s, s:o, s:i, s:i, s:o, s:o, s:o, s:b}", "session",
                         (json_int_t)session_number(session), "uid", (json_int_t)peer->uid, "pid",
                         (json_int_t)peer->pid, "transport",
                         session_transport_name(session_transport(session)), "backlog",
                         catalog_json_number(status.backlog_bytes), "held_segments",
                         (int)status.held_segments, "quota_segments", (int)status.quota_segments,
                         "entries", catalog_json_number(status.pushed), "acked",
                         catalog_json_number(status.acked), "records",
                         catalog_json_number(status.records), "ended", status.ended);
}

static json_t *session_rows(struct server *server) {
        json_t *list = json_array();

        list_for_each(node, server_peers(server)) {
                const struct peer *peer = list_owner(node, struct peer, link);

                if (peer->session)
                        json_array_append_new(list, session_row(peer));
        }
        return list;
}

int methods_status(struct rpc_call *call, json_t **ret_result) {
        const struct peer *peer = call->userdata;
        const struct server_options *options = server_options(peer->server);
        struct pipeline *pipeline = server_pipeline(peer->server);
        const struct fetch_counters *fetch = fetch_counters(pipeline_fetch(pipeline));
        struct ring_status ring;

        ring_status(pipeline_ring(pipeline), &ring);
        *ret_result = json_pack(
                "{s:s, s:I, s:o, s:f, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "server",
                options->version, "pid", (json_int_t)getpid(), "instance",
                name_id(ring.instance_id), "uptime_s", (double)server_uptime_ns(peer->server) / 1e9,
                "private", options->socket_path == NULL, "checksum",
                pipeline_checks_payloads(pipeline) ? "always" : "length-only", "ring",
                ring_object(&ring), "memory", memory_object(fetch, options->inflight_bytes),
                "counters", counters_object(pipeline_counters(pipeline), fetch), "endpoints",
                endpoint_rows(pipeline_fetch(pipeline), pipeline_catalog(pipeline)), "sessions",
                session_rows(peer->server), "sources", methods_source_rows(peer->server));
        return *ret_result ? 0 : -ENOMEM;
}
