/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of an answer that matter here, read a line at a time. Nothing in them is trusted:
 * what makes no sense is not said.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that were not said are UINT64_MAX. */
struct http_answer {
        long status; /* 0: none yet */
        bool has_range;
        bool has_etag;
        bool wants_negotiate;            /* WWW-Authenticate: Negotiate */
        uint64_t range_begin, range_end; /* of Content-Range; end is the first byte behind */
        uint64_t total_bytes;            /* of the object, by Content-Range */
        uint64_t content_bytes;          /* Content-Length */
        char tag[64];                    /* ETag without W/, else Last-Modified, else "" */
        uint64_t retry_after_ms;         /* 0: not said */
        /* since the request had gone out (while it is under way: was made); since it was made */
        uint64_t first_byte_ns, total_ns;
};

void http_answer_init(struct http_answer *answer);

/*
 * One line, with or without its end. A status line begins a new answer (the one before was a
 * redirect).
 */
void http_answer_take_line(struct http_answer *answer, const char *line, size_t size);
