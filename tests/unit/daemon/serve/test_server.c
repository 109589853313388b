/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server as a client sees it, over real sockets, in front of a fake pipeline. Server and client
 * take turns in one thread: whoever waits for an answer turns the loop until it is there.
 */
#include "daemon/serve/server.h"

#include <jansson.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/wire.h"
#include "tests/unit/daemon/serve/fake_pipeline.h"
#include "tests/unit/runner.h"

#define TURNS 200000

static uv_loop_t loop;
static struct server *server;
static char directory[64], socket_path[100];
static bool server_closed, private_ended;

static struct store fake_store = { .url = (char *)"http://host/logs",
                                   .endpoint = (char *)"http://host:80" };

/* ---- The server's side ---- */

static void turn(void) {
        uv_run(&loop, UV_RUN_NOWAIT);
}

static void on_server_closed(void *userdata) {
        (void)userdata;
        server_closed = true;
}

static void on_private_end(void *userdata) {
        (void)userdata;
        private_ended = true;
}

static struct catalog_source *add_source(void) {
        struct catalog_source *source;

        ck_assert_int_eq(catalog_add_source(&fake.catalog, "exp", &fake_store, &source), 0);
        return source;
}

static void add_files(struct catalog_source *source, int count) {
        for (int i = 0; i < count; i++) {
                char path[64];
                struct catalog_file *file;
                int size = snprintf(path, sizeof(path), "run%04d/events.out.tfevents.%d", i / 2, i);

                ck_assert_int_eq(catalog_add_file(source, path, (size_t)size, 0, &file, NULL), 0);
        }
}

static struct server_options options_for_tests(void) {
        return (struct server_options){
                .socket_path = socket_path,
                .socket_fd = -1,
                .version = "headraced test",
                .settings_id = 0x1234,
                .on_end = on_private_end,
        };
}

static void start_with(const struct server_options *options) {
        char *error = NULL;

        snprintf(directory, sizeof(directory), "/tmp/test-server-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(socket_path, sizeof(socket_path), "%s/s", directory);
        catalog_init(&fake.catalog);
        ck_assert_int_eq(ring_new(64 * RING_SEGMENT_MIN_BYTES, RING_HUGE_OFF, &fake.ring, NULL), 0);
        fake.readers_max = 4;
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        ck_assert_int_eq(server_new(&loop, &fake, options, &server, &error), 0);
}

static void start(void) {
        struct server_options options = options_for_tests();

        start_with(&options);
}

/*
 * Everything ends, and nothing is left over: no handle, no reader, no request, no file but the
 * lock.
 */
static void stop(void) {
        char lock[160];

        server_close(server, on_server_closed, NULL);
        ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
        ck_assert(server_closed);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
        ck_assert_uint_eq(fake.readers, 0);
        ck_assert_uint_eq(fake.request_count, 0);
        ring_free(fake.ring);
        catalog_deinit(&fake.catalog);
        snprintf(lock, sizeof(lock), "%s.lock", socket_path);
        unlink(lock);
        ck_assert_int_eq(rmdir(directory), 0);
        uv_library_shutdown(); /* libuv keeps a pipe of its own to the end */
}

/* ---- The client's side ---- */

struct client {
        int fd;
        struct wire_reader reader;
        struct wire_frame frame; /* the last one */
};

static void client_init(struct client *client, int fd) {
        client->fd = fd;
        wire_reader_init(&client->reader, WIRE_DAEMON_BODY_MAX, false, true);
}

static void client_connect(struct client *client) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        client_init(client, fd);
}

static void client_close(struct client *client) {
        wire_reader_deinit(&client->reader);
        close(client->fd);
        for (int i = 0; i < 8; i++)
                turn();
}

static void send_all(const struct client *client, const void *bytes, size_t size) {
        size_t sent = 0;

        for (int i = 0; i < TURNS && sent < size; i++) {
                ssize_t n = send(client->fd, (const char *)bytes + sent, size - sent,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0)
                        sent += (size_t)n;
                turn();
        }
        ck_assert_uint_eq(sent, size);
}

static void send_frame(const struct client *client, uint8_t type, const void *body, uint32_t size) {
        struct wire_header header = { .type = type, .size_bytes = size };

        send_all(client, &header, sizeof(header));
        if (size)
                send_all(client, body, size);
}

static void send_text(const struct client *client, const char *text) {
        send_frame(client, WIRE_JSON, text, (uint32_t)strlen(text));
}

/* Receives one frame; false: the daemon closed the connection. */
static bool receive(struct client *client) {
        for (int i = 0; i < TURNS; i++) {
                int r = wire_reader_next(&client->reader, &client->frame);

                ck_assert_int_ge(r, 0);
                if (r == 0)
                        return true;
                turn();
                r = wire_reader_receive(&client->reader, client->fd);
                if (r == -ECONNRESET)
                        return false;
                ck_assert(r == 0 || r == -EAGAIN);
        }
        ck_abort_msg("no frame came");
}

static bool is_readable(struct client *client) {
        char byte;

        for (int i = 0; i < 20; i++)
                turn();
        return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static json_t *receive_json(struct client *client) {
        json_t *message;

        ck_assert(receive(client));
        ck_assert_uint_eq(client->frame.type, WIRE_JSON);
        message = json_loadb((const char *)client->frame.body, client->frame.size_bytes, 0, NULL);
        ck_assert_ptr_nonnull(message);
        ck_assert_str_eq(json_string_value(json_object_get(message, "jsonrpc")), "2.0");
        return message;
}

/* Calls a method; the whole answer. */
static json_t *call(struct client *client, const char *method, const char *params) {
        char text[8192];

        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"%s\",\"params\":%s}", method,
                 params);
        send_text(client, text);
        return receive_json(client);
}

static json_t *call_for_result(struct client *client, const char *method, const char *params) {
        json_t *answer = call(client, method, params);
        json_t *result = json_object_get(answer, "result");

        ck_assert_msg(result != NULL, "%s", json_dumps(answer, 0));
        ck_assert_str_eq(json_string_value(json_object_get(answer, "id")), "x");
        json_incref(result);
        json_decref(answer);
        return result;
}

static int error_code(json_t *take_answer) {
        json_t *error = json_object_get(take_answer, "error");
        int code = (int)json_integer_value(json_object_get(error, "code"));

        ck_assert_ptr_nonnull(json_string_value(json_object_get(error, "message")));
        json_decref(take_answer);
        return code;
}

static json_int_t integer(const json_t *object, const char *key) {
        ck_assert_msg(json_is_integer(json_object_get(object, key)), "%s", key);
        return json_integer_value(json_object_get(object, key));
}

static const char *string(const json_t *object, const char *key) {
        ck_assert_msg(json_is_string(json_object_get(object, key)), "%s", key);
        return json_string_value(json_object_get(object, key));
}

static void greet(struct client *client) {
        client_connect(client);
        json_decref(call_for_result(client, "hello", "{\"client\":\"test\",\"protocol\":[1]}"));
}

/* ---- Messages ---- */

START_TEST(hello_comes_first) {
        struct client client;
        json_t *hello;

        start();
        add_source();
        client_connect(&client);
        ck_assert_int_eq(error_code(call(&client, "sources", "{}")), WIRE_E_INVALID);
        hello = call_for_result(&client, "hello", "{\"client\":\"test\",\"protocol\":[7,1]}");
        ck_assert_str_eq(string(hello, "server"), "headraced test");
        ck_assert_str_eq(string(hello, "settings"), "0000000000001234");
        ck_assert_int_eq(integer(hello, "protocol"), 1);
        ck_assert_int_eq(integer(hello, "pid"), getpid());
        ck_assert_str_eq(json_string_value(json_array_get(json_object_get(hello, "sources"), 0)),
                         "http://host/logs");
        json_decref(hello);
        json_decref(call_for_result(&client, "sources", "{}"));
        client_close(&client);
        stop();
}
END_TEST

START_TEST(other_protocols_are_refused) {
        struct client client;

        start();
        client_connect(&client);
        ck_assert_int_eq(error_code(call(&client, "hello", "{\"protocol\":[2]}")), WIRE_E_PARAMS);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(wrong_requests_are_answered) {
        static const struct {
                const char *text;
                int code;
        } cases[] = {
                { "", WIRE_E_PARSE },
                { "{", WIRE_E_PARSE },
                { "nonsense", WIRE_E_PARSE },
                { "[]", WIRE_E_INVALID },
                { "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sources\"}]", WIRE_E_INVALID },
                { "{\"id\":1,\"method\":\"sources\"}", WIRE_E_INVALID },
                { "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"sources\"}", WIRE_E_INVALID },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", WIRE_E_INVALID },
                { "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"sources\"}", WIRE_E_INVALID },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no_such\"}", WIRE_E_METHOD },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sources\",\"params\":[1]}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"runs\",\"params\":{\"limit\":-1}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"runs\",\"params\":{\"run\":[1]}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"runs\",\"params\":{\"run_hex\":\"0\"}"
                  "}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"runs\",\"params\":{\"after\":\"x/y/"
                  "z\"}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"runs\",\"params\":{\"source\":"
                  "\"none\"}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"series\",\"params\":{\"ids\":[\"12\"]"
                  "}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ack\",\"params\":{\"position\":1}}",
                  WIRE_E_INVALID },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\",\"params\":{"
                  "\"transport\":\"pigeon\"}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\",\"params\":{\"from\":"
                  "\"never\"}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\",\"params\":{\"from\":{"
                  "\"positions\":[3]}}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\",\"params\":{\"follow\":"
                  "\"yes\"}}",
                  WIRE_E_PARAMS },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"payload\",\"params\":{\"file\":"
                  "\"zz\"}}",
                  WIRE_E_PARAMS },
        };
        struct client client;

        start();
        add_source();
        greet(&client);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                send_text(&client, cases[i].text);
                ck_assert_msg(error_code(receive_json(&client)) == cases[i].code, "%s",
                              cases[i].text);
        }
        json_decref(call_for_result(&client, "sources", "{\"unknown\":\"member\"}"));
        client_close(&client);
        stop();
}
END_TEST

START_TEST(notifications_are_not_answered) {
        struct client client;

        start();
        greet(&client);
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"method\":\"sources\"}");
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"method\":\"no_such\"}");
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"method\":\"ack\",\"params\":{\"position\":0}}");
        ck_assert(!is_readable(&client));
        json_decref(call_for_result(&client, "sources", "{}"));
        client_close(&client);
        stop();
}
END_TEST

/*
 * '{' is 123: a frame of so many bytes is a frame, and one byte at a time is as good as all at
 * once.
 */
START_TEST(frames_come_in_pieces) {
        char text[124];
        struct wire_header header = { .type = WIRE_JSON, .size_bytes = 123 };
        struct client client;

        start();
        greet(&client);
        snprintf(text, sizeof(text), "%-123s",
                 "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"sources\"}");
        for (size_t i = 0; i < sizeof(header); i++)
                send_all(&client, (char *)&header + i, 1);
        for (size_t i = 0; i < 123; i++)
                send_all(&client, text + i, 1);
        json_decref(receive_json(&client));
        client_close(&client);
        stop();
}
END_TEST

START_TEST(malformed_frames_end_their_connection_only) {
        static const struct wire_header headers[] = {
                { .type = 9, .size_bytes = 0 },
                { .type = 0, .size_bytes = 0 },
                { .type = WIRE_JSON, .size_bytes = WIRE_CLIENT_BODY_MAX + 1 },
                { .type = WIRE_JSON, .size_bytes = UINT32_MAX },
                { .type = WIRE_JSON, .fds = 5, .size_bytes = 2 },
                { .type = WIRE_EXTENT, .size_bytes = 0 },
        };
        struct client good, bad;

        start();
        greet(&good);
        for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
                greet(&bad);
                send_all(&bad, &headers[i], sizeof(headers[i]));
                ck_assert_int_eq(error_code(receive_json(&bad)), WIRE_E_INVALID);
                ck_assert(!receive(&bad));
                client_close(&bad);
                json_decref(call_for_result(&good, "sources", "{}"));
        }
        client_close(&good);
        stop();
}
END_TEST

/*
 * A client that asks and does not read is made to wait; when it reads, every answer is there, in
 * order.
 */
START_TEST(who_does_not_read_waits) {
        enum { MOST = 400000 };
        struct client client;
        json_int_t sent = 0, received = 0;
        int refused = 0;

        start();
        add_source();
        greet(&client);
        while (sent < MOST && refused < 1000) {
                char frame[256];
                struct wire_header header = { .type = WIRE_JSON };
                int size = snprintf(frame + sizeof(header), sizeof(frame) - sizeof(header),
                                    "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"status\"}",
                                    (long long)sent);
                ssize_t n;

                header.size_bytes = (uint32_t)size;
                memcpy(frame, &header, sizeof(header));
                n = send(client.fd, frame, sizeof(header) + (size_t)size,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0) {
                        refused++;
                        turn();
                        continue;
                }
                refused = 0;
                sent++;
                if ((size_t)n < sizeof(header) + (size_t)size)
                        send_all(&client, frame + n, sizeof(header) + (size_t)size - (size_t)n);
        }
        ck_assert_int_lt(sent, MOST); /* the socket stopped taking more */
        while (received < sent) {
                json_t *answer = receive_json(&client);

                ck_assert_int_eq(integer(answer, "id"), received++);
                json_decref(answer);
        }
        client_close(&client);
        stop();
}
END_TEST

/*
 * All that was asked is with the daemon already when it begins to wait: nothing more comes that
 * would wake it.
 */
START_TEST(answers_go_on_when_some_were_read) {
        static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"files\"}";
        struct wire_header header = { .type = WIRE_JSON, .size_bytes = sizeof(request) - 1 };
        char bytes[40 * (sizeof(header) + sizeof(request) - 1)];
        struct client client;

        start();
        add_files(add_source(), 2000);
        greet(&client);
        for (size_t i = 0; i < 40; i++) {
                memcpy(bytes + i * (sizeof(bytes) / 40), &header, sizeof(header));
                memcpy(bytes + i * (sizeof(bytes) / 40) + sizeof(header), request,
                       sizeof(request) - 1);
        }
        send_all(&client, bytes, sizeof(bytes));
        for (size_t i = 0; i < 40; i++)
                json_decref(receive_json(&client));
        client_close(&client);
        stop();
}
END_TEST

/* ---- Lines ---- */

/* Reads up to the end of the connection. */
static void read_lines(struct client *client, char *text, size_t size) {
        size_t length = 0;

        for (int i = 0; i < TURNS; i++) {
                ssize_t n = recv(client->fd, text + length, size - 1 - length, MSG_DONTWAIT);

                if (n == 0) {
                        text[length] = 0;
                        return;
                }
                if (n > 0)
                        length += (size_t)n;
                turn();
        }
        ck_abort_msg("the connection was not closed");
}

START_TEST(lines_work_without_a_library) {
        static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sources\"}\n\n"
                                   "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"subscribe\"}\n"
                                   "nonsense\n"
                                   /* not ended: the end of the input ends it */
                                   "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"status\"}";
        static const char *const parts[] = { "\"sources\"", "-32001", "-32700", "\"uptime_s\"" };
        char answers[16384], *rest = answers;
        struct client client;

        start();
        client_connect(&client);
        send_all(&client, text, strlen(text));
        shutdown(client.fd, SHUT_WR);
        read_lines(&client, answers, sizeof(answers));
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                char *line = strsep(&rest, "\n");

                ck_assert_msg(line && strstr(line, parts[i]), "%s", parts[i]);
        }
        ck_assert_str_eq(rest, "");
        client_close(&client);
        stop();
}
END_TEST

START_TEST(half_a_close_waits_for_the_answer) {
        static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"reload\"}\n";
        static const struct store_failure fine = { .class = STORE_OK };
        char answers[4096];
        struct pipeline_request *request;
        struct client client;

        start();
        client_connect(&client);
        send_all(&client, text, strlen(text));
        shutdown(client.fd, SHUT_WR);
        ck_assert(!is_readable(&client));
        request = fake_take_request();
        request->on_reloaded(request->userdata, &fine);
        free(request);
        read_lines(&client, answers, sizeof(answers));
        ck_assert_ptr_nonnull(strstr(answers, "\"files\":0"));
        client_close(&client);
        stop();
}
END_TEST

/* ---- Lists ---- */

/*
 * Walks through all pages; returns how many rows there are, and checks that they come in order and
 * once.
 */
static size_t walk(struct client *client, const char *method, const char *key, int limit,
                   size_t *ret_pages) {
        char last[256] = "", params[512], next[400] = "";
        size_t rows = 0, pages = 0;

        do {
                json_t *result, *row;
                size_t i;

                snprintf(params, sizeof(params),
                         next[0] ? "{\"limit\":%d,\"after\":\"%s\"}" : "{\"limit\":%d}", limit,
                         next);
                result = call_for_result(client, method, params);
                json_array_foreach(json_object_get(result, method), i, row) {
                        ck_assert_int_gt(strcmp(string(row, key), last), 0);
                        snprintf(last, sizeof(last), "%s", string(row, key));
                        rows++;
                }
                next[0] = 0;
                if (json_object_get(result, "next"))
                        snprintf(next, sizeof(next), "%s", string(result, "next"));
                json_decref(result);
                pages++;
        } while (next[0]);
        *ret_pages = pages;
        return rows;
}

START_TEST(lists_are_paged) {
        struct client client;
        size_t pages;

        start();
        add_files(add_source(), 5000);
        greet(&client);
        ck_assert_uint_eq(walk(&client, "runs", "run", 1000, &pages), 2500);
        ck_assert_uint_eq(pages, 3);
        ck_assert_uint_eq(walk(&client, "files", "path", 999, &pages), 5000);
        ck_assert_uint_eq(pages, 6);
        /* a page has 1000 rows at most */
        ck_assert_uint_eq(walk(&client, "runs", "run", 2500, &pages), 2500);
        ck_assert_uint_eq(pages, 3);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(a_page_goes_on_where_its_run_has_gone) {
        struct client client;
        struct catalog_source *source;
        char params[256];
        json_t *page;

        start();
        source = add_source();
        add_files(source, 8);
        greet(&client);
        page = call_for_result(&client, "files", "{\"limit\":3}"); /* ends within run0001 */
        snprintf(params, sizeof(params), "{\"after\":\"%s\"}", string(page, "next"));
        json_decref(page);
        catalog_remove_file(source->runs[1]->files[1]);
        catalog_remove_file(source->runs[1]->files[0]);
        page = call_for_result(&client, "files", params);
        ck_assert_str_eq(string(json_array_get(json_object_get(page, "files"), 0), "run"),
                         "run0002");
        ck_assert_uint_eq(json_array_size(json_object_get(page, "files")), 4);
        json_decref(page);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(globs_choose_runs) {
        struct client client;
        json_t *result;

        start();
        add_files(add_source(), 200);
        greet(&client);
        result = call_for_result(&client, "runs", "{\"run\":\"run000?\"}");
        ck_assert_uint_eq(json_array_size(json_object_get(result, "runs")), 10);
        json_decref(result);
        result = call_for_result(&client, "runs",
                                 "{\"run\":[\"run0001\",\"*99\"],\"run_hex\":\"72756e30303037\"}");
        ck_assert_uint_eq(json_array_size(json_object_get(result, "runs")), 3);
        json_decref(result);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(names_that_are_no_text_are_told_exactly) {
        static const char path[] = "r\xff\"\n/a.tfevents";
        struct catalog_file *file;
        struct client client;
        json_t *result, *row;

        start();
        ck_assert_int_eq(catalog_add_file(add_source(), path, strlen(path), 0, &file, NULL), 0);
        greet(&client);
        result = call_for_result(&client, "files", "{\"run_hex\":\"72ff220a\"}");
        row = json_array_get(json_object_get(result, "files"), 0);
        ck_assert_str_eq(string(row, "run"), "r\xEF\xBF\xBD\"\n");
        ck_assert_str_eq(string(row, "run_hex"), "72ff220a");
        ck_assert_str_eq(string(row, "path_hex"), "72ff220a2f612e74666576656e7473");
        json_decref(result);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(files_say_what_is_wrong) {
        struct catalog_file *file;
        struct client client;
        json_t *result, *row;

        start();
        ck_assert_int_eq(catalog_add_file(add_source(), "a/x.tfevents", 12, 0, &file, NULL), 0);
        catalog_set_state(file, CATALOG_UNREADABLE, true);
        catalog_set_failure(file, &(struct store_failure){ .class = STORE_PERMANENT,
                                                           .code = "403",
                                                           .message = "Forbidden" });
        file->listed_bytes = 100;
        ck_assert_int_eq(file_damage_ensure(&file->damage), 0);
        file_damage_add(file->damage, (uint32_t[DAMAGE_COUNT]){ [DAMAGE_TOO_LARGE] = 20 },
                        &(struct damaged_place){ 7, 9, DAMAGE_TOO_LARGE, 8 << 20 }, 1);
        file_damage_set_tail(file->damage, &(struct damaged_place){ 90, 10, DAMAGE_LENGTH_CRC, 0 });
        greet(&client);
        result = call_for_result(&client, "files", "{}");
        row = json_array_get(json_object_get(result, "files"), 0);
        ck_assert_str_eq(string(row, "state"), "unreadable: 403");
        ck_assert_str_eq(string(json_object_get(row, "error"), "message"), "Forbidden");
        ck_assert_int_eq(integer(json_array_get(json_object_get(row, "damage"), 0), "bytes"), 9);
        ck_assert_str_eq(string(json_array_get(json_object_get(row, "damage"), 0), "reason"),
                         "too large");
        ck_assert_int_eq(integer(json_array_get(json_object_get(row, "damage"), 0), "ring_bytes"),
                         8 << 20);
        ck_assert_ptr_null(
                json_object_get(json_array_get(json_object_get(row, "damage"), 1), "ring_bytes"));
        ck_assert_int_eq(integer(json_array_get(json_object_get(row, "damage"), 1), "offset"), 90);
        ck_assert_int_eq(integer(row, "damaged"), 21);
        ck_assert_int_eq(integer(json_object_get(row, "reasons"), "too large"), 20);
        ck_assert_int_eq(integer(json_object_get(row, "reasons"), "length CRC"), 1);
        ck_assert_uint_eq(json_object_size(json_object_get(row, "reasons")), 2);
        ck_assert_int_eq(integer(row, "size_bytes"), 100);
        json_decref(result);
        result = call_for_result(&client, "sources", "{}");
        row = json_array_get(json_object_get(result, "sources"), 0);
        ck_assert_int_eq(integer(row, "failed"), 1);
        ck_assert_int_eq(integer(row, "settled"), 1);
        ck_assert_int_eq(integer(row, "damaged"), 21);
        ck_assert_ptr_null(json_object_get(row, "identity"));
        ck_assert_ptr_null(json_object_get(json_object_get(row, "requests"), "cost"));
        ck_assert_int_eq(integer(json_object_get(row, "reasons"), "too large"), 20);
        json_decref(result);
        client_close(&client);
        stop();
}
END_TEST

/* What was asked of storage, as whom, and what that costs: 2 lists and 546 reads of S3. */
START_TEST(requests_and_their_price) {
        struct catalog_source *source;
        json_t *status, *row, *requests, *endpoint;
        struct client client;

        start();
        source = add_source();
        source->price = store_price_s3;
        source->store->identity = (char *)"assumed-role/Research";
        source->store->requests = (struct request_count){ 0 };
        request_count_add(&source->store->requests, REQUEST_READ, 1000, 1); /* in 1970 */
        request_count_add(&source->store->requests, REQUEST_LIST, 2, time(NULL));
        request_count_add(&source->store->requests, REQUEST_READ, 546, time(NULL));
        greet(&client);
        status = call_for_result(&client, "status", "{}");
        ck_assert_uint_eq(fake.asked, 0); /* whoever only looks at the daemon wakes nothing */
        row = json_array_get(json_object_get(status, "sources"), 0);
        requests = json_object_get(row, "requests");
        ck_assert_str_eq(string(row, "identity"), "assumed-role/Research");
        ck_assert_int_eq(integer(requests, "list"), 2);
        ck_assert_int_eq(integer(requests, "read"), 1546);
        ck_assert_int_eq(integer(json_object_get(requests, "today"), "read"), 546);
        ck_assert_int_eq(integer(json_object_get(requests, "today"), "credentials"), 0);
        ck_assert_double_eq(
                json_real_value(json_object_get(json_object_get(requests, "cost"), "today_usd")),
                2 * 0.000005 + 546 * 0.0000004);
        endpoint = json_array_get(json_object_get(status, "endpoints"), 0);
        ck_assert_int_eq(integer(json_object_get(endpoint, "today"), "list"), 2);
        json_decref(status);
        json_decref(call_for_result(&client, "runs", "{}"));
        ck_assert_uint_eq(fake.asked, 1);
        source->store->identity = NULL;
        client_close(&client);
        stop();
}
END_TEST

/* ---- Sessions ---- */

struct mapped {
        const struct ring_queue *queue;
        const struct ring_entry *entries;
        struct ring_ack *ack;
};

static void subscribe_map(struct client *client, struct mapped *mapped) {
        json_t *answer = call(client, "subscribe", "{\"tags\":[\"loss\"],\"follow\":true}");
        json_t *result = json_object_get(answer, "result");
        void *memory;

        ck_assert_ptr_nonnull(result);
        ck_assert_str_eq(string(result, "transport"), "map");
        ck_assert_int_eq(integer(result, "segments"), 64);
        json_decref(answer);
        ck_assert_uint_eq(client->frame.fd_count, 3);
        memory = mmap(NULL, RING_QUEUE_BYTES, PROT_READ, MAP_SHARED, client->frame.fds[1], 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        mapped->queue = memory;
        mapped->entries = (const struct ring_entry *)((const char *)memory +
                                                      mapped->queue->entries_offset);
        memory = mmap(NULL, RING_ACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                      client->frame.fds[2], 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        mapped->ack = memory;
        wire_frame_close_fds(&client->frame);
}

START_TEST(a_session_maps_its_queue) {
        struct ring_entry entry = { .segment = 3, .size_bytes = 640, .record_count = 5 };
        struct client client;
        struct mapped mapped;

        start();
        greet(&client);
        subscribe_map(&client, &mapped);
        ck_assert_str_eq(fake.reader->first_tag, "loss");
        ck_assert(fake.reader->options.follow);
        ck_assert_uint_eq(mapped.queue->magic, RING_QUEUE_MAGIC);

        fake_push(&entry, "extent");
        ck_assert_uint_eq(mapped.queue->tail, 0);
        fake_flush();
        ck_assert_uint_eq(mapped.queue->tail, 1);
        ck_assert_mem_eq(&mapped.entries[0], &entry, sizeof(entry));
        ck_assert(!is_readable(&client)); /* it does not sleep: no wake frame */

        mapped.ack->want = 1;
        fake_push(&entry, "extent");
        fake_flush();
        ck_assert(receive(&client));
        ck_assert_uint_eq(client.frame.type, WIRE_WAKE);

        mapped.ack->acked = 2;
        send_frame(&client, WIRE_WAKE, NULL, 0);
        for (int i = 0; i < 8; i++)
                turn();
        ck_assert_uint_eq(fake.reader->acked, 2);
        client_close(&client);
        ck_assert_uint_eq(mapped.queue->status, RING_QUEUE_CLOSED);
        stop();
}
END_TEST

/*
 * The reader is never called from inside of a flush, and still hears of what the client has done
 * with.
 */
START_TEST(a_flush_finds_acknowledgements) {
        struct ring_entry entry = { .size_bytes = 640 };
        struct client client;
        struct mapped mapped;

        start();
        greet(&client);
        subscribe_map(&client, &mapped);
        fake_push(&entry, "extent");
        fake_flush();
        mapped.ack->acked = 1;
        fake_push(&entry, "extent");
        fake_flush();
        ck_assert_uint_eq(fake.reader->acked, 0);
        turn();
        ck_assert_uint_eq(fake.reader->acked, 1);
        ck_assert_uint_eq(fake.reader->acknowledgements, 1);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(a_kick_sees_acknowledgements) {
        struct ring_entry entry = { .size_bytes = 640 };
        struct client client;
        struct mapped mapped;

        start();
        greet(&client);
        subscribe_map(&client, &mapped);
        for (unsigned i = 0; i < RING_QUEUE_ENTRIES; i++) {
                ck_assert(fake_has_room());
                fake_push(&entry, "extent");
        }
        ck_assert(!fake_has_room());
        fake_flush();
        mapped.ack->acked = 10;
        ck_assert_uint_eq(fake.reader->operations->set_kick(fake.reader->userdata, 11), 10);
        ck_assert_uint_eq(mapped.queue->kick_at, 11);
        ck_assert(fake_has_room());
        client_close(&client);
        stop();
}
END_TEST

START_TEST(a_kick_does_not_believe_everything) {
        struct ring_entry entry = { .size_bytes = 640 };
        struct client client;
        struct mapped mapped;

        start();
        greet(&client);
        subscribe_map(&client, &mapped);
        for (int i = 0; i < 3; i++)
                fake_push(&entry, "extent");
        fake_flush();
        mapped.ack->acked = 4;
        ck_assert_uint_eq(fake.reader->operations->set_kick(fake.reader->userdata, 1), 0);
        ck_assert(!fake_has_room());
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_INVALID);
        ck_assert(!receive(&client));
        client_close(&client);
        stop();
}
END_TEST

START_TEST(a_broken_reader_ends_its_session) {
        struct client client;

        start();
        greet(&client);
        json_decref(call_for_result(&client, "subscribe", "{\"transport\":\"inline\"}"));
        fake.reader->operations->broken(fake.reader->userdata, -ENOMEM);
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_INTERNAL);
        ck_assert(!receive(&client));
        client_close(&client);
        stop();
}
END_TEST

/*
 * Two requests in one piece are answered in one piece, too: the descriptors belong to the second
 * answer.
 */
START_TEST(descriptors_come_with_their_answer) {
        static const char sources[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sources\"}";
        static const char subscribe[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"subscribe\"}";
        struct wire_header first = { .type = WIRE_JSON, .size_bytes = strlen(sources) };
        struct wire_header second = { .type = WIRE_JSON, .size_bytes = strlen(subscribe) };
        char both[512];
        size_t size = 0;
        struct client client;
        json_t *answer;

        start();
        greet(&client);
        memcpy(both, &first, sizeof(first));
        memcpy(both + sizeof(first), sources, strlen(sources));
        size = sizeof(first) + strlen(sources);
        memcpy(both + size, &second, sizeof(second));
        memcpy(both + size + sizeof(second), subscribe, strlen(subscribe));
        send_all(&client, both, size + sizeof(second) + strlen(subscribe));
        answer = receive_json(&client);
        ck_assert_int_eq(integer(answer, "id"), 1);
        ck_assert_uint_eq(client.frame.fd_count, 0);
        json_decref(answer);
        answer = receive_json(&client);
        ck_assert_int_eq(integer(answer, "id"), 2);
        ck_assert_uint_eq(client.frame.fd_count, 3);
        wire_frame_close_fds(&client.frame);
        json_decref(answer);
        client_close(&client);
        stop();
}
END_TEST

static void lie(uint64_t first, uint64_t second) {
        struct ring_entry entry = { .size_bytes = 640 };
        struct client client;
        struct mapped mapped;
        json_t *error;

        start();
        greet(&client);
        subscribe_map(&client, &mapped);
        for (int i = 0; i < 3; i++)
                fake_push(&entry, "extent");
        fake_flush();
        mapped.ack->acked = first;
        send_frame(&client, WIRE_WAKE, NULL, 0);
        mapped.ack->acked = second;
        send_frame(&client, WIRE_WAKE, NULL, 0);
        error = receive_json(&client);
        ck_assert(json_is_null(json_object_get(error, "id")));
        ck_assert_int_eq(error_code(error), WIRE_E_INVALID);
        ck_assert(!receive(&client));
        ck_assert_ptr_null(fake.reader);
        client_close(&client);
        stop();
}

START_TEST(more_acknowledged_than_sent_ends_the_session) {
        lie(3, 4);
}
END_TEST

START_TEST(acknowledged_backwards_ends_the_session) {
        lie(2, 1);
}
END_TEST

START_TEST(one_session_a_connection_and_as_many_as_fit) {
        struct client clients[5];
        json_t *answer;

        start();
        for (int i = 0; i < 4; i++) {
                greet(&clients[i]);
                json_decref(
                        call_for_result(&clients[i], "subscribe", "{\"transport\":\"inline\"}"));
        }
        ck_assert_int_eq(error_code(call(&clients[0], "subscribe", "{}")), WIRE_E_INVALID);
        greet(&clients[4]);
        answer = call(&clients[4], "subscribe", "{}");
        ck_assert_ptr_nonnull(
                strstr(string(json_object_get(answer, "error"), "message"), "123456789"));
        ck_assert_int_eq(error_code(answer), WIRE_E_LIMIT);
        client_close(&clients[0]);
        json_decref(call_for_result(&clients[4], "subscribe", "{\"transport\":\"inline\"}"));
        for (int i = 1; i < 5; i++)
                client_close(&clients[i]);
        stop();
}
END_TEST

START_TEST(runs_are_prioritized_for_a_session) {
        struct client client;

        start();
        greet(&client);
        ck_assert_int_eq(error_code(call(&client, "prioritize", "{\"runs\":[\"a\"]}")),
                         WIRE_E_INVALID);
        json_decref(call_for_result(&client, "subscribe", "{\"transport\":\"inline\"}"));
        json_decref(call_for_result(&client, "prioritize",
                                    "{\"runs\":[\"a*\"],\"runs_hex\":\"ff62\"}"));
        ck_assert_uint_eq(fake.reader->prioritized_count, 2);
        ck_assert_str_eq(fake.reader->prioritized[0], "a*");
        ck_assert_str_eq(fake.reader->prioritized[1], "\xff"
                                                      "b");
        ck_assert_int_eq(error_code(call(&client, "prioritize", "{\"runs\":7}")), WIRE_E_PARAMS);
        json_decref(call_for_result(&client, "prioritize", "{}"));
        ck_assert_uint_eq(fake.reader->prioritized_count, 0);
        client_close(&client);
        greet(&client);
        json_decref(call_for_result(&client, "subscribe",
                                    "{\"transport\":\"inline\",\"order\":\"sorted\"}"));
        ck_assert_int_eq(error_code(call(&client, "prioritize", "{\"runs\":[\"a\"]}")),
                         WIRE_E_INVALID);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(extents_go_over_the_socket) {
        static uint8_t extent[300000];
        struct ring_entry entry = { .size_bytes = sizeof(extent), .file_id = 9 },
                          end = { .flags = RING_ENTRY_END };
        struct client client;

        start();
        for (size_t i = 0; i < sizeof(extent); i++)
                extent[i] = (uint8_t)(i * 7);
        greet(&client);
        json_decref(call_for_result(&client, "subscribe", "{\"transport\":\"inline\"}"));
        for (unsigned i = 0; i < 63; i++)
                fake_push(&entry, extent);
        ck_assert(fake_has_room());
        fake_push(&end, NULL);
        ck_assert(!fake_has_room());
        fake_flush();
        for (unsigned i = 0; i < 63; i++) {
                ck_assert(receive(&client));
                ck_assert_uint_eq(client.frame.type, WIRE_EXTENT);
                ck_assert_uint_eq(client.frame.size_bytes, sizeof(entry) + sizeof(extent));
                ck_assert_mem_eq(client.frame.body, &entry, sizeof(entry));
                ck_assert_mem_eq(client.frame.body + sizeof(entry), extent, sizeof(extent));
        }
        ck_assert(receive(&client));
        ck_assert_uint_eq(client.frame.size_bytes, sizeof(end));
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"method\":\"ack\",\"params\":{\"position\":64}}");
        ck_assert_uint_eq(fake.reader->acked, 64);
        ck_assert(fake_has_room());
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"method\":\"ack\",\"params\":{\"position\":65}}");
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_INVALID);
        ck_assert(!receive(&client));
        client_close(&client);
        stop();
}
END_TEST

/* What waits to be written is still in the ring: who has not got it cannot have done with it. */
START_TEST(what_was_not_sent_cannot_be_acknowledged) {
        static uint8_t extent[300000];
        struct ring_entry entry = { .size_bytes = sizeof(extent) };
        struct client client;

        start();
        greet(&client);
        json_decref(call_for_result(&client, "subscribe", "{\"transport\":\"inline\"}"));
        for (unsigned i = 0; i < 64; i++)
                fake_push(&entry, extent);
        fake_flush(); /* more than the socket takes */
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"method\":\"ack\",\"params\":{\"position\":64}}");
        ck_assert_uint_eq(fake.reader->acked, 0);
        for (unsigned i = 0; i < 64; i++)
                ck_assert(receive(&client));
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_INVALID);
        ck_assert(!receive(&client));
        client_close(&client);
        stop();
}
END_TEST

START_TEST(a_client_may_die_at_any_time) {
        static uint8_t extent[300000];
        struct ring_entry entry = { .size_bytes = sizeof(extent) };
        struct client client;

        start();
        greet(&client);
        json_decref(call_for_result(&client, "subscribe", "{\"transport\":\"inline\"}"));
        for (unsigned i = 0; i < 64; i++)
                fake_push(&entry, extent);
        fake_flush(); /* more than the socket takes */
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"wait_loaded\"}");
        ck_assert_uint_eq(fake.request_count, 1);
        client_close(&client);
        ck_assert_ptr_null(fake.reader);
        ck_assert_uint_eq(fake.cancelled, 1);
        stop();
}
END_TEST

START_TEST(a_stream_that_cannot_be_completed_says_so) {
        struct catalog_source *source;
        struct client client;
        struct mapped mapped;
        json_t *message;

        start();
        source = add_source();
        source->failure = (struct store_failure){ .class = STORE_PERMANENT,
                                                  .code = "403",
                                                  .message = "AccessDenied" };
        greet(&client);
        subscribe_map(&client, &mapped);
        fake.reader->operations->source_failed(fake.reader->userdata, source);
        message = receive_json(&client);
        ck_assert_str_eq(string(message, "method"), "stream_failed");
        ck_assert_int_eq(integer(json_object_get(message, "params"), "code"), WIRE_E_SOURCE);
        ck_assert_str_eq(
                string(json_object_get(json_object_get(message, "params"), "data"), "code"), "403");
        json_decref(message);
        ck_assert_uint_eq(mapped.queue->status, RING_QUEUE_CLOSED);
        ck_assert(!fake_has_room());
        json_decref(call_for_result(&client, "status", "{}"));
        client_close(&client);
        stop();
}
END_TEST

/* ---- Calls that are answered later ---- */

START_TEST(waiting_is_answered_with_what_was_loaded) {
        struct catalog_source *source;
        struct pipeline_request *request;
        struct client client;
        json_t *message;

        start();
        source = add_source();
        add_files(source, 3);
        catalog_set_state(source->runs[1]->files[0], CATALOG_UNREADABLE, true);
        catalog_set_failure(source->runs[1]->files[0],
                            &(struct store_failure){ .class = STORE_PERMANENT, .code = "404" });
        greet(&client);
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"wait_loaded\"}");
        fake.events->progress(fake.events_userdata, source);
        message = receive_json(&client); /* who waits for loading hears of progress */
        ck_assert_str_eq(string(message, "method"), "progress");
        ck_assert_int_eq(integer(json_object_get(message, "params"), "files"), 3);
        json_decref(message);
        request = fake_take_request();
        request->on_loaded(request->userdata, NULL);
        free(request);
        message = receive_json(&client);
        ck_assert_int_eq(integer(message, "id"), 9);
        ck_assert_int_eq(integer(json_object_get(message, "result"), "files"), 3);
        ck_assert_int_eq(integer(json_object_get(message, "result"), "failed_count"), 1);
        ck_assert_str_eq(
                string(json_array_get(json_object_get(json_object_get(message, "result"), "failed"),
                                      0),
                       "code"),
                "404");
        json_decref(message);
        fake.events->progress(fake.events_userdata, source);
        ck_assert(!is_readable(&client)); /* nothing waits any more */
        client_close(&client);
        stop();
}
END_TEST

START_TEST(a_source_that_fails_is_an_error) {
        static const struct store_failure failure = { .class = STORE_PERMANENT,
                                                      .code = "403",
                                                      .message = "no \xff right" };
        struct pipeline_request *request;
        struct client client;

        start();
        add_source();
        greet(&client);
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"reload\",\"params\":{"
                           "\"source\":\"exp\"}}");
        request = fake_take_request();
        request->on_reloaded(request->userdata, &failure);
        free(request);
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_SOURCE);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(calls_that_wait_are_limited) {
        struct client client;

        start();
        greet(&client);
        for (int i = 0; i < 80; i++)
                send_text(&client, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"wait_loaded\"}");
        ck_assert_int_eq(error_code(call(&client, "wait_loaded", "{}")), WIRE_E_LIMIT);
        client_close(&client);
        ck_assert_uint_eq(fake.cancelled, 80);
        stop();
}
END_TEST

#define PAYLOAD_PARAMS \
        "{\"file\":\"0000000000000001\",\"file_version\":\"0000000000000002\",\"offset\":24," \
        "\"index\":0}"

static void ask_payload(struct client *client) {
        send_text(client,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"payload\",\"params\":" PAYLOAD_PARAMS
                  "}");
}

static uint8_t *make_payload(uint64_t size) {
        uint8_t *memory = malloc(size);

        ck_assert_ptr_nonnull(memory);
        for (size_t i = 0; i < size; i++)
                memory[i] = (uint8_t)(i * 13);
        return memory;
}

static bool is_payload(const uint8_t *memory, uint64_t size) {
        uint8_t *expected = make_payload(size);
        bool same = memcmp(memory, expected, size) == 0;

        free(expected);
        return same;
}

static void answer_payload(uint64_t size) {
        struct pipeline_request *request = fake_take_request();

        request->on_payload(request->userdata, 0, NULL, make_payload(size), size);
        free(request);
}

START_TEST(payloads_come_as_sealed_memory) {
        struct client client;
        struct stat status;
        uint8_t *memory;
        json_t *message;
        int fd;

        start();
        greet(&client);
        ask_payload(&client);
        answer_payload(3000000);
        message = receive_json(&client);
        ck_assert_int_eq(integer(json_object_get(message, "result"), "size_bytes"), 3000000);
        json_decref(message);
        ck_assert_uint_eq(client.frame.fd_count, 1);
        fd = client.frame.fds[0];
        ck_assert_int_eq(fstat(fd, &status), 0);
        ck_assert_int_eq(status.st_size, 3000000);
        ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        ck_assert_int_lt(ftruncate(fd, 0), 0);
        memory = mmap(NULL, 3000000, PROT_READ, MAP_SHARED, fd, 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        ck_assert(is_payload(memory, 3000000));
        wire_frame_close_fds(&client.frame);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(payloads_come_in_frames) {
        enum { SIZE = 2500032 };
        uint8_t *image = malloc(SIZE);
        uint64_t size = 0;
        bool more = true;
        struct client client;

        start();
        greet(&client);
        json_decref(call_for_result(&client, "subscribe", "{\"transport\":\"inline\"}"));
        ask_payload(&client);
        answer_payload(SIZE);
        json_decref(receive_json(&client));
        while (more) {
                uint32_t head = size ? 0 : sizeof(struct ring_entry);

                ck_assert(receive(&client));
                ck_assert_uint_eq(client.frame.type, WIRE_EXTENT);
                ck_assert_uint_le(client.frame.size_bytes, 1u << 20);
                if (head)
                        ck_assert_uint_eq(
                                ((const struct ring_entry *)(const void *)client.frame.body)
                                        ->segment,
                                UINT32_MAX);
                ck_assert_uint_le(size + client.frame.size_bytes - head, SIZE);
                memcpy(image + size, client.frame.body + head, client.frame.size_bytes - head);
                size += client.frame.size_bytes - head;
                more = client.frame.flags & WIRE_MORE;
        }
        ck_assert_uint_eq(size, SIZE);
        ck_assert(is_payload(image, SIZE));
        free(image);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(payloads_wait_for_their_turn) {
        struct client client;

        start();
        greet(&client);
        for (int i = 0; i < 10; i++)
                ask_payload(&client);
        ck_assert_uint_eq(fake.request_count, 4);
        for (int i = 0; i < 10; i++) {
                answer_payload(64);
                json_decref(receive_json(&client));
                wire_frame_close_fds(&client.frame);
                turn();
                ck_assert_uint_le(fake.request_count, 4);
        }
        ck_assert_uint_eq(fake.request_count, 0);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(payloads_that_are_gone_are_errors) {
        static const struct store_failure failure = { .class = STORE_PERMANENT,
                                                      .code = "404",
                                                      .message = "Not Found" };
        struct pipeline_request *request;
        struct client client;

        start();
        greet(&client);
        ask_payload(&client);
        request = fake_take_request();
        request->on_payload(request->userdata, PIPELINE_E_VERSION_GONE, NULL, NULL, 0);
        free(request);
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_VERSION_GONE);
        ask_payload(&client);
        request = fake_take_request();
        request->on_payload(request->userdata, PIPELINE_E_UNREADABLE, &failure, NULL, 0);
        free(request);
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_UNREADABLE);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(damage_comes_in_pages) {
        static const struct damaged_place places[] = { { 7, 9, DAMAGE_DATA_CRC, 0 },
                                                       { 70, 4096, DAMAGE_ZEROS, 0 } };
        static const struct pipeline_place next = { 4166, 3 };
        struct pipeline_request *request;
        struct client client;
        json_t *answer, *result;

        start();
        greet(&client);
        send_text(&client,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"damage\",\"params\":{\"file\":"
                  "\"0000000000000001\",\"file_version\":\"0000000000000002\","
                  "\"offset\":5,\"index\":2,\"limit\":50}}");
        request = fake_take_request();
        ck_assert_uint_eq(request->offset, 5);
        ck_assert_uint_eq(request->index, 2);
        ck_assert_uint_eq(request->most, 50);
        request->on_damage(request->userdata, 0, NULL, places, 2, &next);
        free(request);
        answer = receive_json(&client);
        result = json_object_get(answer, "result");
        ck_assert_uint_eq(json_array_size(json_object_get(result, "damage")), 2);
        ck_assert_str_eq(string(json_array_get(json_object_get(result, "damage"), 1), "reason"),
                         "zeros");
        ck_assert_int_eq(integer(json_object_get(result, "next"), "offset"), 4166);
        ck_assert_int_eq(integer(json_object_get(result, "next"), "index"), 3);
        json_decref(answer);
        send_text(&client,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"damage\",\"params\":{\"file\":"
                  "\"0000000000000001\",\"file_version\":\"0000000000000002\","
                  "\"limit\":100000}}");
        request = fake_take_request();
        ck_assert_uint_eq(request->offset, 0);
        ck_assert_uint_eq(request->most, 1000);
        request->on_damage(request->userdata, PIPELINE_E_VERSION_GONE, NULL, NULL, 0, NULL);
        free(request);
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_VERSION_GONE);
        client_close(&client);
        stop();
}
END_TEST

/* ---- Who may connect ---- */

START_TEST(connections_are_limited) {
        struct server_options options = options_for_tests();
        struct client first, second;

        options.connections_max = 1;
        start_with(&options);
        greet(&first);
        client_connect(&second);
        ck_assert_int_eq(error_code(receive_json(&second)), WIRE_E_LIMIT);
        ck_assert(!receive(&second));
        client_close(&second);
        json_decref(call_for_result(&first, "sources", "{}"));
        client_close(&first);
        greet(&second);
        client_close(&second);
        stop();
}
END_TEST

static void connect_as(struct client *client, uid_t uid) {
        ck_assert_int_eq(seteuid(uid), 0);
        client_connect(client);
        ck_assert_int_eq(seteuid(0), 0);
}

/* The mode of the socket is opened here, so that only the list decides. */
START_TEST(users_are_refused) {
        static const uid_t allowed[] = { 65533 };
        struct server_options options = options_for_tests();
        struct client client;

        if (geteuid() != 0)
                return; /* nobody else can be played */
        options.allow_uids = allowed;
        options.allow_uid_count = 1;
        start_with(&options);
        ck_assert_int_eq(chmod(directory, 0755), 0);
        ck_assert_int_eq(chmod(socket_path, 0666), 0);
        connect_as(&client, 65534);
        ck_assert_int_eq(error_code(receive_json(&client)), WIRE_E_NOT_ALLOWED);
        ck_assert(!receive(&client));
        client_close(&client);
        connect_as(&client, 65533);
        json_decref(call_for_result(&client, "hello", "{}"));
        client_close(&client);
        greet(&client);
        client_close(&client);
        stop();
}
END_TEST

START_TEST(sources_are_added) {
        static char below[] = "/data/ok", other[] = "http://host:80/logs";
        char *allowed[] = { below, other, NULL };
        struct server_options options = options_for_tests();
        struct client client;

        options.allow_sources = allowed;
        start_with(&options);
        add_source();
        greet(&client);
        json_decref(call_for_result(&client, "add_source",
                                    "{\"url\":\"/data/ok/a\",\"name\":\"n\",\"exclude\":\"old\","
                                    "\"since\":\"7d\"}"));
        ck_assert_str_eq(fake.added, "/data/ok/a n old 7d");
        json_decref(call_for_result(&client, "add_source", "{\"url\":\"HTTP://HOST/logs/x\"}"));
        ck_assert_str_eq(fake.added, "HTTP://HOST/logs/x - - -");
        fake.added[0] = '\0';
        ck_assert_int_eq(error_code(call(&client, "add_source", "{\"url\":\"/data/okay\"}")),
                         WIRE_E_NOT_ALLOWED);
        ck_assert_int_eq(error_code(call(&client, "add_source", "{\"url\":\"/data/ok/../x\"}")),
                         WIRE_E_NOT_ALLOWED);
        ck_assert_int_eq(
                error_code(call(&client, "add_source", "{\"url\":\"http://host:81/logs\"}")),
                WIRE_E_NOT_ALLOWED);
        ck_assert_int_eq(error_code(call(&client, "add_source", "{}")), WIRE_E_PARAMS);
        ck_assert_int_eq(
                error_code(call(&client, "add_source", "{\"url\":\"/data/ok\",\"include\":\"[\"}")),
                WIRE_E_PARAMS);
        ck_assert_str_eq(fake.added, "");
        fake.add_error = -EEXIST;
        ck_assert_int_eq(error_code(call(&client, "add_source", "{\"url\":\"/data/ok\"}")),
                         WIRE_E_PARAMS);
        fake.add_error = -EBUSY;
        ck_assert_int_eq(error_code(call(&client, "add_source", "{\"url\":\"/data/ok\"}")),
                         WIRE_E_LIMIT);
        fake.add_error = -EINVAL;
        ck_assert_int_eq(error_code(call(&client, "add_source", "{\"url\":\"/data/ok\"}")),
                         WIRE_E_PARAMS);
        client_close(&client);
        stop();
}
END_TEST

/* The answer comes when it is gone; a client may leave before. */
START_TEST(sources_are_removed) {
        struct pipeline_request *request;
        struct catalog_source *source;
        struct client client;
        json_t *answer;

        start();
        source = add_source();
        greet(&client);
        ck_assert_int_eq(error_code(call(&client, "remove_source", "{\"source\":\"x\"}")),
                         WIRE_E_PARAMS);
        ck_assert_int_eq(error_code(call(&client, "remove_source", "{}")), WIRE_E_PARAMS);
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"remove_source\","
                           "\"params\":{\"source\":\"exp\"}}");
        ck_assert(!is_readable(&client));
        ck_assert_str_eq(fake.removed, "exp");
        fake.events->progress(fake.events_userdata, source);
        fake.events->source_removed(fake.events_userdata, source);
        request = fake_take_request();
        request->on_removed(request->userdata);
        free(request);
        answer = receive_json(&client);
        ck_assert_int_eq(integer(answer, "id"), 9);
        ck_assert(json_is_object(json_object_get(answer, "result")));
        json_decref(answer);
        send_text(&client, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"remove_source\","
                           "\"params\":{\"source\":\"exp\"}}");
        ck_assert(!is_readable(&client));
        client_close(&client);
        ck_assert_uint_eq(fake.cancelled, 1);
        stop();
}
END_TEST

START_TEST(sources_are_for_admins) {
        static const uid_t admins[] = { 65533 };
        struct server_options options = options_for_tests();
        struct client client;

        if (geteuid() != 0)
                return; /* nobody else can be played */
        options.admin_uids = admins;
        options.admin_uid_count = 1;
        start_with(&options);
        add_source();
        ck_assert_int_eq(chmod(directory, 0755), 0);
        ck_assert_int_eq(chmod(socket_path, 0666), 0);
        connect_as(&client, 65534);
        json_decref(call_for_result(&client, "hello", "{}"));
        ck_assert_int_eq(error_code(call(&client, "add_source", "{\"url\":\"/data\"}")),
                         WIRE_E_NOT_ALLOWED);
        ck_assert_int_eq(error_code(call(&client, "remove_source", "{\"source\":\"exp\"}")),
                         WIRE_E_NOT_ALLOWED);
        ck_assert_str_eq(fake.added, "");
        ck_assert_str_eq(fake.removed, "");
        client_close(&client);
        connect_as(&client, 65533);
        json_decref(call_for_result(&client, "hello", "{}"));
        json_decref(call_for_result(&client, "add_source", "{\"url\":\"/data\"}"));
        client_close(&client);
        stop();
}
END_TEST

START_TEST(a_private_daemon_ends_with_its_client) {
        struct server_options options = options_for_tests();
        struct client client;
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        options.socket_path = NULL;
        options.socket_fd = pair[1];
        start_with(&options);
        client_init(&client, pair[0]);
        json_decref(call_for_result(&client, "hello", "{}"));
        ck_assert(!private_ended);
        client_close(&client);
        ck_assert(private_ended);
        stop();
}
END_TEST

RUNNER_MAIN("serve/server", hello_comes_first, other_protocols_are_refused,
            wrong_requests_are_answered, requests_and_their_price, notifications_are_not_answered,
            frames_come_in_pieces, malformed_frames_end_their_connection_only,
            who_does_not_read_waits, answers_go_on_when_some_were_read,
            lines_work_without_a_library, half_a_close_waits_for_the_answer, lists_are_paged,
            a_page_goes_on_where_its_run_has_gone, globs_choose_runs,
            names_that_are_no_text_are_told_exactly, files_say_what_is_wrong,
            a_session_maps_its_queue, a_flush_finds_acknowledgements, a_kick_sees_acknowledgements,
            a_kick_does_not_believe_everything, a_broken_reader_ends_its_session,
            descriptors_come_with_their_answer, more_acknowledged_than_sent_ends_the_session,
            acknowledged_backwards_ends_the_session, one_session_a_connection_and_as_many_as_fit,
            runs_are_prioritized_for_a_session, extents_go_over_the_socket,
            what_was_not_sent_cannot_be_acknowledged, a_client_may_die_at_any_time,
            a_stream_that_cannot_be_completed_says_so, waiting_is_answered_with_what_was_loaded,
            a_source_that_fails_is_an_error, calls_that_wait_are_limited,
            payloads_come_as_sealed_memory, payloads_come_in_frames, payloads_wait_for_their_turn,
            payloads_that_are_gone_are_errors, damage_comes_in_pages, users_are_refused,
            sources_are_added, sources_are_removed, sources_are_for_admins, connections_are_limited,
            a_private_daemon_ends_with_its_client)
