/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames (wire_format.h) over a stream socket that may take or give any number of bytes at a time,
 * with descriptors. Both sides use it: what a peer can make us hold is bounded, and a buffer grows
 * with the bytes that came, never with the length that was promised. Neither half blocks, logs or
 * knows what is in a body. One thread each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/wire_format.h"

#define WIRE_FDS_WAITING_MAX 16 /* descriptors that came ahead of their frames */

/*
 * One frame. body is borrowed from the reader until the next call of the reader; it has no
 * alignment.
 */
struct wire_frame {
        uint8_t type; /* enum wire_type */
        uint8_t fd_count;
        uint16_t flags;
        uint32_t size_bytes;
        const uint8_t *body;
        int fds[WIRE_FDS_MAX]; /* the caller's from now on: wire_frame_close_fds() or take them */
};

/* Closes the descriptors that nobody took (those that are not -1). */
void wire_frame_close_fds(struct wire_frame *frame);

/* Bytes of a socket in, frames out. */
struct wire_reader {
        uint8_t *buffer;
        size_t begin, end, space; /* unread bytes are [begin, end) of buffer */
        uint32_t body_max;
        bool accept_lines; /* a first byte of '{' switches to lines */
        bool receive_fds;  /* recvmsg; else recv, which drops descriptors */
        /* the peer speaks lines: frames are WIRE_JSON, one a line, without the newline */
        bool lines;
        bool begun;
        size_t scanned; /* bytes from begin on that hold no newline */
        int fds[WIRE_FDS_WAITING_MAX];
        unsigned fd_count;
        const char *problem; /* static; why wire_reader_next() gave -EPROTO */
};

/* body_max: longer bodies are malformed. Allocates nothing yet. */
void wire_reader_init(struct wire_reader *reader, uint32_t body_max, bool accept_lines,
                      bool receive_fds);
void wire_reader_deinit(struct wire_reader *reader);

/*
 * Receives once, without blocking, as many bytes as there is room for. Invalidates the last frame's
 * body. 0: some came. -EAGAIN: nothing there; -ECONNRESET: the peer closed its end; -EPROTO:
 * descriptors were cut off or are too many (fatal); -ENOMEM; -ENOBUFS: frames are waiting to be
 * taken first; others of recv(2).
 */
int wire_reader_receive(struct wire_reader *reader, int socket_fd);

/* As wire_reader_receive(), from memory (tests, fuzzers). */
int wire_reader_feed(struct wire_reader *reader, const void *bytes, size_t size);

/*
 * Takes the next whole frame. 0; STAGE_MORE: receive first; -EPROTO: malformed (reader->problem
 * says how), and every further call gives the same.
 */
int wire_reader_next(struct wire_reader *reader, struct wire_frame *ret_frame);

/* Frames in, bytes to a socket out; what the socket does not take waits in a queue. */
struct wire_writer {
        struct wire_chunk *first, *last;
        uint64_t queued_bytes; /* what waits: the caller bounds it before it adds more */
};

void wire_writer_init(struct wire_writer *writer);
void wire_writer_deinit(struct wire_writer *writer);

/*
 * Queues a frame: copies the body's parts and duplicates the descriptors (the caller keeps its
 * own). Sends nothing. -ENOMEM, -EMFILE; the queue is as it was then.
 */
int wire_writer_add(struct wire_writer *writer, enum wire_type type, uint16_t flags,
                    const struct iovec *parts, unsigned part_count, const int *fds,
                    unsigned fd_count);

/* A body in one piece, without descriptors. */
int wire_writer_add_body(struct wire_writer *writer, enum wire_type type, const void *body,
                         uint32_t size_bytes);

/* A line for a peer that speaks lines: the text and a newline. */
int wire_writer_add_line(struct wire_writer *writer, const char *text, size_t size);

/*
 * Sends what the socket takes, without blocking or SIGPIPE. 0: the queue is empty. -EAGAIN: come
 * again when the socket is writable; others (-EPIPE, -ECONNRESET) are final.
 */
int wire_writer_flush(struct wire_writer *writer, int socket_fd);

/*
 * Sends a wake frame. Behind other frames it waits in the queue, at most one. Where nothing is
 * queued and the socket is full it is dropped: the peer has bytes to read and so wakes anyway. 0,
 * -EAGAIN (queued: flush later), or final as above.
 */
int wire_writer_wake(struct wire_writer *writer, int socket_fd);

static inline bool wire_writer_is_empty(const struct wire_writer *writer) {
        return !writer->first;
}
