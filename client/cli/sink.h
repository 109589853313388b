/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffered bytes to a descriptor, or to a function. Lines are written straight into the buffer: sink_reserve() gives
 * room, sink_commit() says how much of it was used. A write error is kept; what is written after it
 * is dropped.
 */
#pragma once

#include <stddef.h>
#include <string.h>

struct sink {
        int fd;
        /* takes what a descriptor would, all of it; 0 or -errno */
        int (*take)(void *userdata, const char *bytes, size_t size);
        void *userdata;
        char *buffer;
        size_t size, space;
        int error; /* 0 or -errno of the first failure */
};

int sink_init(struct sink *sink, int fd); /* -ENOMEM */

/* Likewise, to a function. */
int sink_init_function(struct sink *sink,
                       int (*take)(void *userdata, const char *bytes, size_t size), void *userdata);
void sink_deinit(struct sink *sink); /* does not flush */

/* At least that many bytes to write to; NULL: out of memory, which sink->error says too. */
char *sink_reserve(struct sink *sink, size_t size);

static inline void sink_commit(struct sink *sink, const char *end) {
        sink->size = (size_t)(end - sink->buffer);
}

void sink_add(struct sink *sink, const char *bytes, size_t size);

static inline void sink_add_text(struct sink *sink, const char *text) {
        sink_add(sink, text, strlen(text));
}

/* 0 or the kept error. */
int sink_flush(struct sink *sink);
