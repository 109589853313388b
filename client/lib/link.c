/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lib/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "client/lib/call.h"
#include "client/lib/helper.h"
#include "client/lib/stream.h"
#include "client/lib/source_names.h"

int link_new(int take_fd, struct hr_connection **ret_connection) {
        struct hr_connection *connection = calloc(1, sizeof(*connection));

        if (!connection) {
                close(take_fd);
                return -ENOMEM;
        }
        fcntl(take_fd, F_SETFL, fcntl(take_fd, F_GETFL) | O_NONBLOCK);
        fcntl(take_fd, F_SETFD, FD_CLOEXEC);
        connection->fd = take_fd;
        wire_reader_init(&connection->reader, WIRE_DAEMON_BODY_MAX, false, true);
        wire_writer_init(&connection->writer);
        inbox_init(&connection->inbox);
        *ret_connection = connection;
        return 0;
}

struct hr_connection *link_free(struct hr_connection *connection) {
        if (!connection)
                return NULL;
        connection->stream = stream_free(connection->stream);
        call_reset(&connection->call);
        inbox_deinit(&connection->inbox);
        wire_reader_deinit(&connection->reader);
        wire_writer_deinit(&connection->writer);
        close(connection->fd);
        if (connection->helper)
                helper_end(connection->helper);
        json_decref(connection->hello);
        free(connection->daemon_name);
        free(connection->source);
        free(connection->prefix);
        source_names_free(connection->names);
        free(connection->error);
        free(connection->refusal_message);
        free(connection);
        return NULL;
}

static void link_set_error(struct hr_connection *connection, const char *format,
                           va_list arguments) {
        char *text = NULL;

        if (vasprintf(&text, format, arguments) < 0)
                text = NULL;
        free(connection->error);
        connection->error = text;
}

int link_fail(struct hr_connection *connection, int r, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        link_set_error(connection, format, arguments);
        va_end(arguments);
        return r;
}

int link_break(struct hr_connection *connection, int r, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        link_set_error(connection, format, arguments);
        va_end(arguments);
        connection->broken = r;
        return r;
}

static int link_flush(struct hr_connection *connection) {
        int r = wire_writer_flush(&connection->writer, connection->fd);

        /*
         * Where the daemon has closed there may still be its last words to read: receiving tells.
         */
        return r == -EPIPE || r == -ECONNRESET ? -EAGAIN : r;
}

static int link_handle(struct hr_connection *connection, struct wire_frame *frame) {
        int r = 0;

        if (frame->type == WIRE_JSON)
                r = call_take_message(connection, frame);
        else if (frame->type == WIRE_EXTENT &&
                 (r = inbox_take_frame(&connection->inbox, frame)) == -EPROTO)
                r = link_fail(connection, r, "%s: %s", hr_daemon_name(connection),
                              connection->inbox.problem);
        wire_frame_close_fds(frame);
        if (r < 0)
                connection->broken = r;
        return r;
}

static int link_receive(struct hr_connection *connection) {
        int r = wire_reader_receive(&connection->reader, connection->fd);

        if (r == -EAGAIN)
                return HR_AGAIN;
        if (r == -ECONNRESET)
                return link_break(connection, r, "%s: closed the connection",
                                  hr_daemon_name(connection));
        if (r == -EPROTO)
                return link_break(connection, r, "%s: %s", hr_daemon_name(connection),
                                  connection->reader.problem);
        if (r < 0)
                return link_break(connection, r, "%s: %s", hr_daemon_name(connection),
                                  strerror(-r));
        return 0;
}

int link_pump(struct hr_connection *connection) {
        struct wire_frame frame;
        int r;

        if (connection->broken)
                return connection->broken;
        r = link_flush(connection);
        if (r < 0 && r != -EAGAIN)
                return link_break(connection, r, "%s: %s", hr_daemon_name(connection),
                                  strerror(-r));
        if ((r = link_receive(connection)))
                return r;
        while ((r = wire_reader_next(&connection->reader, &frame)) == 0) {
                if ((r = link_handle(connection, &frame)) < 0)
                        return r;
        }
        if (r == -EPROTO)
                return link_break(connection, r, "%s: %s", hr_daemon_name(connection),
                                  connection->reader.problem);
        return 0;
}

static int64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t link_deadline(int timeout_ms) {
        return timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
}

int link_wait(struct hr_connection *connection, int64_t deadline_ms) {
        struct pollfd poll_fd = { .fd = connection->fd, .events = hr_events(connection) };
        int n, timeout_ms = -1;

        do {
                if (deadline_ms >= 0) {
                        int64_t left = deadline_ms - now_ms();

                        timeout_ms = left < 0 ? 0 : (int)min_u64((uint64_t)left, 1u << 30);
                }
                n = poll(&poll_fd, 1, timeout_ms);
        } while (n < 0 && errno == EINTR);
        if (n < 0)
                return link_fail(connection, -errno, "poll: %s", strerror(errno));
        return n == 0 ? HR_AGAIN : 0;
}

int hr_fd(const struct hr_connection *connection) {
        return connection->fd;
}

short hr_events(const struct hr_connection *connection) {
        return wire_writer_is_empty(&connection->writer) ? POLLIN : POLLIN | POLLOUT;
}

const char *hr_error(const struct hr_connection *connection) {
        return connection->error ? connection->error : "out of memory";
}

const char *hr_daemon_name(const struct hr_connection *connection) {
        return connection->daemon_name ? connection->daemon_name : "daemon";
}

bool hr_daemon_is_private(const struct hr_connection *connection) {
        return connection->is_private;
}

const char *hr_source(const struct hr_connection *connection) {
        return connection->source;
}

const char *hr_prefix(const struct hr_connection *connection) {
        return connection->prefix ? connection->prefix : "";
}

void hr_on_notification(struct hr_connection *connection,
                        void (*function)(void *userdata, const char *method, const char *params),
                        void *userdata) {
        connection->on_notification = function;
        connection->notification_userdata = userdata;
}

struct hr_connection *hr_close(struct hr_connection *connection) {
        return link_free(connection);
}

const char *hr_version(void) {
        return HEADRACE_VERSION;
}
