/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing are driven by one poll handle; what it waits for is recomputed after every
 * step. While more than a few MiB of answers wait, no input is taken: the client that does not read
 * is made to wait, and nobody else. An idle handle, active for one turn of the loop at a time,
 * carries what must not happen inside of a call.
 */
#include "daemon/serve/connection.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base.h"
#include "common/wire.h"
#include "daemon/core/log.h"
#include "daemon/serve/output.h"
#include "daemon/serve/rpc.h"

#define PAUSE_BYTES (4u << 20)  /* waiting answers above this: no further requests are taken */
#define NOTIFY_BYTES (1u << 20) /* likewise: notifications are dropped */
#define EXTENT_FRAME_BYTES (1u << 20)
#define SEND_BUFFER_BYTES (1 << 20)

enum connection_state {
        CONNECTION_OPEN,
        CONNECTION_INPUT_ENDED, /* lines: answers are still wanted */
        CONNECTION_FINISHING,   /* closes when the output is written */
        CONNECTION_CLOSING,     /* the handles are being closed */
};

struct connection {
        uv_poll_t poll;
        uv_idle_t soon;
        int fd;
        int watched; /* events that the poll handle waits for */
        unsigned open_handles;
        enum connection_state state;
        bool dispatching; /* messages are being taken: the writing comes after the last of them */
        bool held;        /* whole messages that have arrived wait until answers are written */
        struct wire_reader reader;
        struct output output;
        const struct connection_operations *operations;
        void *userdata;
};

static void on_poll(uv_poll_t *poll, int status, int events);

static void on_handle_closed(uv_handle_t *handle) {
        struct connection *connection = handle->data;

        if (--connection->open_handles)
                return;
        close(connection->fd);
        output_deinit(&connection->output);
        wire_reader_deinit(&connection->reader);
        connection->operations->on_closed(connection->userdata);
        free(connection);
}

void connection_fail(struct connection *connection) {
        if (connection->state == CONNECTION_CLOSING)
                return;
        connection->state = CONNECTION_CLOSING;
        uv_close((uv_handle_t *)&connection->poll, on_handle_closed);
        uv_close((uv_handle_t *)&connection->soon, on_handle_closed);
}

static bool is_paused(const struct connection *connection) {
        return connection->output.answer_bytes > PAUSE_BYTES;
}

static void connection_watch(struct connection *connection) {
        int events = 0;

        if (connection->state == CONNECTION_CLOSING)
                return;
        if (connection->state == CONNECTION_OPEN && !is_paused(connection))
                events |= UV_READABLE;
        if (!output_is_empty(&connection->output))
                events |= UV_WRITABLE;
        if (events == connection->watched)
                return;
        connection->watched = events;
        if (events ? uv_poll_start(&connection->poll, events, on_poll)
                   : uv_poll_stop(&connection->poll))
                connection_fail(connection);
}

/* Writes what the socket takes and recomputes what to wait for. */
static void connection_write(struct connection *connection) {
        uint64_t payload_bytes = connection->output.payload_bytes;
        int r;

        if (connection->state == CONNECTION_CLOSING)
                return;
        r = output_send(&connection->output, connection->fd);
        if (r < 0) {
                connection_fail(connection); /* the client went away: nothing to report */
                return;
        }
        if (r == 0 && connection->state == CONNECTION_FINISHING) {
                connection_fail(connection);
                return;
        }
        if ((connection->held && !is_paused(connection)) ||
            (payload_bytes && !connection->output.payload_bytes))
                connection_soon(connection);
        connection_watch(connection);
}

void connection_flush(struct connection *connection) {
        if (!connection->dispatching)
                connection_write(connection);
}

static void take_frame(struct connection *connection, const struct wire_frame *frame) {
        switch (frame->type) {
        case WIRE_JSON:
                connection->operations->on_json(connection->userdata, (const char *)frame->body,
                                                frame->size_bytes);
                break;
        case WIRE_WAKE:
                connection->operations->on_wake(connection->userdata);
                break;
        default:
                connection_finish_with_error(connection, WIRE_E_INVALID,
                                             "clients send JSON and wake frames only");
        }
}

/* Takes the whole messages that have arrived, until there are none or too many answers wait. */
static void take_frames(struct connection *connection) {
        struct wire_frame frame;
        int r = STAGE_MORE;

        connection->dispatching = true;
        while (connection->state == CONNECTION_OPEN && !is_paused(connection) &&
               (r = wire_reader_next(&connection->reader, &frame)) == 0)
                take_frame(connection, &frame);
        connection->dispatching = false;
        connection->held = connection->state == CONNECTION_OPEN && r == 0;
        if (r < 0 && connection->state == CONNECTION_OPEN)
                connection_finish_with_error(connection, WIRE_E_INVALID,
                                             connection->reader.problem ? connection->reader.problem
                                                                        : strerror(-r));
}

static void connection_dispatch(struct connection *connection) {
        do {
                take_frames(connection);
                connection_write(connection);
        } while (connection->held && !is_paused(connection) &&
                 connection->state == CONNECTION_OPEN);
}

/*
 * The client has closed its end, or half of it. A line that it did not end is complete now. While
 * messages are held the end waits, too: it will be read again.
 */
static void end_input(struct connection *connection) {
        if (!connection->reader.lines) {
                connection_fail(connection);
                return;
        }
        if (wire_reader_feed(&connection->reader, "\n", 1) == 0)
                connection_dispatch(connection);
        if (connection->held || connection->state != CONNECTION_OPEN)
                return;
        connection->state = CONNECTION_INPUT_ENDED;
        connection->operations->on_input_end(connection->userdata);
        connection_watch(connection);
}

static void connection_read(struct connection *connection) {
        int r = wire_reader_receive(&connection->reader, connection->fd);

        if (r == -EAGAIN)
                return;
        if (r == -ECONNRESET)
                end_input(connection);
        else if (r < 0 && r != -ENOBUFS)
                connection_fail(connection);
        else
                connection_dispatch(connection);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
        struct connection *connection = poll->data;

        if (status < 0) {
                connection_fail(connection);
                return;
        }
        if (events & UV_WRITABLE)
                connection_write(connection);
        if (connection->state != CONNECTION_OPEN || is_paused(connection))
                return;
        if (connection->held)
                connection_dispatch(connection);
        else if (events & UV_READABLE)
                connection_read(connection);
}

static void on_idle(uv_idle_t *idle) {
        struct connection *connection = idle->data;

        uv_idle_stop(idle);
        if (connection->held && !is_paused(connection) && connection->state == CONNECTION_OPEN)
                connection_dispatch(connection);
        if (connection->state != CONNECTION_CLOSING)
                connection->operations->on_soon(connection->userdata);
}

void connection_soon(struct connection *connection) {
        if (connection->state != CONNECTION_CLOSING)
                uv_idle_start(&connection->soon, on_idle);
}

int connection_new(uv_loop_t *loop, int take_fd, const struct connection_operations *operations,
                   void *userdata, struct connection **ret_connection) {
        CLEANUP(close_fdp) int fd = take_fd;
        CLEANUP(freep) struct connection *connection = calloc(1, sizeof(*connection));
        int buffer_bytes = SEND_BUFFER_BYTES;
        int r;

        if (!connection)
                return -ENOMEM;
        r = uv_poll_init(loop, &connection->poll, fd);
        if (r)
                return r;
        /* as much of it as there may be */
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
        uv_idle_init(loop, &connection->soon);
        connection->open_handles = 2;
        connection->poll.data = connection->soon.data = connection;
        connection->fd = steal_fd(&fd);
        connection->operations = operations;
        connection->userdata = userdata;
        wire_reader_init(&connection->reader, WIRE_CLIENT_BODY_MAX, true, false);
        output_init(&connection->output);
        connection_watch(connection);
        *ret_connection = steal_pointer(&connection);
        return 0;
}

bool connection_is_open(const struct connection *connection) {
        return connection->state == CONNECTION_OPEN || connection->state == CONNECTION_INPUT_ENDED;
}

bool connection_is_framed(const struct connection *connection) {
        return !connection->reader.lines;
}

uint64_t connection_payload_bytes(const struct connection *connection) {
        return connection->output.payload_bytes;
}

/*
 * Queues a text as a frame or a line; takes the text, whose terminating NUL becomes the line's end.
 */
static int queue_text(struct connection *connection, char *take_text, size_t size, int *take_fds,
                      unsigned fd_count, uint64_t payload_bytes) {
        struct wire_header header = { .type = WIRE_JSON,
                                      .fds = (uint8_t)fd_count,
                                      .size_bytes = (uint32_t)size };
        struct output_part part = {
                .body = take_text,
                .body_size = size,
                .take_memory = take_text,
                .answer_bytes = size + 1,
                .payload_bytes = payload_bytes,
                .take_fds = take_fds,
                .fd_count = fd_count,
        };

        if (connection->reader.lines) {
                take_text[size] = '\n';
                part.body_size++;
        } else {
                part.head = &header;
                part.head_size = sizeof(header);
        }
        return output_add(&connection->output, &part);
}

static void drop_fds(int *fds, unsigned fd_count) {
        for (unsigned i = 0; i < fd_count; i++)
                close_fdp(&fds[i]);
}

/*
 * The message's text, or, where it would be larger than a frame, an error's in its place. NULL: no
 * memory.
 */
static char *print_message(const json_t *message) {
        char *text = json_dumps(message, JSON_COMPACT);
        json_t *error;

        if (!text || strlen(text) <= WIRE_DAEMON_BODY_MAX)
                return text;
        free(text);
        error = rpc_error(json_object_get(message, "id"), WIRE_E_LIMIT,
                          "the answer is larger than a frame may be", NULL);
        text = json_dumps(error, JSON_COMPACT);
        json_decref(error);
        return text;
}

static void send_message(struct connection *connection, json_t *take_message, int *take_fds,
                         unsigned fd_count, uint64_t payload_bytes) {
        char *text = connection_is_open(connection) ? print_message(take_message) : NULL;
        size_t size = text ? strlen(text) : 0;

        json_decref(take_message);
        if (!text) {
                drop_fds(take_fds, fd_count);
                if (connection_is_open(connection))
                        /* no memory: better no answer than a wrong one */
                        connection_fail(connection);
                return;
        }
        if (queue_text(connection, text, size, take_fds, fd_count, payload_bytes)) {
                connection_fail(connection);
        } else if (connection->output.answer_bytes > CONNECTION_OUTPUT_MOST_BYTES) {
                log_warning("client does not read its answers, closed", "waiting_bytes=%llu",
                            (unsigned long long)connection->output.answer_bytes);
                connection_fail(connection);
        } else {
                connection_flush(connection);
        }
}

void connection_send_json(struct connection *connection, json_t *take_message, int *take_fds,
                          unsigned fd_count) {
        send_message(connection, take_message, take_fds, fd_count, 0);
}

void connection_send_memory(struct connection *connection, json_t *take_message, int take_fd,
                            uint64_t size_bytes) {
        send_message(connection, take_message, &take_fd, 1, size_bytes);
}

void connection_notify(struct connection *connection, json_t *take_message) {
        if (connection->output.answer_bytes > NOTIFY_BYTES)
                json_decref(take_message);
        else
                connection_send_json(connection, take_message, NULL, 0);
}

struct extent_head {
        struct wire_header header;
        struct ring_entry entry;
};

static_assert(sizeof(struct extent_head) == OUTPUT_HEAD_MAX, "a frame's head is what is sent");

int connection_queue_extent(struct connection *connection, const struct ring_entry *entry,
                            const void *extent) {
        struct extent_head head = {
                .header = { .type = WIRE_EXTENT,
                            .size_bytes = (uint32_t)sizeof(*entry) + entry->size_bytes },
                .entry = *entry,
        };
        struct output_part part = { .head = &head,
                                    .head_size = sizeof(head),
                                    .body = extent,
                                    .body_size = entry->size_bytes,
                                    .is_entry = true };

        return output_add(&connection->output, &part);
}

uint64_t connection_extents_waiting(const struct connection *connection) {
        return connection->output.entries_waiting;
}

/* The last frame owns the memory: by then all others are written. */
void connection_send_extent(struct connection *connection, const struct ring_entry *entry,
                            void *take_extent, uint64_t size_bytes) {
        struct extent_head head = { .entry = *entry };
        const uint8_t *bytes = take_extent;
        int r = connection_is_open(connection) ? 0 : -EPIPE;
        uint64_t offset = 0;

        while (r == 0 && offset < size_bytes) {
                size_t head_size = offset ? sizeof(head.header) : sizeof(head);
                size_t entry_size = head_size - sizeof(head.header);
                uint64_t piece = min_u64(size_bytes - offset, EXTENT_FRAME_BYTES - entry_size);
                bool last = offset + piece == size_bytes;
                struct output_part part = {
                        .head = &head,
                        .head_size = head_size,
                        .body = bytes + offset,
                        .body_size = piece,
                        .take_memory = last ? steal_pointer(&take_extent) : NULL,
                        .payload_bytes = last ? size_bytes : 0,
                };

                head.header = (struct wire_header){
                        .type = WIRE_EXTENT,
                        .flags = last ? 0 : WIRE_MORE,
                        .size_bytes = (uint32_t)(entry_size + piece),
                };
                r = output_add(&connection->output, &part);
                offset += piece;
        }
        if (r) {
                connection_fail(connection); /* nothing of the queue is read after this */
                free(take_extent);
                return;
        }
        connection_flush(connection);
}

void connection_wake(struct connection *connection) {
        struct wire_header header = { .type = WIRE_WAKE };
        struct output_part part = { .head = &header, .head_size = sizeof(header), .is_wake = true };

        if (!connection_is_open(connection))
                return;
        if (!connection->output.wake_waits && output_add(&connection->output, &part))
                connection_fail(connection);
        else
                connection_flush(connection);
}

void connection_finish(struct connection *connection) {
        if (!connection_is_open(connection))
                return;
        connection->state = CONNECTION_FINISHING;
        connection_flush(connection);
}

void connection_finish_with_error(struct connection *connection, int code, const char *message) {
        connection_send_json(connection, rpc_error(NULL, code, message, NULL), NULL, 0);
        connection_finish(connection);
}
