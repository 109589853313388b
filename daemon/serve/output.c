/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A singly linked list of frames. One sendmsg() carries as many of them as there is room in the
 * vector for, but descriptors only with the frame that is first in it: they belong to the first
 * byte that is sent with them.
 */
#include "daemon/serve/output.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/base.h"

#define VECTOR_MOST 64
#define SEND_MOST_BYTES (4u << 20) /* in one call: others want their turn, too */

struct output_frame {
        struct output_frame *next;
        const uint8_t *body;
        size_t body_size;
        void *owned;
        uint64_t answer_bytes, payload_bytes;
        size_t written; /* of head and body */
        bool is_wake, is_entry;
        uint8_t head_size;
        uint8_t fd_count;
        int fds[WIRE_FDS_MAX];
        uint8_t head[OUTPUT_HEAD_MAX];
};

void output_init(struct output *output) {
        *output = (struct output){ .last = &output->first };
}

static void close_all(int *fds, unsigned count) {
        for (unsigned i = 0; i < count; i++)
                close_fdp(&fds[i]);
}

static void frame_free(struct output_frame *frame) {
        close_all(frame->fds, frame->fd_count);
        free(frame->owned);
        free(frame);
}

static void remove_first(struct output *output) {
        struct output_frame *frame = output->first;

        output->first = frame->next;
        if (!output->first)
                output->last = &output->first;
        output->answer_bytes -= frame->answer_bytes;
        output->payload_bytes -= frame->payload_bytes;
        output->entries_waiting -= frame->is_entry;
        if (frame->is_wake)
                output->wake_waits = false;
        frame_free(frame);
}

void output_deinit(struct output *output) {
        while (output->first)
                remove_first(output);
}

int output_add(struct output *output, const struct output_part *part) {
        struct output_frame *frame = calloc(1, sizeof(*frame));

        MUST(part->head_size <= OUTPUT_HEAD_MAX && part->fd_count <= WIRE_FDS_MAX);
        if (!frame) {
                close_all(part->take_fds, part->fd_count);
                free(part->take_memory);
                return -ENOMEM;
        }
        if (part->head_size)
                memcpy(frame->head, part->head, part->head_size);
        frame->head_size = (uint8_t)part->head_size;
        frame->body = part->body;
        frame->body_size = part->body_size;
        frame->owned = part->take_memory;
        frame->answer_bytes = part->answer_bytes;
        frame->payload_bytes = part->payload_bytes;
        frame->is_wake = part->is_wake;
        frame->is_entry = part->is_entry;
        frame->fd_count = (uint8_t)part->fd_count;
        for (unsigned i = 0; i < part->fd_count; i++)
                frame->fds[i] = part->take_fds[i];
        output->answer_bytes += frame->answer_bytes;
        output->payload_bytes += frame->payload_bytes;
        output->entries_waiting += frame->is_entry;
        output->wake_waits |= frame->is_wake;
        *output->last = frame;
        output->last = &frame->next;
        return 0;
}

/* What of the frame is not yet written, as one or two pieces. */
static size_t frame_fill(const struct output_frame *frame, struct iovec *vector) {
        size_t count = 0, skip = 0;

        if (frame->written < frame->head_size)
                vector[count++] = (struct iovec){ (void *)(frame->head + frame->written),
                                                  frame->head_size - frame->written };
        else
                skip = frame->written - frame->head_size;
        if (frame->body_size > skip)
                vector[count++] = (struct iovec){ (void *)(frame->body + skip),
                                                  frame->body_size - skip };
        return count;
}

static size_t output_fill(const struct output *output, struct iovec *vector) {
        size_t count = 0;

        for (const struct output_frame *frame = output->first; frame && count + 2 <= VECTOR_MOST;
             frame = frame->next) {
                if (frame != output->first && frame->fd_count)
                        break;
                count += frame_fill(frame, vector + count);
        }
        return count;
}

union fd_message {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
};

static void attach_fds(struct msghdr *message, union fd_message *control,
                       const struct output_frame *frame) {
        size_t size = frame->fd_count * sizeof(int);

        if (!size)
                return;
        *control = (union fd_message){ 0 };
        message->msg_control = control;
        message->msg_controllen = CMSG_SPACE(size);
        control->header.cmsg_level = SOL_SOCKET;
        control->header.cmsg_type = SCM_RIGHTS;
        control->header.cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(&control->header), frame->fds, size);
}

static void output_advance(struct output *output, size_t sent) {
        struct output_frame *frame;

        if (sent && (frame = output->first) && frame->fd_count) {
                close_all(frame->fds, frame->fd_count);
                frame->fd_count = 0;
        }
        while ((frame = output->first)) {
                size_t left = frame->head_size + frame->body_size - frame->written;

                if (sent < left) {
                        frame->written += sent;
                        return;
                }
                sent -= left;
                remove_first(output);
        }
}

int output_send(struct output *output, int fd) {
        uint64_t total = 0;

        while (output->first) {
                union fd_message control;
                struct iovec vector[VECTOR_MOST];
                struct msghdr message = { .msg_iov = vector,
                                          .msg_iovlen = output_fill(output, vector) };
                ssize_t sent;

                if (total >= SEND_MOST_BYTES)
                        return OUTPUT_E_BLOCKED;
                attach_fds(&message, &control, output->first);
                sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (sent < 0 && errno == EINTR)
                        continue;
                if (sent < 0)
                        return errno == EAGAIN || errno == EWOULDBLOCK ? OUTPUT_E_BLOCKED : -errno;
                total += (uint64_t)sent;
                output_advance(output, (size_t)sent);
        }
        return 0;
}

bool output_is_empty(const struct output *output) {
        return !output->first;
}
