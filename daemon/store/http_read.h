/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a ranged GET, as it arrives: its bytes are copied straight into the reader's buffer
 * (the one copy), and status, Content-Range and length must be those that were asked for. What a
 * server says instead is kept, for its error code. RFC 9110, sections 14 and 15.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/http_answer.h"
#include "daemon/store/store.h"

#define HTTP_READ_ERROR_MOST_BYTES (256u << 10) /* of an error's text that are read */
#define HTTP_READ_ERROR_KEPT_BYTES (16u << 10)  /* and of these, kept */

struct http_read {
        uint64_t offset, size_bytes;
        uint8_t *buffer;
        uint64_t got_bytes;
        uint64_t ignored_bytes;
        enum {
                READ_UNJUDGED,
                READ_WANTED,
                READ_NO_RANGE,
                READ_BAD_RANGE,
                READ_TOO_LONG,
                READ_IGNORED
        } verdict;
        char *error; /* text of an error, NUL-terminated; NULL: none, or none was to be kept */
        size_t error_size;
        bool keep_error;
        /* the range is in the query: a 200 is its bytes, and says nothing of the whole object */
        bool body_is_range;
};

/* The buffer is the caller's. keep_error: the text of an error is wanted. */
void http_read_init(struct http_read *read, const struct store_read_range *range, bool keep_error);
void http_read_deinit(struct http_read *read);

/* As http_handler.on_body. */
bool http_read_take(struct http_read *read, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size);

/*
 * The answer has ended: what it was. thing names the object for people. True: the failure is about
 * an error status, of which the caller may know more.
 */
bool http_read_end(struct http_read *read, const struct http_answer *answer,
                   const struct store_failure *transport, const char *thing,
                   struct store_read_result *ret_result);
