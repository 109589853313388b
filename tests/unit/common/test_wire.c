/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base.h"
#include "tests/unit/runner.h"

/*
 * type JSON, no descriptors, no flags, 5 bytes; written out byte by byte, as docs/PROTOCOL.md has
 * it.
 */
static const uint8_t hello_frame[] = { 1, 0, 0, 0, 5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o' };
static const uint8_t wake_frame[] = { 3, 0, 0, 0, 0, 0, 0, 0 };

static void socket_pair(int *ret_pair) {
        ck_assert_int_eq(
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_pair), 0);
}

static void close_pair(int *pair) {
        close(pair[0]);
        close(pair[1]);
}

static void check_hello(const struct wire_frame *frame) {
        ck_assert_uint_eq(frame->type, WIRE_JSON);
        ck_assert_uint_eq(frame->size_bytes, 5);
        ck_assert_int_eq(memcmp(frame->body, "hello", 5), 0);
}

START_TEST(one_byte_at_a_time) {
        struct wire_reader reader;
        struct wire_frame frame;

        wire_reader_init(&reader, 100, false, false);
        for (int round = 0; round < 3; round++) {
                for (size_t i = 0; i < sizeof(hello_frame); i++) {
                        ck_assert_int_eq(wire_reader_next(&reader, &frame), STAGE_MORE);
                        ck_assert_int_eq(wire_reader_feed(&reader, hello_frame + i, 1), 0);
                }
                ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
                check_hello(&frame);
        }
        wire_reader_deinit(&reader);
}
END_TEST

START_TEST(many_at_once) {
        struct wire_reader reader;
        struct wire_frame frame;

        wire_reader_init(&reader, 100, false, false);
        ck_assert_int_eq(wire_reader_feed(&reader, hello_frame, sizeof(hello_frame)), 0);
        ck_assert_int_eq(wire_reader_feed(&reader, wake_frame, sizeof(wake_frame)), 0);
        ck_assert_int_eq(wire_reader_feed(&reader, hello_frame, sizeof(hello_frame)), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
        check_hello(&frame);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
        ck_assert_uint_eq(frame.type, WIRE_WAKE);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
        check_hello(&frame);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), STAGE_MORE);
        wire_reader_deinit(&reader);
}
END_TEST

/* A promise of the largest body costs no more than the bytes that came. */
START_TEST(promised_bytes_cost_nothing) {
        static const uint8_t promise[] = { 2, 0, 0, 0, 0, 0, 0, 1, 'x' };
        struct wire_reader reader;
        struct wire_frame frame;

        wire_reader_init(&reader, WIRE_DAEMON_BODY_MAX, false, false);
        ck_assert_int_eq(wire_reader_feed(&reader, promise, sizeof(promise)), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), STAGE_MORE);
        ck_assert_uint_le(reader.space, 4096);
        wire_reader_deinit(&reader);
}
END_TEST

START_TEST(malformed) {
        static const uint8_t frames[][8] = {
                { 0, 0, 0, 0, 0, 0, 0, 0 }, /* unknown types */
                { 4, 0, 0, 0, 0, 0, 0, 0 },
                { 0x7b, 0, 0, 0, 0, 0, 0, 0 }, /* a line, where lines are not wanted */
                { 1, 5, 0, 0, 0, 0, 0, 0 },    /* descriptors */
                { 1, 0, 0, 0, 101, 0, 0, 0 },  /* lengths */
                { 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff },
                { 3, 0, 0, 0, 1, 0, 0, 0 }, /* a wake with a body */
        };

        for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
                struct wire_reader reader;
                struct wire_frame frame;

                wire_reader_init(&reader, 100, false, false);
                ck_assert_int_eq(wire_reader_feed(&reader, frames[i], sizeof(frames[i])), 0);
                ck_assert_int_eq(wire_reader_next(&reader, &frame), -EPROTO);
                ck_assert_ptr_nonnull(reader.problem);
                ck_assert_int_eq(wire_reader_feed(&reader, hello_frame, sizeof(hello_frame)), 0);
                ck_assert_int_eq(wire_reader_next(&reader, &frame), -EPROTO);
                wire_reader_deinit(&reader);
        }
}
END_TEST

START_TEST(lines) {
        static const char text[] = "{\"a\":1}\n{\"b\":2}\n{\"c\"";
        struct wire_reader reader;
        struct wire_frame frame;

        wire_reader_init(&reader, 12, true, false);
        ck_assert_int_eq(wire_reader_feed(&reader, text, sizeof(text) - 1), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
        ck_assert(reader.lines);
        ck_assert_uint_eq(frame.type, WIRE_JSON);
        ck_assert_uint_eq(frame.size_bytes, 7);
        ck_assert_int_eq(memcmp(frame.body, "{\"a\":1}", 7), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), STAGE_MORE);
        ck_assert_int_eq(wire_reader_feed(&reader, ":3}\n", 4), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
        ck_assert_int_eq(memcmp(frame.body, "{\"c\":3}", 7), 0);
        ck_assert_int_eq(wire_reader_feed(&reader, "{23456789abcd", 13), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), -EPROTO);
        wire_reader_deinit(&reader);
}
END_TEST

START_TEST(frames_stay_frames_where_lines_are_accepted) {
        struct wire_reader reader;
        struct wire_frame frame;

        wire_reader_init(&reader, 100, true, false);
        ck_assert_int_eq(wire_reader_feed(&reader, hello_frame, sizeof(hello_frame)), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), 0);
        check_hello(&frame);
        ck_assert(!reader.lines);
        wire_reader_deinit(&reader);
}
END_TEST

static ino_t inode_of(int fd) {
        struct stat info;

        ck_assert_int_eq(fstat(fd, &info), 0);
        return info.st_ino;
}

static void receive_all(struct wire_reader *reader, int fd) {
        int r;

        while ((r = wire_reader_receive(reader, fd)) == 0)
                ;
        ck_assert_int_eq(r, -EAGAIN);
}

START_TEST(descriptors_go_with_their_frames) {
        int pair[2], files[3];
        struct wire_writer writer;
        struct wire_reader reader;
        struct wire_frame first, second, third;

        socket_pair(pair);
        for (int i = 0; i < 3; i++)
                files[i] = memfd_create("file", MFD_CLOEXEC);
        wire_writer_init(&writer);
        ck_assert_int_eq(wire_writer_add(&writer, WIRE_JSON, 0, NULL, 0, files, 2), 0);
        ck_assert_int_eq(wire_writer_add_body(&writer, WIRE_JSON, "hello", 5), 0);
        ck_assert_int_eq(wire_writer_add(&writer, WIRE_JSON, 0, NULL, 0, files + 2, 1), 0);
        ck_assert_int_eq(wire_writer_flush(&writer, pair[0]), 0);
        wire_reader_init(&reader, 100, false, true);
        receive_all(&reader, pair[1]);

        ck_assert_int_eq(wire_reader_next(&reader, &first), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &second), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &third), 0);
        ck_assert_uint_eq(first.fd_count, 2);
        ck_assert_uint_eq(second.fd_count, 0);
        ck_assert_uint_eq(third.fd_count, 1);
        ck_assert_uint_eq(inode_of(first.fds[0]), inode_of(files[0]));
        ck_assert_uint_eq(inode_of(first.fds[1]), inode_of(files[1]));
        ck_assert_uint_eq(inode_of(third.fds[0]), inode_of(files[2]));
        ck_assert_int_eq(fcntl(third.fds[0], F_GETFD), FD_CLOEXEC);
        wire_frame_close_fds(&first);
        wire_frame_close_fds(&third);
        wire_reader_deinit(&reader);
        wire_writer_deinit(&writer);
        for (int i = 0; i < 3; i++)
                close(files[i]);
        close_pair(pair);
}
END_TEST

START_TEST(promised_descriptors_that_never_came) {
        static const uint8_t frame_bytes[] = { 1, 3, 0, 0, 0, 0, 0, 0 };
        struct wire_reader reader;
        struct wire_frame frame;

        wire_reader_init(&reader, 100, false, true);
        ck_assert_int_eq(wire_reader_feed(&reader, frame_bytes, sizeof(frame_bytes)), 0);
        ck_assert_int_eq(wire_reader_next(&reader, &frame), -EPROTO);
        wire_reader_deinit(&reader);
}
END_TEST

/* Sends one byte with descriptors that no frame announces. */
static void send_descriptors(int socket_fd, unsigned count) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(8 * sizeof(int))];
        } control = { 0 };
        char byte = 1;
        struct iovec part = { &byte, 1 };
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
        for (unsigned i = 0; i < count; i++)
                memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &socket_fd, sizeof(int));
        ck_assert_int_eq(sendmsg(socket_fd, &message, 0), 1);
}

/* The runner counts: none of them may stay open. */
START_TEST(unannounced_descriptors_are_bounded_and_closed) {
        int pair[2], r = 0;
        struct wire_reader reader;

        socket_pair(pair);
        wire_reader_init(&reader, 100, false, true);
        for (int i = 0; i < 6 && r == 0; i++) {
                send_descriptors(pair[0], 4);
                r = wire_reader_receive(&reader, pair[1]);
        }
        ck_assert_int_eq(r, -EPROTO);
        wire_reader_deinit(&reader);
        close_pair(pair);
}
END_TEST

START_TEST(more_descriptors_than_there_is_room_for) {
        int pair[2];
        struct wire_reader reader;

        socket_pair(pair);
        wire_reader_init(&reader, 100, false, true);
        send_descriptors(pair[0], 8);
        ck_assert_int_eq(wire_reader_receive(&reader, pair[1]), -EPROTO);
        wire_reader_deinit(&reader);
        close_pair(pair);
}
END_TEST

START_TEST(daemon_drops_descriptors) {
        int pair[2];
        struct wire_reader reader;

        socket_pair(pair);
        wire_reader_init(&reader, 100, false, false);
        send_descriptors(pair[0], 4);
        ck_assert_int_eq(wire_reader_receive(&reader, pair[1]), 0);
        wire_reader_deinit(&reader);
        close_pair(pair);
}
END_TEST

START_TEST(peer_closed) {
        int pair[2];
        struct wire_reader reader;
        struct wire_writer writer;

        socket_pair(pair);
        close(pair[0]);
        wire_reader_init(&reader, 100, false, true);
        wire_writer_init(&writer);
        ck_assert_int_eq(wire_reader_receive(&reader, pair[1]), -ECONNRESET);
        ck_assert_int_eq(wire_writer_add_body(&writer, WIRE_JSON, "x", 1), 0);
        ck_assert_int_eq(wire_writer_flush(&writer, pair[1]), -EPIPE);
        wire_writer_deinit(&writer);
        wire_reader_deinit(&reader);
        close(pair[1]);
}
END_TEST

/*
 * A body that no socket takes at once arrives whole, in order, with a reader that reads now and
 * then.
 */
START_TEST(large_bodies_through_a_small_socket) {
        enum { BODY = 3 << 20 };
        int pair[2], r, frames = 0;
        struct wire_writer writer;
        struct wire_reader reader;
        struct wire_frame frame;
        uint8_t *body = malloc(BODY);

        for (int i = 0; i < BODY; i++)
                body[i] = (uint8_t)(i * 2654435761u >> 24);
        socket_pair(pair);
        wire_writer_init(&writer);
        wire_reader_init(&reader, BODY, false, true);
        for (int i = 0; i < 2; i++)
                ck_assert_int_eq(wire_writer_add_body(&writer, WIRE_EXTENT, body, BODY), 0);
        ck_assert_uint_eq(writer.queued_bytes, 2 * (BODY + 8));
        while (frames < 2) {
                r = wire_writer_flush(&writer, pair[0]);
                ck_assert(r == 0 || r == -EAGAIN);
                ck_assert_int_eq(wire_reader_receive(&reader, pair[1]), 0);
                while (wire_reader_next(&reader, &frame) == 0) {
                        ck_assert_uint_eq(frame.size_bytes, BODY);
                        ck_assert_int_eq(memcmp(frame.body, body, BODY), 0);
                        frames++;
                }
        }
        ck_assert_uint_eq(writer.queued_bytes, 0);
        ck_assert(wire_writer_is_empty(&writer));
        wire_reader_deinit(&reader);
        wire_writer_deinit(&writer);
        close_pair(pair);
        free(body);
}
END_TEST

static void fill_socket(int fd) {
        char bytes[4096] = { 0 };

        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        while (send(fd, bytes, 1, MSG_DONTWAIT) > 0)
                ;
}

START_TEST(wake_is_dropped_where_the_socket_is_full) {
        int pair[2];
        struct wire_writer writer;

        socket_pair(pair);
        fill_socket(pair[0]);
        wire_writer_init(&writer);
        ck_assert_int_eq(wire_writer_wake(&writer, pair[0]), 0);
        ck_assert(wire_writer_is_empty(&writer));
        wire_writer_deinit(&writer);
        close_pair(pair);
}
END_TEST

START_TEST(wake_waits_behind_a_frame_once) {
        int pair[2];
        struct wire_writer writer;

        socket_pair(pair);
        fill_socket(pair[0]);
        wire_writer_init(&writer);
        ck_assert_int_eq(wire_writer_add_body(&writer, WIRE_JSON, "hello", 5), 0);
        ck_assert_int_eq(wire_writer_wake(&writer, pair[0]), -EAGAIN);
        ck_assert_int_eq(wire_writer_wake(&writer, pair[0]), -EAGAIN);
        ck_assert_uint_eq(writer.queued_bytes, sizeof(hello_frame) + sizeof(wake_frame));
        wire_writer_deinit(&writer);
        close_pair(pair);
}
END_TEST

START_TEST(bytes_on_the_wire) {
        int pair[2];
        struct wire_writer writer;
        uint8_t bytes[64];
        struct iovec parts[] = { { (void *)"he", 2 }, { NULL, 0 }, { (void *)"llo", 3 } };

        socket_pair(pair);
        wire_writer_init(&writer);
        ck_assert_int_eq(wire_writer_add(&writer, WIRE_JSON, 0, parts, 3, NULL, 0), 0);
        ck_assert_int_eq(wire_writer_add_line(&writer, "{}", 2), 0);
        ck_assert_int_eq(wire_writer_wake(&writer, pair[0]), 0);
        ck_assert_int_eq(read(pair[1], bytes, sizeof(bytes)),
                         sizeof(hello_frame) + 3 + sizeof(wake_frame));
        ck_assert_int_eq(memcmp(bytes, hello_frame, sizeof(hello_frame)), 0);
        ck_assert_int_eq(memcmp(bytes + sizeof(hello_frame), "{}\n", 3), 0);
        ck_assert_int_eq(memcmp(bytes + sizeof(hello_frame) + 3, wake_frame, sizeof(wake_frame)),
                         0);
        wire_writer_deinit(&writer);
        close_pair(pair);
}
END_TEST

RUNNER_MAIN("common/wire", one_byte_at_a_time, many_at_once, promised_bytes_cost_nothing, malformed,
            lines, frames_stay_frames_where_lines_are_accepted, descriptors_go_with_their_frames,
            promised_descriptors_that_never_came, unannounced_descriptors_are_bounded_and_closed,
            more_descriptors_than_there_is_room_for, daemon_drops_descriptors, peer_closed,
            large_bodies_through_a_small_socket, wake_is_dropped_where_the_socket_is_full,
            wake_waits_behind_a_frame_once, bytes_on_the_wire)
