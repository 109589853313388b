/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `progress` is paced: the first change is told at once, the next ones when a one-shot timer fires,
 * which is only started while something has changed. Adding up a source costs time that grows with
 * its files, so the pace slows down with it.
 */
#include "daemon/serve/server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base.h"
#include "daemon/core/log.h"
#include "daemon/serve/catalog_json.h"
#include "daemon/serve/listener.h"
#include "daemon/serve/name.h"
#include "daemon/serve/peer.h"

#define PROGRESS_MS 100
#define PROGRESS_SHARE 20 /* at most one part in so many of the time goes into it */

struct server {
        uv_loop_t *loop;
        struct pipeline *pipeline;
        struct server_options options;
        struct listener *listener;
        struct list peers;
        size_t peer_count;
        uint64_t next_session;
        uint64_t started_ns;

        uv_timer_t progress_timer;
        const struct catalog_source **changed; /* sources that changed since they were told of */
        size_t changed_count, changed_space;

        bool closing, listener_closed, timer_closed, on_end_called;
        void (*on_closed)(void *userdata);
        void *closed_userdata;
};

struct pipeline *server_pipeline(struct server *server) {
        return server->pipeline;
}

const struct server_options *server_options(const struct server *server) {
        return &server->options;
}

struct list *server_peers(struct server *server) {
        return &server->peers;
}

uint64_t server_next_session(struct server *server) {
        return server->next_session++;
}

uint64_t server_uptime_ns(const struct server *server) {
        return uv_hrtime() - server->started_ns;
}

static void server_free(struct server *server) {
        free((void *)server->options.socket_path);
        free((void *)server->options.version);
        free((void *)server->options.allow_uids);
        free((void *)server->options.admin_uids);
        free(server->changed);
        free(server);
}

static void finish_close(struct server *server) {
        void (*on_closed)(void *userdata) = server->on_closed;
        void *userdata = server->closed_userdata;

        if (!server->closing || !server->listener_closed || !server->timer_closed ||
            server->peer_count)
                return;
        server_free(server);
        on_closed(userdata);
}

void server_peer_gone(struct server *server, bool was_private) {
        server->peer_count--;
        if (server->closing)
                finish_close(server);
        else if (was_private && server->options.on_end)
                server->options.on_end(server->options.userdata);
}

/* Sends a notification to everybody whom it interests; takes params. */
static void notify(struct server *server, const char *method, json_t *take_params) {
        list_for_each(node, &server->peers) {
                struct peer *peer = list_owner(node, struct peer, link);

                if (take_params && peer_listens(peer))
                        connection_notify(peer->connection,
                                          rpc_notification(method, json_incref(take_params)));
        }
        json_decref(take_params);
}

static bool somebody_listens(const struct server *server) {
        list_for_each(node, &server->peers) {
                if (peer_listens(list_owner(node, struct peer, link)))
                        return true;
        }
        return false;
}

static void on_progress_timer(uv_timer_t *timer);

static void tell_progress(struct server *server) {
        uint64_t begin_ns = uv_hrtime(), cost_ms;

        if (somebody_listens(server)) {
                for (size_t i = 0; i < server->changed_count; i++)
                        notify(server, "progress", catalog_json_progress(server->changed[i]));
        }
        server->changed_count = 0;
        cost_ms = (uv_hrtime() - begin_ns) / 1000000;
        uv_timer_start(&server->progress_timer, on_progress_timer,
                       max_u64(PROGRESS_MS, PROGRESS_SHARE * cost_ms), 0);
}

static void on_progress_timer(uv_timer_t *timer) {
        struct server *server = timer->data;

        if (server->changed_count)
                tell_progress(server);
}

static void note_changed(struct server *server, const struct catalog_source *source) {
        for (size_t i = 0; i < server->changed_count; i++) {
                if (server->changed[i] == source)
                        return;
        }
        if (server->changed_count == server->changed_space) {
                size_t space = server->changed_space ? 2 * server->changed_space : 8;
                void *grown = realloc(server->changed, space * sizeof(*server->changed));

                if (!grown)
                        return; /* one progress less */
                server->changed = grown;
                server->changed_space = space;
        }
        server->changed[server->changed_count++] = source;
}

static void on_progress(void *userdata, const struct catalog_source *source) {
        struct server *server = userdata;

        if (server->closing || !somebody_listens(server))
                return;
        note_changed(server, source);
        if (!uv_is_active((uv_handle_t *)&server->progress_timer))
                /* not from inside the pipeline */
                uv_timer_start(&server->progress_timer, on_progress_timer, 0, 0);
}

static json_t *params_of(const struct catalog_source *source) {
        json_t *params = json_object();

        name_set(params, "source", source->name, strlen(source->name));
        return params;
}

static json_t *params_of_file(const struct catalog_file *file) {
        json_t *params = params_of(file->run->source);

        name_set(params, "path", file->path.bytes, file->path.size);
        return params;
}

static json_t *add_failure(json_t *take_params, const struct store_failure *failure) {
        name_set(take_params, "code", failure->code, strlen(failure->code));
        name_set(take_params, "message", failure->message, strlen(failure->message));
        return take_params;
}

static void on_run_gone(void *userdata, const struct catalog_run *run) {
        struct server *server = userdata;
        json_t *params = params_of(run->source);

        log_info("run gone", "source=%s run=%s", run->source->name, run->name.bytes);
        name_set(params, "run", run->name.bytes, run->name.size);
        notify(server, "run_gone", params);
}

static void on_file_replaced(void *userdata, const struct catalog_file *file) {
        struct server *server = userdata;
        json_t *params = params_of_file(file);

        log_info("file replaced", "source=%s path=%s", file->run->source->name, file->path.bytes);
        json_object_set_new(params, "version", name_id(file->version));
        notify(server, "file_replaced", params);
}

static bool is_first_place(const struct file_damage *damage, const struct damaged_place *place) {
        return damage->named_count == 0 || damage->named[0].offset == place->offset;
}

/*
 * One warning a file, and one notification a block: where the places are is in `files` and
 * `damage`.
 */
static void on_file_damaged(void *userdata, const struct catalog_file *file,
                            const struct damaged_place *first) {
        struct server *server = userdata;
        json_t *params = params_of_file(file);
        json_t *place = catalog_json_place(first);

        if (is_first_place(file->damage, first))
                log_warning("damaged record skipped", "source=%s path=%s offset=%llu reason=\"%s\"",
                            file->run->source->name, file->path.bytes,
                            (unsigned long long)first->offset, damage_name(first->reason));
        if (place)
                json_object_update(params, place);
        json_decref(place);
        catalog_json_set_damage(params, file->damage);
        notify(server, "file_damaged", params);
}

static void on_file_failed(void *userdata, const struct catalog_file *file) {
        static const struct store_failure unknown = { .code = "ENOMEM" };
        const struct store_failure *failure = file->failure ? file->failure : &unknown;
        struct server *server = userdata;

        log_warning("file cannot be read", "source=%s path=%s code=\"%s\" message=\"%s\"",
                    file->run->source->name, file->path.bytes, failure->code, failure->message);
        notify(server, "file_failed", add_failure(params_of_file(file), failure));
}

static void on_source_failing(void *userdata, const struct catalog_source *source) {
        struct server *server = userdata;

        log_warning("source cannot be listed", "source=%s code=\"%s\" message=\"%s\"", source->name,
                    source->failure.code, source->failure.message);
        notify(server, "source_failing", add_failure(params_of(source), &source->failure));
}

static void on_source_recovered(void *userdata, const struct catalog_source *source) {
        struct server *server = userdata;

        log_info("source can be listed again", "source=%s", source->name);
        notify(server, "source_recovered", params_of(source));
}

static void on_source_added(void *userdata, const struct catalog_source *source) {
        struct server *server = userdata;
        json_t *params = params_of(source);

        log_info("source added", "source=%s url=%s", source->name, source->store->url);
        name_set(params, "url", source->store->url, strlen(source->store->url));
        notify(server, "source_added", params);
}

static void on_source_removed(void *userdata, const struct catalog_source *source) {
        struct server *server = userdata;

        log_info("source removed", "source=%s", source->name);
        for (size_t i = server->changed_count; i-- > 0;) {
                if (server->changed[i] == source)
                        server->changed[i] = server->changed[--server->changed_count];
        }
        notify(server, "source_removed", params_of(source));
}

static const struct pipeline_events events = {
        .progress = on_progress,
        .run_gone = on_run_gone,
        .file_replaced = on_file_replaced,
        .file_damaged = on_file_damaged,
        .file_failed = on_file_failed,
        .source_failing = on_source_failing,
        .source_recovered = on_source_recovered,
        .source_added = on_source_added,
        .source_removed = on_source_removed,
};

static bool is_allowed(const struct server *server, uid_t uid) {
        if (!server->options.allow_uid_count || uid == 0 || uid == geteuid())
                return true;
        for (size_t i = 0; i < server->options.allow_uid_count; i++) {
                if (server->options.allow_uids[i] == uid)
                        return true;
        }
        return false;
}

/* One error frame, if the socket takes it; whoever speaks lines sees at least that it is closed. */
static void refuse(int take_fd, int code, const char *message) {
        CLEANUP(close_fdp) int fd = take_fd;
        json_t *error = rpc_error(NULL, code, message, NULL);
        CLEANUP(freep) char *text = error ? json_dumps(error, JSON_COMPACT) : NULL;
        struct wire_header header = { .type = WIRE_JSON,
                                      .size_bytes = text ? (uint32_t)strlen(text) : 0 };
        struct iovec parts[2] = { { &header, sizeof(header) }, { text, header.size_bytes } };
        struct msghdr frame = { .msg_iov = parts, .msg_iovlen = 2 };

        json_decref(error);
        if (text)
                sendmsg(fd, &frame, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int take_peer(struct server *server, int take_fd, uid_t uid, pid_t pid, bool is_private) {
        int r = peer_new(server, server->loop, take_fd, uid, pid, is_private);

        if (!r)
                server->peer_count++;
        return r;
}

static void on_connection(void *userdata, int take_fd, uid_t uid, pid_t pid) {
        struct server *server = userdata;
        int r;

        if (!is_allowed(server, uid)) {
                log_warning("client refused", "uid=%u pid=%d reason=allow_uids", (unsigned)uid,
                            (int)pid);
                refuse(take_fd, WIRE_E_NOT_ALLOWED, "this user is not in allow_uids");
                return;
        }
        if (server->peer_count >= server->options.connections_max) {
                log_warning("client refused", "uid=%u pid=%d reason=connections_max", (unsigned)uid,
                            (int)pid);
                refuse(take_fd, WIRE_E_LIMIT, "the daemon has as many connections as it may");
                return;
        }
        r = take_peer(server, take_fd, uid, pid, false);
        if (r)
                log_warning("client lost", "uid=%u pid=%d error=\"%s\"", (unsigned)uid, (int)pid,
                            strerror(-r));
}

static uid_t *copy_uids(const uid_t *uids, size_t count) {
        uid_t *copy = malloc((count + 1) * sizeof(*copy));

        if (copy && count)
                memcpy(copy, uids, count * sizeof(*copy));
        return copy;
}

/* The whole of options, with its own copies, but for allow_sources. The descriptor is not kept here. */
static int copy_options(struct server *server, const struct server_options *options) {
        uid_t *uids = copy_uids(options->allow_uids, options->allow_uid_count);
        uid_t *admins = copy_uids(options->admin_uids, options->admin_uid_count);

        server->options = *options;
        server->options.socket_fd = -1;
        server->options.socket_path = options->socket_path ? strdup(options->socket_path) : NULL;
        server->options.version = strdup(options->version);
        server->options.allow_uids = uids;
        server->options.admin_uids = admins;
        if (!server->options.connections_max)
                server->options.connections_max = SERVER_CONNECTIONS_MOST;
        return uids && admins && server->options.version &&
                               (server->options.socket_path || !options->socket_path)
                       ? 0
                       : -ENOMEM;
}

static void server_freep(struct server **server) {
        if (*server)
                server_free(*server);
}

int server_new(uv_loop_t *loop, struct pipeline *pipeline, const struct server_options *options,
               struct server **ret_server, char **ret_error) {
        CLEANUP(close_fdp) int fd = options->socket_fd;
        CLEANUP(server_freep) struct server *server = calloc(1, sizeof(*server));
        int r = server ? copy_options(server, options) : -ENOMEM;

        *ret_error = NULL;
        if (r)
                return r;
        server->loop = loop;
        server->pipeline = pipeline;
        server->next_session = 1;
        server->started_ns = uv_hrtime();
        list_init(&server->peers);
        if (server->options.socket_path)
                r = listener_new(loop, server->options.socket_path, on_connection, server,
                                 &server->listener, ret_error);
        if (!r && fd >= 0)
                r = take_peer(server, steal_fd(&fd), geteuid(), 0, true);
        if (r)
                return r;
        uv_timer_init(loop, &server->progress_timer);
        server->progress_timer.data = server;
        pipeline_listen(pipeline, &events, server);
        *ret_server = steal_pointer(&server);
        return 0;
}

static void on_listener_closed(void *userdata) {
        struct server *server = userdata;

        server->listener_closed = true;
        finish_close(server);
}

static void on_timer_closed(uv_handle_t *handle) {
        struct server *server = handle->data;

        server->timer_closed = true;
        finish_close(server);
}

void server_close(struct server *server, void (*on_closed)(void *userdata), void *userdata) {
        static const struct pipeline_events nothing = { 0 };

        server->closing = true;
        server->on_closed = on_closed;
        server->closed_userdata = userdata;
        pipeline_listen(server->pipeline, &nothing, NULL);
        list_for_each(node, &server->peers)
                connection_fail(list_owner(node, struct peer, link)->connection);
        uv_close((uv_handle_t *)&server->progress_timer, on_timer_closed);
        listener_close(server->listener, on_listener_closed, server);
}
