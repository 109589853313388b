/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end. The socket is there before anything remote is looked at, so that a client never
 * waits for storage to connect. The end goes the other way round: the server first (its readers
 * hold pins), then the pipeline; a loop that cannot be closed has a leaked handle.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <uv.h>

#include "common/base.h"
#include "common/private_source.h"
#include "common/settings_id.h"
#include "common/socket_path.h"
#include "common/wire_format.h"
#include "daemon/core/log.h"
#include "daemon/discover/manifest_file.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/server.h"

extern char **environ;

static const int end_signals[] = { SIGTERM, SIGINT };

/* Between two acknowledgements of a session that works through a TFRecord of many blocks. */
#define HOLD_NS (2 * 1000000000ull)
/* Before bytes that may be just being written are read again; four times that before the third. */
#define REREAD_NS (100 * 1000000ull)

struct daemon {
        const struct daemon_options *options;
        uv_loop_t loop;
        uv_signal_t signals[ARRAY_SIZE(end_signals)];
        struct pipeline *pipeline;
        struct server *server;
        char *remember; /* directory; NULL: nothing is remembered */
        bool ending;
};

static void on_server_closed(void *userdata) {
        struct daemon *daemon = userdata;

        daemon->server = NULL;
        if (daemon->pipeline)
                pipeline_close(steal_pointer(&daemon->pipeline), NULL, NULL);
}

/* Starts the end; the loop runs out when all is closed. */
static void daemon_end(struct daemon *daemon) {
        if (daemon->ending)
                return;
        daemon->ending = true;
        for (size_t i = 0; i < ARRAY_SIZE(daemon->signals); i++)
                uv_close((uv_handle_t *)&daemon->signals[i], NULL);
        if (daemon->pipeline)
                ring_set_state(pipeline_ring(daemon->pipeline), RING_STATE_DRAINING);
        if (daemon->server)
                server_close(daemon->server, on_server_closed, daemon);
        else
                on_server_closed(daemon);
}

static void on_signal(uv_signal_t *handle, int number) {
        struct daemon *daemon = handle->data;

        log_info("ending", "signal=%d", number);
        daemon_end(daemon);
}

static void on_client_gone(void *userdata) {
        daemon_end(userdata);
}

/* NULL: not at all, also where there is no place for it. */
static char *where_to_remember(const struct config *config) {
        if (!config->remember)
                return manifest_file_directory();
        return config->remember[0] ? strdup(config->remember) : NULL;
}

static int start_pipeline(struct daemon *daemon) {
        const struct config *config = &daemon->options->config;
        static const enum ring_huge huge[] = {
                [CONFIG_HUGE_OFF] = RING_HUGE_OFF,
                [CONFIG_HUGE_TRY] = RING_HUGE_TRY,
                [CONFIG_HUGE_ON] = RING_HUGE_ON,
        };
        struct pipeline_options options = {
                .ring_bytes = config->ring_bytes,
                .huge = huge[config->ring_huge],
                .keep_small = daemon->options->is_private,
                .decoders = config->decoders,
                .inflight_bytes = config->fetch_inflight_bytes,
                .connections_max = config->fetch_connections_max,
                .window_start = config->fetch_window,
                .requests_per_second_max = config->fetch_requests_per_second_max,
                .bytes_per_second_max = config->fetch_bytes_per_second_max,
                .part_bytes = config->fetch_part_bytes,
                .whole_max_bytes = config->fetch_whole_max_bytes,
                .length_crc_only = config->checksum == CONFIG_CHECKSUM_LENGTH_ONLY,
                .record_max_bytes = config->record_max_bytes,
                .payload_inline_max_bytes = (uint32_t)min_u64(config->payload_inline_max_bytes,
                                                              UINT32_MAX),
                .readers_max = config->sessions_max,
                .poll_ns = config->poll_ns,
                .requests_per_day_max = config->max_requests_per_day,
                .price_nano_usd = { [REQUEST_LIST] = config->price_list,
                                    [REQUEST_READ] = config->price_read,
                                    [REQUEST_CREDENTIALS] = CONFIG_PRICE_AUTO },
                .reread_ns = REREAD_NS,
                .hold_ns = HOLD_NS,
        };

        options.remember = daemon->remember = where_to_remember(config);
        return pipeline_new(&daemon->loop, &options, &daemon->pipeline);
}

static int start_server(struct daemon *daemon) {
        const struct config *config = &daemon->options->config;
        struct server_options options = {
                .socket_fd = daemon->options->socket_fd,
                .version = daemon->options->version,
                .inflight_bytes = config->fetch_inflight_bytes,
                .allow_uids = config->allow_uids,
                .allow_uid_count = config->allow_uid_count,
                .admin_uids = config->admin_uids,
                .admin_uid_count = config->admin_uid_count,
                .allow_sources = config->allow_sources,
                .on_end = on_client_gone,
                .userdata = daemon,
        };
        CLEANUP(freep) char *path = NULL, *directory = NULL, *error = NULL;
        int r = settings_id_compute(environ, &options.settings_id);

        if (r < 0)
                return r;
        if (!daemon->options->is_private) {
                r = socket_path_listen(config->socket, &path, &directory);
                if (r < 0) {
                        log_error("cannot use the socket's directory",
                                  "directory=%s reason=%s; name a socket with --socket",
                                  directory ? directory : "?", strerror(-r));
                        return r;
                }
                options.socket_path = path;
        }
        r = server_new(&daemon->loop, daemon->pipeline, &options, &daemon->server, &error);
        if (r != 0) {
                log_error(error ? error : "cannot serve", "%s", error ? "" : strerror(-r));
                return r < 0 ? r : -EADDRINUSE;
        }
        if (path)
                log_info("listening", "socket=%s", path);
        return 0;
}

/*
 * A source that cannot be opened (its URL is wrong) ends the start: what is only unreachable now
 * does not.
 */
static int add_sources(struct daemon *daemon) {
        const struct config *config = &daemon->options->config;

        for (size_t i = 0; i < config->source_count; i++) {
                const struct config_source *source = &config->sources[i];
                const char *message = NULL;
                int r = pipeline_add_source(daemon->pipeline, source, &message);

                if (r < 0) {
                        log_error("cannot use source", "url=%s reason=%s", source->url,
                                  r == -EEXIST ? "it is there twice"
                                  : message    ? message
                                               : strerror(-r));
                        return r;
                }
        }
        if (config->source_count == 0)
                log_warning("no sources: nothing will be loaded",
                            "way_out=\"headraced URL... or `sources` in the configuration\"");
        return 0;
}

/* Tells the private client, in a frame of its protocol, why nothing can be served. */
static void tell_private_client(const struct daemon *daemon, const char *message) {
        json_t *error = json_pack("{s:s, s:n, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", "error",
                                  "code", WIRE_E_SOURCE, "message", message);
        CLEANUP(freep) char *body = error ? json_dumps(error, JSON_COMPACT) : NULL;
        struct wire_header header = { .type = WIRE_JSON,
                                      .size_bytes = body ? (uint32_t)strlen(body) : 0 };
        struct iovec pieces[] = { { &header, sizeof(header) }, { body, header.size_bytes } };
        struct msghdr frame = { .msg_iov = pieces, .msg_iovlen = ARRAY_SIZE(pieces) };

        json_decref(error);
        if (body && sendmsg(daemon->options->socket_fd, &frame, MSG_NOSIGNAL) < 0)
                log_error("cannot tell the client", "reason=%s", strerror(errno));
}

/* A private daemon looks at its URL before it serves: if that is wrong it has nothing to serve. */
static int check_private_source(struct daemon *daemon) {
        const struct config *config = &daemon->options->config;
        const char *message = NULL;
        int r = 0;

        for (size_t i = 0; r == 0 && i < config->source_count; i++)
                r = pipeline_add_source(daemon->pipeline, &config->sources[i], &message);
        if (r == 0)
                return 0;
        tell_private_client(daemon, message ? message : strerror(-r));
        return PRIVATE_SOURCE_REFUSED;
}

static int daemon_start(struct daemon *daemon) {
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(daemon->signals); i++) {
                uv_signal_init(&daemon->loop, &daemon->signals[i]);
                daemon->signals[i].data = daemon;
                uv_signal_start(&daemon->signals[i], on_signal, end_signals[i]);
        }
        r = start_pipeline(daemon);
        if (r == 0 && daemon->options->is_private)
                r = check_private_source(daemon);
        if (r == 0)
                r = start_server(daemon);
        if (r == 0 && !daemon->options->is_private)
                r = add_sources(daemon);
        return r;
}

int daemon_run(const struct daemon_options *options) {
        struct daemon daemon = { .options = options };
        int r = uv_loop_init(&daemon.loop);

        if (r < 0)
                return r;
        signal(SIGPIPE, SIG_IGN);
        log_set_level(options->config.log_level);
        r = daemon_start(&daemon);
        if (r != 0)
                daemon_end(&daemon);
        uv_run(&daemon.loop, UV_RUN_DEFAULT);
        free(daemon.remember);
        MUST(uv_loop_close(&daemon.loop) == 0);
        return r;
}
