/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fault/fault_server.py over a directory of files with known bytes, for tests of stores and
 * of what reads through them. Everything here asserts that it works.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fault_server {
        char root[64]; /* a directory of its own below TMPDIR, removed by fault_server_stop() */
        pid_t pid;
        int stdin_fd;
        int port;
        char url[64]; /* "http://127.0.0.1:PORT" */
};

/* The byte that a test file has at an offset. */
uint8_t test_byte(uint64_t offset);

/* Does size bytes at offset of a test file stand in memory? */
void assert_test_bytes(const uint8_t *bytes, uint64_t offset, uint64_t size);

/* Makes a directory below TMPDIR, and files in it (directories on the way, too). */
void test_root_make(char ret_root[64]);
void test_file_write(const char *root, const char *name, uint64_t size_bytes);
void test_root_remove(const char *root);

void fault_server_start(struct fault_server *server);
void fault_server_stop(struct fault_server *server);

/* One order of the server's docstring, as JSON in which ' stands for ". */
void fault_server_order(struct fault_server *server, const char *order);

/* How many requests there were for a path (percent-encoded), and for all paths if it is NULL. */
unsigned fault_server_requests(struct fault_server *server, const char *path);

/*
 * A header (in lower case) of the last request for a path, or its query ("?"). Nothing is written if
 * there is none.
 */
void fault_server_last(struct fault_server *server, const char *path, const char *header,
                       char *ret_text, size_t size);
unsigned fault_server_connections(struct fault_server *server);
unsigned fault_server_in_flight_peak(struct fault_server *server);
