/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_read.h"

#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"

void http_read_init(struct http_read *read, const struct store_read_range *range, bool keep_error) {
        *read = (struct http_read){
                .offset = range->offset,
                .size_bytes = range->size_bytes,
                .buffer = range->buffer,
                .keep_error = keep_error,
        };
}

void http_read_deinit(struct http_read *read) {
        free(read->error);
}

/* Where the answer says that its body lies in the object. */
static uint64_t body_bytes(const struct http_read *read, const struct http_answer *answer) {
        if (answer->status == 206)
                return answer->has_range ? answer->range_end - answer->range_begin
                                         : answer->content_bytes;
        return min_u64(answer->content_bytes, UINT64_MAX - read->offset);
}

static bool range_matches(const struct http_read *read, const struct http_answer *answer) {
        if (!answer->has_range || answer->range_begin != read->offset ||
            answer->range_end > read->offset + read->size_bytes)
                return false;
        if (answer->total_bytes != UINT64_MAX && answer->range_end > answer->total_bytes)
                return false;
        return answer->content_bytes == UINT64_MAX ||
               answer->content_bytes == answer->range_end - answer->range_begin;
}

/* Headers are known. What is the body? */
static void judge(struct http_read *read, const struct http_answer *answer) {
        if (answer->status == 206) {
                read->verdict = range_matches(read, answer) ? READ_WANTED : READ_BAD_RANGE;
        } else if (answer->status == 200) {
                bool fits = answer->content_bytes == UINT64_MAX ||
                            answer->content_bytes <= read->size_bytes;

                read->verdict = (read->offset == 0 || read->body_is_range) && fits ? READ_WANTED
                                                                                   : READ_NO_RANGE;
        } else {
                read->verdict = READ_IGNORED;
        }
}

/* Errors are read to their end, so that the connection can be used again. */
static bool take_error(struct http_read *read, const uint8_t *bytes, size_t size) {
        size_t kept = min_u64(size, HTTP_READ_ERROR_KEPT_BYTES - read->error_size);
        char *longer;

        read->ignored_bytes += size;
        if (read->keep_error && kept) {
                longer = realloc(read->error, read->error_size + kept + 1);
                if (longer) { /* without memory the status alone must do */
                        read->error = longer;
                        memcpy(longer + read->error_size, bytes, kept);
                        read->error_size += kept;
                        longer[read->error_size] = '\0';
                }
        }
        return read->ignored_bytes <= HTTP_READ_ERROR_MOST_BYTES;
}

bool http_read_take(struct http_read *read, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        if (read->verdict == READ_UNJUDGED)
                judge(read, answer);
        if (read->verdict == READ_IGNORED)
                return take_error(read, bytes, size);
        if (read->verdict != READ_WANTED)
                return false;
        if (size > min_u64(read->size_bytes, body_bytes(read, answer)) - read->got_bytes) {
                /* Without a Content-Length only the body itself says that it is too long. */
                read->verdict = answer->status == 200 ? READ_NO_RANGE : READ_TOO_LONG;
                return false;
        }
        memcpy(read->buffer + read->got_bytes, bytes, size);
        read->got_bytes += size;
        return true;
}

static uint64_t total_bytes(const struct http_read *read, const struct http_answer *answer,
                            bool complete) {
        if (read->body_is_range)
                return UINT64_MAX;
        if (answer->status != 200)
                return answer->total_bytes;
        if (answer->content_bytes == UINT64_MAX && complete && read->verdict == READ_WANTED)
                return read->got_bytes;
        return answer->content_bytes;
}

/* The answer is whole as far as HTTP can tell; is it what was asked for? */
static void set_failure(struct http_read *read, const struct http_answer *answer, const char *thing,
                        struct store_failure *ret_failure) {
        bool empty_206 = answer->status == 206 && answer->content_bytes == 0 && !answer->has_range;

        if (read->verdict == READ_NO_RANGE)
                failure_set(ret_failure, STORE_NO_RANGE, "no-range",
                            "The server ignores ranges, and the object is too large: %s", thing);
        else if (empty_206)
                failure_set(ret_failure, STORE_END, "end", "Nothing at or behind offset %llu: %s",
                            (unsigned long long)read->offset, thing);
        else if (read->verdict == READ_BAD_RANGE)
                failure_set(ret_failure, STORE_TRANSIENT, "bad-range",
                            "Content-Range is not what was asked for: %s", thing);
        else if (read->verdict == READ_TOO_LONG)
                failure_set(ret_failure, STORE_TRANSIENT, "too-long",
                            "The body is longer than Content-Range says: %s", thing);
        else if (answer->status != 200 && answer->status != 206)
                failure_set_status(ret_failure, answer->status, thing);
        else if (read->got_bytes == 0 && read->size_bytes > 0 && answer->status == 200)
                failure_set(ret_failure, STORE_END, "end", "The object is empty: %s", thing);
        else if (body_bytes(read, answer) != UINT64_MAX &&
                 read->got_bytes < body_bytes(read, answer))
                failure_set(ret_failure, STORE_TRANSIENT, "short",
                            "The body is shorter than Content-Range says: %s", thing);
        else
                failure_clear(ret_failure);
        if (ret_failure->class == STORE_TRANSIENT || ret_failure->class == STORE_THROTTLED)
                ret_failure->retry_after_ms = answer->retry_after_ms;
}

bool http_read_end(struct http_read *read, const struct http_answer *answer,
                   const struct store_failure *transport, const char *thing,
                   struct store_read_result *ret_result) {
        bool ours = read->verdict == READ_NO_RANGE || read->verdict == READ_BAD_RANGE ||
                    read->verdict == READ_TOO_LONG ||
                    (read->verdict == READ_IGNORED &&
                     read->ignored_bytes > HTTP_READ_ERROR_MOST_BYTES);

        *ret_result = (struct store_read_result){ .failure = *transport };
        if (transport->class == STORE_OK && read->verdict == READ_UNJUDGED)
                judge(read, answer); /* there was no body */
        if (transport->class == STORE_OK || ours)
                set_failure(read, answer, thing, &ret_result->failure);
        if (read->verdict == READ_WANTED)
                ret_result->size_bytes = read->got_bytes;
        ret_result->total_bytes = total_bytes(read, answer, transport->class == STORE_OK);
        memcpy(ret_result->tag, answer->tag, sizeof(ret_result->tag));
        ret_result->first_byte_ns = answer->first_byte_ns;
        ret_result->total_ns = answer->total_ns;
        return read->verdict == READ_IGNORED && ret_result->failure.class != STORE_OK;
}
