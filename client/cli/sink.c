/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cli/sink.h"

#include <errno.h>
#include <poll.h>

#include "common/base.h"

#define SINK_BYTES (256u << 10)

int sink_init(struct sink *sink, int fd) {
        *sink = (struct sink){ .fd = fd, .space = SINK_BYTES, .buffer = malloc(SINK_BYTES) };
        return sink->buffer ? 0 : -ENOMEM;
}

int sink_init_function(struct sink *sink,
                       int (*take)(void *userdata, const char *bytes, size_t size),
                       void *userdata) {
        int r = sink_init(sink, -1);

        sink->take = take;
        sink->userdata = userdata;
        return r;
}

void sink_deinit(struct sink *sink) {
        free(sink->buffer);
        *sink = (struct sink){ .fd = -1 };
}

static void write_all(struct sink *sink) {
        for (size_t sent = 0; sent < sink->size && !sink->error;) {
                ssize_t n = write(sink->fd, sink->buffer + sent, sink->size - sent);

                if (n >= 0)
                        sent += (size_t)n;
                else if (errno == EAGAIN)
                        /* somebody made it non-blocking */
                        poll(&(struct pollfd){ .fd = sink->fd, .events = POLLOUT }, 1, -1);
                else if (errno != EINTR)
                        sink->error = -errno;
        }
}

int sink_flush(struct sink *sink) {
        if (!sink->take)
                write_all(sink);
        else if (sink->size && !sink->error)
                sink->error = sink->take(sink->userdata, sink->buffer, sink->size);
        sink->size = 0;
        return sink->error;
}

char *sink_reserve(struct sink *sink, size_t size) {
        char *buffer;

        if (sink->space - sink->size >= size)
                return sink->buffer + sink->size;
        sink_flush(sink);
        if (sink->space < size) {
                buffer = realloc(sink->buffer, size);
                if (!buffer) {
                        sink->error = -ENOMEM;
                        return NULL;
                }
                sink->buffer = buffer;
                sink->space = size;
        }
        return sink->buffer;
}

void sink_add(struct sink *sink, const char *bytes, size_t size) {
        char *out = sink_reserve(sink, size);

        if (!out)
                return;
        memcpy(out, bytes, size);
        sink_commit(sink, out + size);
}
