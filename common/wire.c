/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader keeps one contiguous buffer: a frame is complete when its bytes lie in it. The buffer
 * doubles only when it is full of received bytes, so a peer that promises 16 MiB and sends nine
 * bytes costs one page.
 */
#include "common/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base.h"

#define READER_FIRST_BYTES 4096u
#define READER_KEEP_BYTES (256u << 10) /* an empty buffer above this is given back */

void wire_frame_close_fds(struct wire_frame *frame) {
        for (unsigned i = 0; i < frame->fd_count; i++)
                close_fdp(&frame->fds[i]);
        frame->fd_count = 0;
}

void wire_reader_init(struct wire_reader *reader, uint32_t body_max, bool accept_lines,
                      bool receive_fds) {
        *reader = (struct wire_reader){
                .body_max = body_max,
                .accept_lines = accept_lines,
                .receive_fds = receive_fds,
        };
}

void wire_reader_deinit(struct wire_reader *reader) {
        for (unsigned i = 0; i < reader->fd_count; i++)
                close(reader->fds[i]);
        free(reader->buffer);
        *reader = (struct wire_reader){ 0 };
}

static int reader_fail(struct wire_reader *reader, const char *problem) {
        reader->problem = problem;
        return -EPROTO;
}

static size_t reader_space_max(const struct wire_reader *reader) {
        return sizeof(struct wire_header) + (size_t)reader->body_max;
}

/*
 * Makes room behind end: moves the unread bytes to the front, then doubles up to one whole frame.
 */
static int reader_make_room(struct wire_reader *reader) {
        size_t space = reader->space, unread = reader->end - reader->begin;
        uint8_t *buffer;

        if (unread == 0 && space > READER_KEEP_BYTES) {
                free(reader->buffer);
                reader->buffer = NULL;
                reader->space = space = 0;
        }
        if (unread)
                memmove(reader->buffer, reader->buffer + reader->begin, unread);
        reader->begin = 0;
        reader->end = unread;
        if (unread < space)
                return 0;
        if (space >= reader_space_max(reader))
                return -ENOBUFS;
        space = min_u64(space ? 2 * space : READER_FIRST_BYTES, reader_space_max(reader));
        buffer = realloc(reader->buffer, space);
        if (!buffer)
                return -ENOMEM;
        reader->buffer = buffer;
        reader->space = space;
        return 0;
}

/*
 * Takes the descriptors out of the control messages. All of them are ours to close, also where they
 * are too many.
 */
static int reader_take_fds(struct wire_reader *reader, struct msghdr *message) {
        int r = message->msg_flags & MSG_CTRUNC ? reader_fail(reader, "descriptors were cut off")
                                                : 0;

        for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control;
             control = CMSG_NXTHDR(message, control)) {
                size_t count;

                if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
                        continue;
                count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(fd));
                        if (reader->fd_count < WIRE_FDS_WAITING_MAX) {
                                reader->fds[reader->fd_count++] = fd;
                        } else {
                                close(fd);
                                r = reader_fail(reader, "too many descriptors");
                        }
                }
        }
        return r;
}

static ssize_t reader_recvmsg(struct wire_reader *reader, int socket_fd, int *ret_r) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
        } control;
        struct iovec part = { reader->buffer + reader->end, reader->space - reader->end };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        *ret_r = n < 0 ? 0 : reader_take_fds(reader, &message);
        return n;
}

int wire_reader_receive(struct wire_reader *reader, int socket_fd) {
        int r = reader_make_room(reader);
        ssize_t n;

        if (r < 0)
                return r;
        do {
                if (reader->receive_fds)
                        n = reader_recvmsg(reader, socket_fd, &r);
                else
                        n = recv(socket_fd, reader->buffer + reader->end,
                                 reader->space - reader->end, MSG_DONTWAIT);
        } while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        reader->end += (size_t)n;
        if (r < 0)
                return r;
        return n == 0 ? -ECONNRESET : 0;
}

int wire_reader_feed(struct wire_reader *reader, const void *bytes, size_t size) {
        while (size > 0) {
                size_t taken;
                int r = reader_make_room(reader);

                if (r < 0)
                        return r;
                taken = min_u64(size, reader->space - reader->end);
                memcpy(reader->buffer + reader->end, bytes, taken);
                reader->end += taken;
                bytes = (const uint8_t *)bytes + taken;
                size -= taken;
        }
        return 0;
}

static int reader_next_line(struct wire_reader *reader, struct wire_frame *ret_frame) {
        const uint8_t *line = reader->buffer + reader->begin;
        size_t unread = reader->end - reader->begin, size;
        const uint8_t *newline = memchr(line + reader->scanned, '\n', unread - reader->scanned);

        size = newline ? (size_t)(newline - line) : unread;
        if (size > reader->body_max)
                return reader_fail(reader, "line too long");
        if (!newline) {
                reader->scanned = unread;
                return STAGE_MORE;
        }
        reader->scanned = 0;
        reader->begin += size + 1;
        *ret_frame = (struct wire_frame){ .type = WIRE_JSON,
                                          .size_bytes = (uint32_t)size,
                                          .body = line };
        return 0;
}

static const char *header_problem(const struct wire_header *header, uint32_t body_max) {
        if (header->type < WIRE_JSON || header->type > WIRE_WAKE)
                return "unknown frame type";
        if (header->fds > WIRE_FDS_MAX)
                return "too many descriptors in a frame";
        if (header->size_bytes > body_max)
                return "frame too long";
        if (header->type == WIRE_WAKE && header->size_bytes > 0)
                return "wake frame with a body";
        return NULL;
}

static int reader_frame_take_fds(struct wire_reader *reader, unsigned count,
                                 struct wire_frame *frame) {
        if (!reader->receive_fds || count == 0)
                return 0;
        if (count > reader->fd_count)
                return reader_fail(reader, "descriptors are missing");
        memcpy(frame->fds, reader->fds, count * sizeof(int));
        frame->fd_count = (uint8_t)count;
        reader->fd_count -= count;
        memmove(reader->fds, reader->fds + count, reader->fd_count * sizeof(int));
        return 0;
}

int wire_reader_next(struct wire_reader *reader, struct wire_frame *ret_frame) {
        size_t unread = reader->end - reader->begin;
        struct wire_frame frame = { 0 };
        struct wire_header header;
        int r;

        if (reader->problem)
                return -EPROTO;
        if (unread == 0)
                return STAGE_MORE;
        if (!reader->begun) {
                reader->begun = true;
                reader->lines = reader->accept_lines && reader->buffer[reader->begin] == '{';
        }
        if (reader->lines)
                return reader_next_line(reader, ret_frame);
        if (unread < sizeof(header))
                return STAGE_MORE;
        memcpy(&header, reader->buffer + reader->begin, sizeof(header));
        if ((reader->problem = header_problem(&header, reader->body_max)))
                return -EPROTO;
        if (unread - sizeof(header) < header.size_bytes)
                return STAGE_MORE;

        if ((r = reader_frame_take_fds(reader, header.fds, &frame)) < 0)
                return r;
        frame.type = header.type;
        frame.flags = header.flags;
        frame.size_bytes = header.size_bytes;
        frame.body = reader->buffer + reader->begin + sizeof(header);
        reader->begin += sizeof(header) + header.size_bytes;
        *ret_frame = frame;
        return 0;
}

/*
 * Bytes that wait to be sent. Descriptors go with the first of them, as the kernel delivers them no
 * later.
 */
struct wire_chunk {
        struct wire_chunk *next;
        size_t size, sent;
        bool wake;
        unsigned fd_count;
        int fds[WIRE_FDS_MAX];
        uint8_t bytes[];
};

static struct wire_chunk *chunk_free(struct wire_chunk *chunk) {
        if (!chunk)
                return NULL;
        for (unsigned i = 0; i < chunk->fd_count; i++)
                close(chunk->fds[i]);
        free(chunk);
        return NULL;
}

static void chunk_freep(struct wire_chunk **chunk) {
        chunk_free(*chunk);
}

static struct wire_chunk *chunk_new(size_t size) {
        struct wire_chunk *chunk = malloc(sizeof(*chunk) + size);

        if (chunk)
                *chunk = (struct wire_chunk){ .size = size };
        return chunk;
}

void wire_writer_init(struct wire_writer *writer) {
        *writer = (struct wire_writer){ 0 };
}

static void writer_drop_first(struct wire_writer *writer) {
        struct wire_chunk *chunk = writer->first;

        writer->first = chunk->next;
        if (!writer->first)
                writer->last = NULL;
        chunk_free(chunk);
}

void wire_writer_deinit(struct wire_writer *writer) {
        while (writer->first)
                writer_drop_first(writer);
        writer->queued_bytes = 0;
}

static void writer_append(struct wire_writer *writer, struct wire_chunk *take_chunk) {
        if (writer->last)
                writer->last->next = take_chunk;
        else
                writer->first = take_chunk;
        writer->last = take_chunk;
        writer->queued_bytes += take_chunk->size - take_chunk->sent;
}

int wire_writer_add(struct wire_writer *writer, enum wire_type type, uint16_t flags,
                    const struct iovec *parts, unsigned part_count, const int *fds,
                    unsigned fd_count) {
        struct wire_header header = { .type = (uint8_t)type,
                                      .fds = (uint8_t)fd_count,
                                      .flags = flags };
        CLEANUP(chunk_freep) struct wire_chunk *chunk = NULL;
        size_t size = 0, at = sizeof(header);

        MUST(fd_count <= WIRE_FDS_MAX);
        for (unsigned i = 0; i < part_count; i++)
                size += parts[i].iov_len;
        MUST(size <= WIRE_DAEMON_BODY_MAX);
        header.size_bytes = (uint32_t)size;
        chunk = chunk_new(sizeof(header) + size);
        if (!chunk)
                return -ENOMEM;
        memcpy(chunk->bytes, &header, sizeof(header));
        for (unsigned i = 0; i < part_count; i++) {
                if (parts[i].iov_len)
                        memcpy(chunk->bytes + at, parts[i].iov_base, parts[i].iov_len);
                at += parts[i].iov_len;
        }
        for (unsigned i = 0; i < fd_count; i++) {
                int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);

                if (fd < 0)
                        return -errno;
                chunk->fds[chunk->fd_count++] = fd;
        }
        chunk->wake = type == WIRE_WAKE;
        writer_append(writer, steal_pointer(&chunk));
        return 0;
}

int wire_writer_add_body(struct wire_writer *writer, enum wire_type type, const void *body,
                         uint32_t size_bytes) {
        struct iovec part = { (void *)(uintptr_t)body, size_bytes };

        return wire_writer_add(writer, type, 0, &part, 1, NULL, 0);
}

int wire_writer_add_line(struct wire_writer *writer, const char *text, size_t size) {
        struct wire_chunk *chunk = chunk_new(size + 1);

        if (!chunk)
                return -ENOMEM;
        memcpy(chunk->bytes, text, size);
        chunk->bytes[size] = '\n';
        writer_append(writer, chunk);
        return 0;
}

static ssize_t chunk_send(const struct wire_chunk *chunk, int socket_fd) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
        } control = { 0 };
        struct iovec part = { (void *)(uintptr_t)(chunk->bytes + chunk->sent),
                              chunk->size - chunk->sent };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n;

        if (chunk->fd_count) {
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(chunk->fd_count * sizeof(int));
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(chunk->fd_count * sizeof(int));
                memcpy(CMSG_DATA(&control.header), chunk->fds, chunk->fd_count * sizeof(int));
        }
        do
                n = sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n;
}

int wire_writer_flush(struct wire_writer *writer, int socket_fd) {
        while (writer->first) {
                struct wire_chunk *chunk = writer->first;
                ssize_t n = chunk_send(chunk, socket_fd);

                if (n < 0)
                        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
                for (unsigned i = 0; i < chunk->fd_count; i++)
                        close(chunk->fds[i]);
                chunk->fd_count = 0;
                chunk->sent += (size_t)n;
                writer->queued_bytes -= (size_t)n;
                if (chunk->sent == chunk->size)
                        writer_drop_first(writer);
        }
        return 0;
}

int wire_writer_wake(struct wire_writer *writer, int socket_fd) {
        int r;

        if (writer->first) {
                if (!writer->last->wake &&
                    (r = wire_writer_add(writer, WIRE_WAKE, 0, NULL, 0, NULL, 0)) < 0)
                        return r;
                return wire_writer_flush(writer, socket_fd);
        }
        r = wire_writer_add(writer, WIRE_WAKE, 0, NULL, 0, NULL, 0);
        if (r == 0)
                r = wire_writer_flush(writer, socket_fd);
        if (r == -EAGAIN && writer->first->sent == 0) {
                wire_writer_deinit(writer);
                return 0;
        }
        return r;
}
