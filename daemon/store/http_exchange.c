/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange owns its URL, its client, a timer for the next try and one for the end of its
 * patience. It lives until all are closed, which is after its callback: what it gives there is still its own.
 */
#include "daemon/store/http_exchange.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/backoff.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_client.h"

#define EXCHANGE_TIMEOUT_MS 5000
#define EXCHANGE_DEADLINE_MS 30000
#define EXCHANGE_TRIES 4
#define EXCHANGE_BACKOFF_MS 200
#define EXCHANGE_BACKOFF_MOST_MS 5000

struct http_exchange {
        uv_loop_t *loop;
        struct http_url url;
        struct http_client *client;
        struct http_request *request; /* NULL: none is under way */
        char *target, *method, **headers;
        char *body; /* what is sent */
        size_t body_size;
        bool has_body;
        char *answer; /* what came, NUL-terminated; NULL: nothing */
        size_t answer_size, answer_space;
        unsigned tries, tries_most, deadline_ms, backoff_ms;
        uint64_t *requests;
        struct backoff backoff;
        uv_timer_t retry, deadline;
        unsigned open_handles;
        bool is_over; /* it closes */
        void (*on_done)(void *userdata, const struct http_exchange_answer *answer);
        void *userdata;
};

static void wipe(char *bytes, size_t size) {
        if (bytes)
                explicit_bzero(bytes, size);
        free(bytes);
}

static void exchange_free(struct http_exchange *exchange) {
        wipe(exchange->body, exchange->body_size);
        wipe(exchange->answer, exchange->answer_space);
        for (char **header = exchange->headers; header && *header; header++)
                wipe(*header, strlen(*header));
        free(exchange->headers);
        free(exchange->method);
        free(exchange->target);
        http_url_deinit(&exchange->url);
        free(exchange);
}

static void one_closed(struct http_exchange *exchange) {
        if (--exchange->open_handles == 0)
                exchange_free(exchange);
}

static void on_client_closed(void *userdata) {
        one_closed(userdata);
}

static void on_timer_closed(uv_handle_t *handle) {
        one_closed(handle->data);
}

static void exchange_close(struct http_exchange *exchange) {
        exchange->is_over = true;
        uv_close((uv_handle_t *)&exchange->retry, on_timer_closed);
        uv_close((uv_handle_t *)&exchange->deadline, on_timer_closed);
        http_client_close(exchange->client, on_client_closed, exchange);
}

static void end(struct http_exchange *exchange, const struct store_failure *failure, long status) {
        struct http_exchange_answer answer = {
                .failure = *failure,
                .status = status,
                .body = exchange->answer ? exchange->answer : "",
                .body_size = exchange->answer_size,
        };

        exchange_close(exchange);
        exchange->on_done(exchange->userdata, &answer);
}

static bool on_body(void *userdata, const struct http_answer *answer, const uint8_t *bytes,
                    size_t size) {
        struct http_exchange *exchange = userdata;
        char *longer;
        size_t space;

        (void)answer;
        if (size > HTTP_EXCHANGE_MOST_BYTES - exchange->answer_size)
                return false;
        if (exchange->answer_size + size >= exchange->answer_space) {
                /* not realloc(), which would leave a secret behind */
                space = max_u64(2 * exchange->answer_space, align_up(size + 1, 4096));
                longer = calloc(1, space);
                if (!longer)
                        return false;
                if (exchange->answer_size)
                        memcpy(longer, exchange->answer, exchange->answer_size);
                wipe(exchange->answer, exchange->answer_space);
                exchange->answer = longer;
                exchange->answer_space = space;
        }
        memcpy(exchange->answer + exchange->answer_size, bytes, size);
        exchange->answer_size += size;
        exchange->answer[exchange->answer_size] = '\0';
        return true;
}

static bool is_worth_a_try(const struct store_failure *transport, long status) {
        if (transport->class != STORE_OK)
                return transport->class != STORE_PERMANENT;
        return status == 429 || status >= 500;
}

static int ask(struct http_exchange *exchange);

static void on_retry(uv_timer_t *timer) {
        struct http_exchange *exchange = timer->data;
        struct store_failure failure;

        if (ask(exchange) < 0) {
                failure_set_errno(&failure, ENOMEM, exchange->url.endpoint);
                end(exchange, &failure, 0);
        }
}

/* A server that trickles is alive for ever. */
static void on_deadline(uv_timer_t *timer) {
        struct http_exchange *exchange = timer->data;
        struct store_failure failure;

        if (exchange->request)
                http_request_cancel(steal_pointer(&exchange->request));
        failure_set(&failure, STORE_TRANSIENT, "timeout", "No whole answer in %u ms: %s%.*s",
                    exchange->deadline_ms, exchange->url.endpoint,
                    (int)strcspn(exchange->target, "?"), exchange->target);
        end(exchange, &failure, 0);
}

static void on_answer(void *userdata, const struct http_answer *answer,
                      const struct store_failure *transport) {
        struct http_exchange *exchange = userdata;

        exchange->request = NULL;
        if (exchange->tries < exchange->tries_most && is_worth_a_try(transport, answer->status))
                uv_timer_start(&exchange->retry, on_retry,
                               backoff_next_ms(&exchange->backoff, exchange->backoff_ms,
                                               EXCHANGE_BACKOFF_MOST_MS) +
                                       min_u64(answer->retry_after_ms, EXCHANGE_BACKOFF_MOST_MS),
                               0);
        else
                end(exchange, transport, answer->status);
}

static int ask(struct http_exchange *exchange) {
        static const struct http_handler handler = { .on_body = on_body, .on_done = on_answer };
        struct http_query query = {
                .method = exchange->method,
                .target = exchange->target,
                .headers = (const char *const *)exchange->headers,
                .body = exchange->has_body ? exchange->body : NULL,
                .body_size = exchange->body_size,
                .no_redirects = true,
        };

        exchange->answer_size = 0;
        exchange->tries++;
        if (exchange->requests)
                ++*exchange->requests;
        return http_client_send(exchange->client, &query, &handler, exchange, &exchange->request);
}

static int copy_headers(struct http_exchange *exchange, const char *const *headers) {
        size_t count = 0;

        while (headers && headers[count])
                count++;
        exchange->headers = calloc(count + 1, sizeof(char *));
        if (!exchange->headers)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                exchange->headers[i] = strdup(headers[i]);
                if (!exchange->headers[i])
                        return -ENOMEM;
        }
        return 0;
}

/* A slash at the end of a path, which struct http_url drops, means something to these servers. */
static int copy_target(struct http_exchange *exchange, const char *url) {
        const char *host = strstr(url, "://") + strlen("://");
        const char *path = host + strcspn(host, "/?#");
        int size = (int)strcspn(path, "#");

        if (asprintf(&exchange->target, "%s%.*s", *path == '/' ? "" : "/", size, path) < 0) {
                exchange->target = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int copy_query(struct http_exchange *exchange, const struct http_exchange_query *query) {
        const char *message;
        int r = http_url_init(&exchange->url, query->url, &message);

        if (r == 0)
                r = copy_target(exchange, query->url);
        if (r < 0)
                return r;
        if (query->method && !(exchange->method = strdup(query->method)))
                return -ENOMEM;
        if (query->body) {
                exchange->body = malloc(query->body_size + 1);
                if (!exchange->body)
                        return -ENOMEM;
                memcpy(exchange->body, query->body, query->body_size);
                exchange->body_size = query->body_size;
                exchange->has_body = true;
        }
        return copy_headers(exchange, query->headers);
}

int http_exchange_start(uv_loop_t *loop, const struct http_exchange_query *query,
                        void (*on_done)(void *userdata, const struct http_exchange_answer *answer),
                        void *userdata, struct http_exchange **ret_exchange) {
        struct http_client_options options = http_client_defaults;
        struct http_exchange *exchange = calloc(1, sizeof(*exchange));
        unsigned timeout_ms = query->timeout_ms ? query->timeout_ms : EXCHANGE_TIMEOUT_MS;
        int r;

        if (!exchange)
                return -ENOMEM;
        options.first_byte_ms = options.progress_ms = timeout_ms;
        options.connect_ms = (unsigned)min_u64(options.connect_ms, timeout_ms);
        options.no_proxy = query->no_proxy;
        options.no_credentials = true;
        exchange->loop = loop;
        exchange->tries_most = query->tries ? query->tries : EXCHANGE_TRIES;
        exchange->deadline_ms = query->deadline_ms ? query->deadline_ms : EXCHANGE_DEADLINE_MS;
        exchange->backoff_ms = query->backoff_ms ? query->backoff_ms : EXCHANGE_BACKOFF_MS;
        exchange->requests = query->requests;
        backoff_init(&exchange->backoff, uv_hrtime());
        exchange->on_done = on_done;
        exchange->userdata = userdata;
        r = copy_query(exchange, query);
        if (r == 0)
                r = http_client_new(loop, &exchange->url, &options, &exchange->client);
        if (r < 0) {
                exchange_free(exchange);
                return r;
        }
        uv_timer_init(loop, &exchange->retry);
        uv_timer_init(loop, &exchange->deadline);
        exchange->retry.data = exchange->deadline.data = exchange;
        exchange->open_handles = 3;
        uv_timer_start(&exchange->deadline, on_deadline, exchange->deadline_ms, 0);
        r = ask(exchange);
        if (r < 0) {
                exchange_close(exchange);
                return r;
        }
        *ret_exchange = exchange;
        return 0;
}

void http_exchange_cancel(struct http_exchange *exchange) {
        MUST(!exchange->is_over);
        exchange_close(exchange);
}
