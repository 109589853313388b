/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request waits for the name to be resolved or for a login, is active (in libcurl, which
 * curl_loop.c drives), or has ended and is freed. After each call into libcurl the messages of those
 * that ended are read.
 *
 * Deadlines are counted in ticks of a timer, not in time that has passed: after the loop was held
 * up, bytes that wait in a socket are read before a second tick can call their request dead.
 */
#include "daemon/store/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base.h"
#include "daemon/core/list.h"
#include "daemon/store/curl_loop.h"
#include "daemon/store/failure.h"
#include "daemon/store/http_bearer.h"
#include "daemon/store/http_failure.h"
#include "daemon/store/http_negotiate.h"
#include "daemon/store/http_proxy.h"
#include "daemon/store/resolver.h"

#define HTTP_CLIENT_IDLE_HANDLES_MOST 1024 /* easy handles kept for reuse */
#define HTTP_CLIENT_HEADERS_MOST_BYTES (256u << 10)
#define HTTP_CLIENT_SAMPLES 64
#define LARGE_BYTES (1u << 20) /* requests of more are parts of large files */
#define HTTP_CLIENT_TICKS 8    /* in the shortest deadline */

const struct http_client_options http_client_defaults = {
        .connect_ms = 3000,
        .first_byte_ms = 2000,
        .progress_ms = 5000,
        .idle_ms = 60000,
};

struct http_client {
        uv_loop_t *loop;
        const struct http_url *url;
        struct http_proxy proxy; /* url NULL: none */
        char *ca_bundle;
        char *client_certificate, *client_key; /* NULL: none */
        struct http_bearer bearer;             /* path NULL: none */
        struct http_negotiate negotiate;
        char *claim; /* NULL: none */
        bool use_netrc;
        struct http_client_options options;
        struct resolver resolver;
        struct curl_loop curl;
        struct curl_slist *headers;
        CURL *idle_handles[HTTP_CLIENT_IDLE_HANDLES_MOST];
        unsigned idle_handle_count;
        struct list waiting; /* for the name */
        struct list active;
        struct list late;    /* past their deadline, about to be ended */
        struct list outside; /* wait for a login */
        struct list refused; /* cannot go out, about to be told so */
        /* active ones that got bytes in this turn, by turn_node */
        struct list fresh;
        uint64_t first_bytes_ns[HTTP_CLIENT_SAMPLES]; /* the last ones, in a circle */
        unsigned first_byte_count;
        uv_timer_t refusal_timer;
        /* of deadlines while requests are active, of idleness after the last one */
        uv_timer_t tick;
        uint64_t tick_ms;
        bool closing;
        unsigned open_handles;
        void (*on_closed)(void *userdata);
        void *userdata;
};

struct http_request {
        struct list node, turn_node;
        struct http_client *client;
        CURL *easy; /* NULL while it waits */
        char *url;
        char *method;               /* NULL: GET */
        uint64_t begin, size_bytes; /* size 0: all */
        struct curl_slist *headers; /* NULL: those of the client */
        char *body;                 /* NULL: none */
        size_t body_size;
        bool no_redirects;
        struct http_handler handler;
        void *userdata;
        struct http_answer answer;
        uint64_t start_ns;
        uint64_t header_bytes;
        int refusal;          /* -errno: there is no token */
        unsigned login;       /* that it goes out with: client->negotiate.logins */
        unsigned logins_left; /* that it may wait for */
        unsigned quiet_ticks;
        unsigned connects; /* addresses tried */
        unsigned address;
        struct curl_slist *connect_to;
        char error[CURL_ERROR_SIZE];
};

static void check_messages(void *userdata);

/* True if the connection has brought an answer, so that on_curl_close() will be told of its end. */
static bool is_established(CURL *easy) {
        struct http_request *request = NULL;

        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &request);
        return request && request->answer.first_byte_ns > 0;
}

/* ---- One request inside of libcurl ---- */

static bool is_space(char c) {
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void tell_header(struct http_request *request, const char *line, size_t size) {
        const char *colon = memchr(line, ':', size), *value, *end = line + size;

        if (!colon)
                return; /* the status, or the empty line behind all */
        for (value = colon + 1; value < end && is_space(*value); value++)
                ;
        while (end > value && is_space(end[-1]))
                end--;
        request->handler.on_header(request->userdata, line, (size_t)(colon - line), value,
                                   (size_t)(end - value));
}

/* The answer is the proxy's own, and none of the server's. */
static bool is_refused_by_proxy(const struct http_request *request) {
        return request->client->proxy.url && request->answer.status == 407;
}

/* The answer is not for whoever asked: the request will go out again. */
static bool wants_login(const struct http_request *request) {
        return request->client->options.negotiates && request->answer.status == 401 &&
               request->answer.wants_negotiate && request->logins_left > 0;
}

static size_t on_curl_header(char *line, size_t one, size_t size, void *userdata) {
        struct http_request *request = userdata;

        (void)one;
        request->quiet_ticks = 0;
        request->header_bytes += size;
        if (request->header_bytes > HTTP_CLIENT_HEADERS_MOST_BYTES)
                return 0;
        if (request->answer.first_byte_ns == 0)
                request->answer.first_byte_ns = uv_hrtime() - request->start_ns;
        http_answer_take_line(&request->answer, line, size);
        if (request->handler.on_header && !is_refused_by_proxy(request))
                tell_header(request, line, size);
        return size;
}

static size_t on_curl_body(char *bytes, size_t one, size_t size, void *userdata) {
        struct http_request *request = userdata;

        (void)one;
        request->quiet_ticks = 0;
        if (is_refused_by_proxy(request) || wants_login(request))
                return size;
        if (request->handler.on_turn && !list_is_linked(&request->turn_node))
                list_append(&request->client->fresh, &request->turn_node);
        return request->handler.on_body(request->userdata, &request->answer, (uint8_t *)bytes, size)
                       ? size
                       : 0;
}

static CURL *new_handle(struct http_client *client) {
        CURL *easy = curl_easy_init();

        if (!easy)
                return NULL;
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        /* Never from https to http. */
        curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
                         strcmp(client->url->scheme, "https") == 0 ? "https" : "http,https");
        /* credentials stay with the host they are for: libcurl's default */
        curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 5L);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(easy, CURLOPT_USERAGENT, "headrace");
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)client->options.connect_ms);
        /* with one, the bundle is read again for each connection */
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        if (client->ca_bundle)
                curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_bundle);
        if (client->options.insecure) {
                curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
                curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
        curl_easy_setopt(easy, CURLOPT_PROXY, client->proxy.url ? client->proxy.url : "");
        /* also for where a redirect leads */
        curl_easy_setopt(easy, CURLOPT_NOPROXY, client->proxy.exempt ? client->proxy.exempt : "");
        curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, client->ca_bundle);
        /* what a proxy says of a tunnel is no answer */
        curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        if (client->client_certificate) {
                curl_easy_setopt(easy, CURLOPT_SSLCERT, client->client_certificate);
                curl_easy_setopt(easy, CURLOPT_SSLKEY, client->client_key);
                /* without one, OpenSSL asks the terminal */
                curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
        }
        if (client->bearer.path) {
                curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        } else if (client->url->user && !client->options.no_credentials) {
                curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
                curl_easy_setopt(easy, CURLOPT_USERNAME, client->url->user);
                curl_easy_setopt(easy, CURLOPT_PASSWORD, client->url->password);
        } else if (client->use_netrc) {
                curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
        }
        curl_loop_adopt(&client->curl, easy);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_curl_header);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_curl_body);
        return easy;
}

static CURL *take_handle(struct http_client *client) {
        return client->idle_handle_count ? client->idle_handles[--client->idle_handle_count]
                                         : new_handle(client);
}

static void give_handle(struct http_client *client, CURL *easy) {
        if (client->idle_handle_count < HTTP_CLIENT_IDLE_HANDLES_MOST)
                client->idle_handles[client->idle_handle_count++] = easy;
        else
                curl_easy_cleanup(easy);
}

/*
 * Sends the connection to the next address in turn, and lets certificates be checked against the
 * name.
 */
static int choose_address(struct http_request *request) {
        struct http_client *client = request->client;
        const char *address;
        char text[512];
        bool is_v6;

        curl_slist_free_all(request->connect_to);
        request->connect_to = NULL;
        request->connects++;
        address = client->proxy.url || client->resolver.literal
                          ? NULL
                          : resolver_next(&client->resolver, &request->address);
        if (address) {
                is_v6 = strchr(address, ':');
                snprintf(text, sizeof(text), "%s:%s:%s%s%s:%s", client->url->host,
                         client->url->port, is_v6 ? "[" : "", address, is_v6 ? "]" : "",
                         client->url->port);
                request->connect_to = curl_slist_append(NULL, text);
                if (!request->connect_to)
                        return -ENOMEM;
        }
        curl_easy_setopt(request->easy, CURLOPT_CONNECT_TO, request->connect_to);
        return 0;
}

/* What is not the same for all requests that a handle is used for. */
static void set_query(struct http_request *request) {
        CURL *easy = request->easy;
        char range[48];

        if (request->size_bytes)
                snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)request->begin,
                         (unsigned long long)(request->begin + request->size_bytes - 1));
        /* Of a part 16 times fewer calls; what is small would keep that much memory for nothing. */
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
                         request->size_bytes > LARGE_BYTES ? 262144L : 16384L);
        curl_easy_setopt(easy, CURLOPT_RANGE, request->size_bytes ? range : NULL);
        if (request->body) {
                curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)request->body_size);
                curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        } else {
                curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        }
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER,
                         request->headers ? request->headers : request->client->headers);
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->no_redirects ? 0L : 1L);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
}

static void on_tick(uv_timer_t *tick);
static void on_idle(uv_timer_t *tick);

static void on_refusal_time(uv_timer_t *timer);

/* The token is given to libcurl, which sends it to no other host. -errno. */
static int set_token(struct http_request *request) {
        const char *token;
        int r;

        if (!request->client->bearer.path)
                return 0;
        r = http_bearer_get(&request->client->bearer, &token);
        if (r < 0)
                return r;
        return curl_easy_setopt(request->easy, CURLOPT_XOAUTH2_BEARER, token) == CURLE_OK ? 0
                                                                                          : -ENOMEM;
}

/* Without the claim of the query, as there is a proof. */
static void drop_claim(struct http_request *request) {
        const char *claim = request->client->claim;
        char *at = claim ? strstr(request->url, claim) : NULL;

        if (at)
                memmove(at, at + strlen(claim), strlen(at + strlen(claim)) + 1);
}

/* The cookie of the last login, or, where the server gives none, a negotiation for each request. */
static void set_login(struct http_request *request) {
        const struct http_negotiate *negotiate = &request->client->negotiate;
        bool alone = negotiate->logins > 0 && !negotiate->cookie;

        if (!request->client->options.negotiates)
                return;
        request->login = negotiate->logins;
        curl_easy_setopt(request->easy, CURLOPT_COOKIE, negotiate->cookie);
        curl_easy_setopt(request->easy, CURLOPT_HTTPAUTH,
                         (long)(alone ? CURLAUTH_NEGOTIATE : CURLAUTH_NONE));
        curl_easy_setopt(request->easy, CURLOPT_USERPWD, alone ? ":" : NULL);
        if (negotiate->logins > 0)
                drop_claim(request);
}

/* The request ends in the next turn of the loop. */
static int refuse(struct http_request *request, int error) {
        struct http_client *client = request->client;

        request->refusal = error;
        give_handle(client, steal_pointer(&request->easy));
        list_append(&client->refused, &request->node);
        return uv_timer_start(&client->refusal_timer, on_refusal_time, 0, 0);
}

/* Hands the request to libcurl. -ENOMEM. */
static int activate(struct http_request *request) {
        struct http_client *client = request->client;
        int r;

        request->easy = take_handle(client);
        if (!request->easy || curl_loop_open(&client->curl) < 0 || choose_address(request) < 0)
                return -ENOMEM;
        r = set_token(request);
        if (r < 0)
                return refuse(request, r);
        set_login(request);
        set_query(request);
        if (curl_easy_setopt(request->easy, CURLOPT_URL, request->url) != CURLE_OK ||
            curl_multi_add_handle(client->curl.multi, request->easy) != CURLM_OK)
                return -ENOMEM;
        if (list_is_empty(&client->active))
                uv_timer_start(&client->tick, on_tick, client->tick_ms, client->tick_ms);
        list_append(&client->active, &request->node);
        return 0;
}

/* Takes the request out of everything: it is freed, or goes out anew. */
static void detach(struct http_request *request) {
        struct http_client *client = request->client;

        list_remove(&request->node);
        list_remove(&request->turn_node);
        if (!request->easy)
                return;
        curl_easy_setopt(request->easy, CURLOPT_ERRORBUFFER, NULL);
        curl_multi_remove_handle(client->curl.multi, request->easy);
        give_handle(client, steal_pointer(&request->easy));
        if (list_is_empty(&client->active) && !client->closing)
                uv_timer_start(&client->tick, on_idle, client->options.idle_ms, 0);
}

static struct http_request *request_free(struct http_request *request) {
        curl_slist_free_all(request->connect_to);
        curl_slist_free_all(request->headers);
        if (request->body)
                explicit_bzero(request->body, request->body_size);
        free(request->body);
        free(request->method);
        free(request->url);
        free(request);
        return NULL;
}

static void finish(struct http_request *request, const struct store_failure *transport) {
        request->answer.total_ns = uv_hrtime() - request->start_ns;
        detach(request);
        request->handler.on_done(request->userdata, &request->answer, transport);
        request_free(request);
}

/* ---- How requests end ---- */

/* How long it took to send it: on a connection that may have had to be made. 0: it is not sent. */
static uint64_t sent_after_ns(const struct http_request *request) {
        curl_off_t sent_us = 0;

        curl_easy_getinfo(request->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
        return sent_us > 0 ? (uint64_t)sent_us * 1000 : 0;
}

/* libcurl has a deadline of its own for what comes before. */
static bool is_sent(const struct http_request *request) {
        return sent_after_ns(request) > 0;
}

/* To the server, or to the proxy. */
static bool is_connected(const struct http_request *request) {
        curl_off_t connected_us = 0;

        curl_easy_getinfo(request->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
        return connected_us > 0 || is_sent(request);
}

static void set_failure(struct http_request *request, CURLcode code,
                        struct store_failure *ret_failure) {
        struct http_failure failure = { .code = code,
                                        .words = request->error,
                                        .url = request->url,
                                        .is_connected = is_connected(request),
                                        .proxy = &request->client->proxy };

        curl_easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &failure.os_error);
        curl_easy_getinfo(request->easy, CURLINFO_HTTP_CONNECTCODE, &failure.proxy_status);
        if (is_refused_by_proxy(request))
                failure.proxy_status = request->answer.status;
        http_failure_tell(&failure, ret_failure);
        if (is_refused_by_proxy(request) || code == CURLE_TOO_MANY_REDIRECTS)
                request->answer.status = 0; /* there is no answer */
}

/* True if the request is on its way to another address. */
static bool try_next_address(struct http_request *request, CURLcode code) {
        struct http_client *client = request->client;

        bool is_dead = code == CURLE_COULDNT_CONNECT ||
                       (code == CURLE_OPERATION_TIMEDOUT && !is_connected(request));

        if (!is_dead || !request->connect_to ||
            !resolver_set_bad(&client->resolver, request->address) ||
            request->connects >= client->resolver.count)
                return false;
        curl_multi_remove_handle(client->curl.multi, request->easy);
        request->error[0] = '\0';
        return choose_address(request) == 0 &&
               curl_multi_add_handle(client->curl.multi, request->easy) == CURLM_OK;
}

/* ---- Logins ---- */

/*
 * Those that wait now go out, or fail with the login. A callback may cancel any of them, send others,
 * and close the client.
 */
static void on_login(void *userdata, const struct store_failure *failure) {
        struct http_client *client = userdata;
        struct store_failure transport;

        if (failure->class == STORE_OK && client->options.on_login)
                client->options.on_login(client->options.login_userdata);
        while (!list_is_empty(&client->outside)) {
                struct http_request *request = list_owner(client->outside.next, struct http_request,
                                                          node);

                list_remove(&request->node);
                transport = *failure;
                if (transport.class == STORE_OK && activate(request) < 0)
                        failure_set_errno(&transport, ENOMEM, client->url->endpoint);
                if (transport.class != STORE_OK)
                        finish(request, &transport);
        }
}

static int log_in(struct http_request *request) {
        struct http_client *client = request->client;
        struct http_negotiate_way way = { .url = request->url,
                                          .ca_bundle = client->ca_bundle,
                                          .proxy = client->proxy.url,
                                          .exempt = client->proxy.exempt,
                                          .insecure = client->options.insecure,
                                          .timeout_ms = client->options.connect_ms +
                                                        client->options.first_byte_ms };

        return http_negotiate_start(&client->negotiate, &way);
}

/*
 * The request goes out again, with a login that others have got meanwhile, or when there is one.
 * False: it does not.
 */
static bool try_with_login(struct http_request *request) {
        struct http_client *client = request->client;

        if (!wants_login(request))
                return false;
        request->logins_left--;
        detach(request);
        http_answer_init(&request->answer);
        request->header_bytes = 0;
        request->quiet_ticks = 0;
        if (request->login != client->negotiate.logins)
                return activate(request) == 0;
        list_append(&client->outside, &request->node);
        drop_claim(request);
        return log_in(request) == 0;
}

/* What connections take, and we, is not the server's time for an answer. */
static void count_from_sent(struct http_request *request) {
        struct http_answer *answer = &request->answer;

        if (answer->first_byte_ns)
                answer->first_byte_ns -= min_u64(sent_after_ns(request), answer->first_byte_ns - 1);
}

static void take_sample(struct http_client *client, const struct http_request *request) {
        client->first_bytes_ns[client->first_byte_count++ % HTTP_CLIENT_SAMPLES] =
                request->answer.first_byte_ns;
}

static void take_message(struct http_client *client, const CURLMsg *message) {
        struct http_request *request;
        struct store_failure transport;
        CURLcode code = message->data.result;

        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        if (try_next_address(request, code))
                return;
        count_from_sent(request);
        failure_clear(&transport);
        if (code == CURLE_OK && wants_login(request)) {
                if (try_with_login(request))
                        return;
                failure_set_errno(&transport, ENOMEM, request->client->url->endpoint);
        } else if (code == CURLE_OK && !is_refused_by_proxy(request))
                take_sample(client, request);
        else
                set_failure(request, code, &transport);
        finish(request, &transport);
}

/*
 * After every call into libcurl that may have moved bytes. A callback may do anything, also close
 * the client.
 */
static void check_messages(void *userdata) {
        struct http_client *client = userdata;
        CURLMsg *message;
        int left;

        while (!list_is_empty(&client->fresh)) {
                struct http_request *request = list_owner(client->fresh.next, struct http_request,
                                                          turn_node);

                list_remove(&request->turn_node);
                request->handler.on_turn(request->userdata);
        }
        while (client->curl.multi && (message = curl_multi_info_read(client->curl.multi, &left))) {
                if (message->msg == CURLMSG_DONE)
                        take_message(client, message);
        }
}

/* ---- Deadlines ---- */

static int compare_u64(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static uint64_t first_byte_deadline_ms(struct http_client *client) {
        uint64_t sorted[HTTP_CLIENT_SAMPLES];
        size_t count = min_u64(client->first_byte_count, HTTP_CLIENT_SAMPLES);

        if (count == 0)
                return client->options.first_byte_ms;
        memcpy(sorted, client->first_bytes_ns, count * sizeof(sorted[0]));
        qsort(sorted, count, sizeof(sorted[0]), compare_u64);
        return max_u64(client->options.first_byte_ms, 8 * sorted[count / 2] / 1000000);
}

static void give_up(struct http_request *request, uint64_t deadline_ms) {
        bool answered = request->answer.first_byte_ns > 0;
        struct store_failure transport;

        failure_set(&transport, STORE_TRANSIENT, answered ? "stalled" : "timeout",
                    "%s for %llu ms: %.*s", answered ? "No progress" : "No answer",
                    (unsigned long long)deadline_ms, (int)strcspn(request->url, "?"), request->url);
        finish(request, &transport);
}

static void on_tick(uv_timer_t *tick) {
        struct http_client *client = tick->data;
        uint64_t first_byte_ms = first_byte_deadline_ms(client);

        for (struct list *node = client->active.next, *next; node != &client->active; node = next) {
                struct http_request *request = list_owner(node, struct http_request, node);
                bool answered = request->answer.first_byte_ns > 0;

                next = node->next;
                if (!answered && !is_sent(request)) {
                        request->quiet_ticks = 0;
                        continue;
                }
                request->quiet_ticks++;
                if (request->quiet_ticks * client->tick_ms <
                    (answered ? client->options.progress_ms : first_byte_ms))
                        continue;
                list_remove(node);
                list_append(&client->late, node);
        }
        /*
         * They are ended one by one from a list of their own, because a callback may cancel any
         * other one.
         */
        while (!list_is_empty(&client->late)) {
                struct http_request *request = list_owner(client->late.next, struct http_request,
                                                          node);

                give_up(request, request->answer.first_byte_ns ? client->options.progress_ms
                                                               : first_byte_ms);
        }
}

/* ---- Requests that cannot go out ---- */

static void on_refusal_time(uv_timer_t *timer) {
        struct http_client *client = timer->data;

        while (!list_is_empty(&client->refused)) {
                struct http_request *request = list_owner(client->refused.next, struct http_request,
                                                          node);
                struct store_failure transport;

                if (request->refusal == -EBADMSG)
                        failure_set(&transport, STORE_PERMANENT, "bearer-file",
                                    "No bearer token in %s", client->bearer.path);
                else
                        failure_set_errno(&transport, -request->refusal, client->bearer.path);
                failure_advise(&transport, "bearer_file of the source names it");
                finish(request, &transport);
        }
}

static void drop_multi(struct http_client *client) {
        while (client->idle_handle_count)
                curl_easy_cleanup(client->idle_handles[--client->idle_handle_count]);
        curl_loop_drop(&client->curl);
}

/* Idle connections are not watched by libcurl, and stay in CLOSE_WAIT for ever. */
static void on_idle(uv_timer_t *tick) {
        drop_multi(tick->data);
}

/* ---- Requests ---- */

static void on_resolved(void *userdata, int error) {
        struct http_client *client = userdata;
        struct store_failure transport;

        while (!list_is_empty(&client->waiting)) {
                struct http_request *request = list_owner(client->waiting.next, struct http_request,
                                                          node);

                list_remove(&request->node);
                if (error) {
                        failure_set(&transport, STORE_TRANSIENT, "resolve", "Cannot resolve %s: %s",
                                    client->url->host, uv_strerror(error));
                        finish(request, &transport);
                } else if (activate(request) < 0) {
                        failure_set_errno(&transport, ENOMEM, client->url->endpoint);
                        finish(request, &transport);
                }
        }
}

static int start(struct http_request *request) {
        struct http_client *client = request->client;
        int r;

        if (client->proxy.url || resolver_is_ready(&client->resolver))
                return activate(request);
        r = resolver_start(&client->resolver);
        if (r == 0)
                list_append(&client->waiting, &request->node);
        return r;
}

/* The client's own headers, and the query's. */
static int copy_headers(struct http_request *request, const char *const *headers) {
        const struct curl_slist *own = request->client->headers;
        struct curl_slist *longer;

        for (size_t i = 0; own || headers[i]; own = own ? own->next : NULL) {
                longer = curl_slist_append(request->headers, own ? own->data : headers[i++]);
                if (!longer)
                        return -ENOMEM;
                request->headers = longer;
        }
        return 0;
}

static int copy_query(struct http_request *request, const struct http_query *query) {
        request->begin = query->begin;
        request->size_bytes = query->size_bytes;
        request->no_redirects = query->no_redirects;
        if (asprintf(&request->url, "%s%s", request->client->url->endpoint, query->target) < 0) {
                request->url = NULL;
                return -ENOMEM;
        }
        if (query->method && !(request->method = strdup(query->method)))
                return -ENOMEM;
        if (query->body) {
                request->body = malloc(query->body_size + 1);
                if (!request->body)
                        return -ENOMEM;
                memcpy(request->body, query->body, query->body_size);
                request->body_size = query->body_size;
        }
        return query->headers ? copy_headers(request, query->headers) : 0;
}

int http_client_send(struct http_client *client, const struct http_query *query,
                     const struct http_handler *handler, void *userdata,
                     struct http_request **ret_request) {
        struct http_request *request = calloc(1, sizeof(*request));
        int r;

        if (!request)
                return -ENOMEM;
        list_init(&request->node);
        list_init(&request->turn_node);
        http_answer_init(&request->answer);
        request->client = client;
        request->handler = *handler;
        request->userdata = userdata;
        request->start_ns = uv_hrtime();
        request->logins_left = 2;
        r = copy_query(request, query);
        if (r == 0)
                r = start(request);
        if (r < 0) {
                detach(request);
                request_free(request);
                return r;
        }
        *ret_request = request;
        return 0;
}

uint64_t http_request_waits_since_ns(const struct http_request *request) {
        return request->answer.first_byte_ns || !request->easy
                       ? 0
                       : request->start_ns + sent_after_ns(request);
}

void http_request_cancel(struct http_request *request) {
        detach(request);
        request_free(request);
}

/* ---- Life ---- */

/* The bundle that the environment names, else the one libcurl was built with. */
static char *find_ca_bundle(void) {
        static const char *const names[] = { "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "SSL_CERT_FILE" };
        const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
        const char *path = version->cainfo;

        for (size_t i = ARRAY_SIZE(names); i-- > 0;) {
                const char *value = getenv(names[i]);

                if (value && *value)
                        path = value;
        }
        return strdup(path ? path : "/etc/ssl/certs/ca-certificates.crt");
}

static bool has_netrc(void) {
        CLEANUP(freep) char *path = NULL;
        const char *home = getenv("HOME");

        return home && asprintf(&path, "%s/.netrc", home) > 0 && access(path, R_OK) == 0;
}

static void http_client_free(struct http_client *client) {
        resolver_deinit(&client->resolver);
        http_bearer_deinit(&client->bearer);
        http_proxy_deinit(&client->proxy);
        http_negotiate_deinit(&client->negotiate);
        free(client->claim);
        free(client->client_certificate);
        free(client->client_key);
        curl_slist_free_all(client->headers);
        free(client->ca_bundle);
        free(client);
        curl_global_cleanup();
}

static void maybe_finish_close(struct http_client *client) {
        void (*on_closed)(void *) = client->on_closed;
        void *userdata = client->userdata;

        if (client->open_handles > 0)
                return;
        http_client_free(client);
        on_closed(userdata);
}

static void on_curl_closed(void *userdata) {
        struct http_client *client = userdata;

        client->open_handles--;
        maybe_finish_close(client);
}

static void on_timer_closed(uv_handle_t *handle) {
        struct http_client *client = handle->data;

        client->open_handles--;
        maybe_finish_close(client);
}

/* The resolver is there in any case. -ENOMEM. */
static int prepare(struct http_client *client, uv_loop_t *loop) {
        const struct http_client_options *options = &client->options;
        int r = resolver_init(&client->resolver, loop, client->url->host, client->url->port,
                              on_resolved, client);

        if (r == 0 && !options->no_proxy)
                r = http_proxy_find(client->url, &client->proxy);
        if (r == 0 && options->bearer_file)
                r = http_bearer_init(&client->bearer, options->bearer_file);
        if (r == 0 && options->client_certificate) {
                client->client_certificate = strdup(options->client_certificate);
                r = client->client_certificate ? 0 : -ENOMEM;
        }
        if (r == 0 && options->claim) {
                client->claim = strdup(options->claim);
                r = client->claim ? 0 : -ENOMEM;
        }
        if (r == 0 && options->client_key) {
                client->client_key = strdup(options->client_key);
                r = client->client_key ? 0 : -ENOMEM;
        }
        /* transcoding servers ignore ranges otherwise */
        client->headers = curl_slist_append(NULL, "Accept-Encoding: identity");
        client->ca_bundle = find_ca_bundle();
        return r == 0 && (!client->headers || !client->ca_bundle) ? -ENOMEM : r;
}

int http_client_new(uv_loop_t *loop, const struct http_url *url,
                    const struct http_client_options *options, struct http_client **ret_client) {
        struct http_client *client = calloc(1, sizeof(*client));
        int r;

        if (!client)
                return -ENOMEM;
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
                free(client);
                return -ENOMEM;
        }
        client->loop = loop;
        client->url = url;
        client->use_netrc = !options->no_credentials && has_netrc();
        client->options = *options;
        client->tick_ms = max_u64(1, min_u64(options->first_byte_ms, options->progress_ms) /
                                             HTTP_CLIENT_TICKS);
        list_init(&client->waiting);
        list_init(&client->active);
        list_init(&client->late);
        list_init(&client->fresh);
        list_init(&client->refused);
        list_init(&client->outside);
        http_negotiate_init(&client->negotiate, loop, on_login, client);
        r = prepare(client, loop);
        if (r < 0) {
                http_client_free(client);
                return r;
        }
        curl_loop_init(&client->curl, loop, check_messages, is_established, client);
        uv_timer_init(loop, &client->tick);
        uv_timer_init(loop, &client->refusal_timer);
        client->tick.data = client->refusal_timer.data = client;
        client->open_handles = 3;
        *ret_client = client;
        return 0;
}

static void cancel_all(struct list *requests) {
        while (!list_is_empty(requests))
                http_request_cancel(list_owner(requests->next, struct http_request, node));
}

void http_client_close(struct http_client *client, void (*on_closed)(void *userdata),
                       void *userdata) {
        client->closing = true;
        client->on_closed = on_closed;
        client->userdata = userdata;
        cancel_all(&client->waiting);
        cancel_all(&client->active);
        cancel_all(&client->late);
        cancel_all(&client->refused);
        cancel_all(&client->outside);
        drop_multi(client);
        curl_loop_close(&client->curl, on_curl_closed);
        uv_close((uv_handle_t *)&client->tick, on_timer_closed);
        uv_close((uv_handle_t *)&client->refusal_timer, on_timer_closed);
}
