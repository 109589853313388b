/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection itself: the socket with its frames, and what the calls of the library keep between
 * each other. Frames are handed to whom they are for as they arrive: answers and notifications to
 * call.h, extents to the inbox of inbox.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/include/headrace.h"
#include "client/lib/inbox.h"
#include "common/base.h"
#include "common/wire.h"

struct stream;

/* The one call that may be under way. */
struct call {
        uint64_t id;
        bool pending, answered;
        char *method;
        json_t *result; /* NULL: error_code */
        int64_t error_code;
        char *error_message;
        int fds[WIRE_FDS_MAX]; /* that came with the answer */
        unsigned fd_count;
};

struct source_names;

struct hr_connection {
        int fd;
        struct wire_reader reader;
        struct wire_writer writer;
        struct call call;
        struct inbox inbox;
        struct stream *stream;

        void (*on_notification)(void *userdata, const char *method, const char *params);
        void *notification_userdata;

        json_t *hello; /* the daemon's answer */
        char *daemon_name;
        char *source, *prefix;
        struct source_names *names; /* opened for a list of sources; NULL: for one, or none */
        bool is_private;
        pid_t helper; /* private daemon, 0: none */

        char *error;
        int broken; /* -errno: the connection is of no more use */
        /* of an error without an id, by which the daemon ended the connection or the stream */
        int64_t refusal_code;
        char *refusal_message;
};

/* Takes the socket, on failure too. Nothing is sent yet. -ENOMEM. */
int link_new(int take_fd, struct hr_connection **ret_connection);
struct hr_connection *link_free(struct hr_connection *connection);

/* Remembers the text as hr_error() and returns r. */
int link_fail(struct hr_connection *connection, int r, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* As link_fail(), and every later use of the socket gives r. */
int link_break(struct hr_connection *connection, int r, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/*
 * Sends what waits and handles what has arrived, without waiting. 0: something was handled;
 * HR_AGAIN; negative: the connection is broken.
 */
int link_pump(struct hr_connection *connection);

/* CLOCK_MONOTONIC in milliseconds at which timeout_ms is over; -1 for -1: never. */
int64_t link_deadline(int timeout_ms);

/* Waits until link_pump() has something to do. 0; HR_AGAIN: the deadline is over; -errno. */
int link_wait(struct hr_connection *connection, int64_t deadline_ms);
