/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_exchange.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/unit/daemon/store/fault_server.h"
#include "tests/unit/fail.h"
#include "tests/unit/runner.h"

static struct fault_server server;
static uv_loop_t loop;

struct outcome {
        bool done;
        struct http_exchange_answer answer;
        char body[200000];
};

static struct outcome outcome;
static uint64_t sent;

static void begin(void) {
        fault_server_start(&server);
        test_file_write(server.root, "token", 10000);
        test_file_write(server.root, "roles/one", 3);
        ck_assert_int_eq(uv_loop_init(&loop), 0);
}

static void end(void) {
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
        fault_server_stop(&server);
}

static void on_done(void *userdata, const struct http_exchange_answer *answer) {
        struct outcome *ret_outcome = userdata;

        ret_outcome->done = true;
        uv_stop(&loop); /* else it would go on to wait if this was a timer's doing */
        ret_outcome->answer = *answer;
        ck_assert_uint_eq(strlen(answer->body) <= answer->body_size, true);
        memcpy(ret_outcome->body, answer->body,
               min_u64(answer->body_size, sizeof(ret_outcome->body)));
}

static void ask(const struct http_exchange_query *query) {
        struct http_exchange *exchange;

        outcome.done = false;
        ck_assert_int_eq(http_exchange_start(&loop, query, on_done, &outcome, &exchange), 0);
        ck_assert(!outcome.done); /* never from inside */
        while (!outcome.done)
                uv_run(&loop, UV_RUN_ONCE);
}

static void get(const char *path) {
        char url[256];

        snprintf(url, sizeof(url), "%s%s", server.url, path);
        ask(&(struct http_exchange_query){
                .url = url, .timeout_ms = 1000, .tries = 3, .backoff_ms = 1, .requests = &sent });
}

START_TEST(answer_comes_whole) {
        begin();
        get("/token");
        ck_assert_int_eq(outcome.answer.failure.class, STORE_OK);
        ck_assert_int_eq(outcome.answer.status, 200);
        ck_assert_uint_eq(outcome.answer.body_size, 10000);
        assert_test_bytes((uint8_t *)outcome.body, 0, 10000);
        get("/missing?a=b");
        ck_assert_int_eq(outcome.answer.failure.class, STORE_OK);
        ck_assert_int_eq(outcome.answer.status, 404);
        /* A slash at the end is not dropped. */
        get("/roles/");
        ck_assert_int_eq(outcome.answer.status, 200);
        ck_assert_uint_eq(fault_server_requests(&server, "/roles/"), 1);
        end();
}
END_TEST

START_TEST(method_headers_and_body_are_sent) {
        static const char *const headers[] = { "X-Test: yes", NULL };
        char url[256];

        begin();
        snprintf(url, sizeof(url), "%s/_control", server.url);
        /* The fault server takes orders by POST: it obeys only what came whole. */
        ask(&(struct http_exchange_query){ .url = url,
                                           .method = "POST",
                                           .headers = headers,
                                           .body = "{\"fault\":\"status\",\"status\":404}",
                                           .body_size = 31 });
        ck_assert_int_eq(outcome.answer.status, 200);
        get("/token");
        ck_assert_int_eq(outcome.answer.status, 404);
        snprintf(url, sizeof(url), "%s/token", server.url);
        fault_server_order(&server, "{'reset':true}");
        ask(&(struct http_exchange_query){
                .url = url, .method = "PUT", .body = "", .body_size = 0 });
        ck_assert_int_eq(outcome.answer.status, 405);
        end();
}
END_TEST

START_TEST(passing_failures_are_tried_again) {
        begin();
        fault_server_order(&server, "{'fault':'status','status':503,'times':2}");
        get("/token");
        ck_assert_int_eq(outcome.answer.status, 200);
        ck_assert_uint_eq(outcome.answer.body_size, 10000);
        fault_server_order(&server, "[{'reset':true},{'fault':'short','times':2}]");
        get("/token");
        ck_assert_int_eq(outcome.answer.status, 200);
        ck_assert_uint_eq(outcome.answer.body_size, 10000);
        fault_server_order(&server, "[{'reset':true},{'fault':'status','status':500}]");
        get("/token");
        ck_assert_int_eq(outcome.answer.status, 500);
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 3);
        ck_assert_uint_eq(sent, 9);
        fault_server_order(&server, "[{'reset':true},{'fault':'status','status':403}]");
        get("/token");
        ck_assert_int_eq(outcome.answer.status, 403);
        ck_assert_uint_eq(fault_server_requests(&server, NULL), 1);
        end();
}
END_TEST

/* Signs of life are no answer: bytes that trickle, an answer between two tries. */
START_TEST(patience_ends) {
        static const char *const faults[] = {
                "[{'reset':true},{'fault':'trickle','piece':1,'ms':20}]",
                "[{'reset':true},{'fault':'status','status':503,'retry_after':'5'}]",
                "[{'reset':true},{'fault':'silent'}]",
        };
        char url[256];

        begin();
        snprintf(url, sizeof(url), "%s/token?key=secret", server.url);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                fault_server_order(&server, faults[i]);
                ask(&(struct http_exchange_query){ .url = url, .deadline_ms = 100 });
                ck_assert_int_eq(outcome.answer.failure.class, STORE_TRANSIENT);
                ck_assert_str_eq(outcome.answer.failure.code, "timeout");
                ck_assert_ptr_nonnull(strstr(outcome.answer.failure.message, "100 ms"));
                ck_assert_ptr_null(strstr(outcome.answer.failure.message, "secret"));
                ck_assert_uint_eq(fault_server_requests(&server, NULL), 1);
        }
        end();
}
END_TEST

START_TEST(redirects_are_not_followed) {
        begin();
        fault_server_order(&server, "{'fault':'redirect','location':'/roles/one','times':1}");
        get("/token");
        ck_assert_int_eq(outcome.answer.status, 302);
        ck_assert_uint_eq(fault_server_requests(&server, "/roles/one"), 0);
        end();
}
END_TEST

START_TEST(what_is_no_answer_is_a_failure) {
        struct http_exchange *exchange;

        begin();
        test_file_write(server.root, "huge", HTTP_EXCHANGE_MOST_BYTES + 1);
        get("/huge");
        ck_assert_int_ne(outcome.answer.failure.class, STORE_OK);
        ck_assert_int_eq(http_exchange_start(&loop,
                                             &(struct http_exchange_query){ .url = "ftp://a/b" },
                                             on_done, &outcome, &exchange),
                         -EINVAL);
        ask(&(struct http_exchange_query){ .url = "http://127.0.0.1:1/", .tries = 1 });
        ck_assert_str_eq(outcome.answer.failure.code, "refused");
        end();
}
END_TEST

static void must_not_be_called(void *userdata, const struct http_exchange_answer *answer) {
        (void)userdata;
        (void)answer;
        ck_abort_msg("called after cancel");
}

START_TEST(cancel_at_every_moment) {
        char url[256];

        begin();
        snprintf(url, sizeof(url), "%s/token", server.url);
        fault_server_order(&server, "{'fault':'trickle','piece':1,'ms':1}");
        for (unsigned turns = 0; turns < 25; turns++) {
                struct http_exchange *exchange;

                ck_assert_int_eq(http_exchange_start(&loop,
                                                     &(struct http_exchange_query){ .url = url },
                                                     must_not_be_called, NULL, &exchange),
                                 0);
                for (unsigned i = 0; i < turns; i++)
                        uv_run(&loop, UV_RUN_NOWAIT);
                http_exchange_cancel(exchange);
        }
        end();
}
END_TEST

static void cancel_what_is_over(void *userdata, const struct http_exchange_answer *answer) {
        (void)answer;
        http_exchange_cancel(*(struct http_exchange **)userdata);
}

/* Whoever is told has nothing left to cancel: that is found at once, and not as a handle that is
 * closed twice. */
START_TEST(nothing_is_left_to_cancel_in_the_end) {
        struct http_exchange *exchange;
        char url[256];
        pid_t child;
        int status;

        begin();
        snprintf(url, sizeof(url), "%s/token", server.url);
        child = fork();
        if (child == 0) {
                close(STDERR_FILENO);
                uv_loop_fork(&loop);
                http_exchange_start(&loop, &(struct http_exchange_query){ .url = url },
                                    cancel_what_is_over, &exchange, &exchange);
                uv_run(&loop, UV_RUN_DEFAULT);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        end();
}
END_TEST

RUNNER_MAIN("store/http_exchange", answer_comes_whole, method_headers_and_body_are_sent,
            passing_failures_are_tried_again, patience_ends, redirects_are_not_followed,
            what_is_no_answer_is_a_failure, cancel_at_every_moment,
            nothing_is_left_to_cancel_in_the_end)
