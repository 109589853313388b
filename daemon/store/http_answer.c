/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_answer.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <xxhash.h>

#include "common/base.h"

#define RETRY_AFTER_MOST_MS (60 * 60 * 1000)

void http_answer_init(struct http_answer *answer) {
        *answer = (struct http_answer){
                .range_begin = UINT64_MAX,
                .range_end = UINT64_MAX,
                .total_bytes = UINT64_MAX,
                .content_bytes = UINT64_MAX,
        };
}

/* Digits at *at; moves *at behind them. False: there are none, or too many. */
static bool take_number(const char **at, const char *end, uint64_t *ret_number) {
        const char *begin = *at;
        uint64_t number = 0;

        while (*at < end && isdigit((unsigned char)**at)) {
                if (number > (UINT64_MAX >> 1) / 10 - 1)
                        return false;
                number = number * 10 + (uint64_t)(*(*at)++ - '0');
        }
        if (*at == begin)
                return false;
        *ret_number = number;
        return true;
}

/* "206 Partial Content", behind "HTTP/1.1 ". */
static void take_status(struct http_answer *answer, const char *line, const char *end) {
        const char *at = memchr(line, ' ', (size_t)(end - line));
        uint64_t first_byte_ns = answer->first_byte_ns, status = 0;

        http_answer_init(answer);
        answer->first_byte_ns = first_byte_ns;
        if (at && take_number(&(const char *){ at + 1 }, end, &status) && status < 1000)
                answer->status = (long)status;
}

/*
 * "bytes 0-99/1000", "bytes 0-99" followed by a slash and an asterisk, "bytes" followed by an
 * asterisk and "/1000".
 */
static void take_content_range(struct http_answer *answer, const char *at, const char *end) {
        uint64_t begin = 0, last = 0;

        if (end - at < 6 || strncasecmp(at, "bytes ", 6) != 0)
                return;
        at += 6;
        if (at < end && *at == '*') {
                at++;
        } else {
                if (!take_number(&at, end, &begin) || at == end || *at++ != '-' ||
                    !take_number(&at, end, &last) || last < begin)
                        return;
                answer->has_range = true;
                answer->range_begin = begin;
                answer->range_end = last + 1;
        }
        if (at == end || *at++ != '/' || (at < end && *at == '*'))
                return;
        take_number(&at, end, &answer->total_bytes);
}

static void take_content_length(struct http_answer *answer, const char *at, const char *end) {
        take_number(&at, end, &answer->content_bytes);
}

/*
 * A tag that is too long for its place is represented by its hash: it is compared for equality
 * only.
 */
static void set_tag(struct http_answer *answer, const char *at, size_t size) {
        if (size < sizeof(answer->tag))
                snprintf(answer->tag, sizeof(answer->tag), "%.*s", (int)size, at);
        else
                snprintf(answer->tag, sizeof(answer->tag), "xxh3-%016llx",
                         (unsigned long long)XXH3_64bits(at, size));
}

/*
 * A weak tag is good enough to see that an object has changed between two answers, and servers that
 * give weak ones to young files make strong ones of the same text later.
 */
static void take_etag(struct http_answer *answer, const char *at, const char *end) {
        if (end - at > 2 && memcmp(at, "W/", 2) == 0)
                at += 2;
        answer->has_etag = true;
        set_tag(answer, at, (size_t)(end - at));
}

static void take_last_modified(struct http_answer *answer, const char *at, const char *end) {
        if (!answer->has_etag)
                set_tag(answer, at, (size_t)(end - at));
}

/* Seconds or a date. */
static void take_retry_after(struct http_answer *answer, const char *at, const char *end) {
        char text[64];
        uint64_t seconds;
        time_t date;

        if (take_number(&(const char *){ at }, end, &seconds)) {
                answer->retry_after_ms = min_u64(seconds, RETRY_AFTER_MOST_MS / 1000) * 1000;
                return;
        }
        snprintf(text, sizeof(text), "%.*s", (int)min_u64((uint64_t)(end - at), sizeof(text) - 1),
                 at);
        date = curl_getdate(text, NULL);
        if (date > time(NULL))
                answer->retry_after_ms = min_u64((uint64_t)(date - time(NULL)) * 1000,
                                                 RETRY_AFTER_MOST_MS);
}

static void take_challenge(struct http_answer *answer, const char *at, const char *end) {
        if (end - at >= 9 && strncasecmp(at, "Negotiate", 9) == 0)
                answer->wants_negotiate = true;
}

static const struct {
        const char *name;
        size_t size;
        void (*take)(struct http_answer *answer, const char *at, const char *end);
} headers[] = {
        { "Content-Range", 13, take_content_range },
        { "Content-Length", 14, take_content_length },
        { "ETag", 4, take_etag },
        { "Last-Modified", 13, take_last_modified },
        { "Retry-After", 11, take_retry_after },
        { "WWW-Authenticate", 16, take_challenge },
};

void http_answer_take_line(struct http_answer *answer, const char *line, size_t size) {
        const char *end = line + size, *colon, *value;

        while (end > line && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
                end--;
        if (end - line > 5 && memcmp(line, "HTTP/", 5) == 0) {
                take_status(answer, line, end);
                return;
        }
        colon = memchr(line, ':', (size_t)(end - line));
        if (!colon)
                return;
        value = colon + 1;
        while (value < end && (*value == ' ' || *value == '\t'))
                value++;
        for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
                if (headers[i].size == (size_t)(colon - line) &&
                    strncasecmp(headers[i].name, line, headers[i].size) == 0)
                        headers[i].take(answer, value, end);
        }
}
