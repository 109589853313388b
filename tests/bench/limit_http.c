/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HTTP alone costs: lists a directory of event files (nginx's JSON autoindex) and reads each
 * file with one request, by libcurl on epoll, and keeps nothing. No daemon can be faster with the
 * same window of requests.
 *
 *      limit_http URL WINDOW [MAX]
 *
 * WINDOW requests are in flight at first; with MAX, each answer lets one more go out, until there
 * are MAX: so the window doubles every round trip. Prints one JSON object.
 */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"

#define EVENTS_MOST 256

struct limit {
        CURLM *multi;
        int epoll_fd;
        long timeout_ms; /* libcurl's timer; -1: none */
        char *url;
        json_t *names;
        size_t next, done, failed;
        unsigned in_flight, window, window_max;
        uint64_t bytes;
        CURL **idle; /* handles to use again */
        size_t idle_count;
};

static double now_s(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *known) {
        struct limit *limit = userdata;
        struct epoll_event event = { .data.fd = fd };

        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                epoll_ctl(limit->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
                return 0;
        }
        event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
        MUST(epoll_ctl(limit->epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0);
        curl_multi_assign(limit->multi, fd, limit);
        return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *userdata) {
        struct limit *limit = userdata;

        (void)multi;
        limit->timeout_ms = timeout_ms;
        return 0;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *userdata) {
        (void)bytes;
        *(uint64_t *)userdata += size * count;
        return size * count;
}

static size_t on_listing(char *bytes, size_t size, size_t count, void *userdata) {
        return fwrite(bytes, size, count, userdata) * size;
}

static void limit_list(struct limit *limit) {
        char *text = NULL;
        size_t size = 0;
        FILE *memory = open_memstream(&text, &size);
        CURL *easy = curl_easy_init();

        curl_easy_setopt(easy, CURLOPT_URL, limit->url);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_listing);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, memory);
        MUST(curl_easy_perform(easy) == CURLE_OK);
        curl_easy_cleanup(easy);
        fclose(memory);
        limit->names = json_loadb(text, size, 0, NULL);
        MUST(json_is_array(limit->names));
        free(text);
}

static CURL *take_handle(struct limit *limit) {
        CURL *easy;

        if (limit->idle_count > 0)
                return limit->idle[--limit->idle_count];
        easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &limit->bytes);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        /* the listed size and some slack, as a loader asks */
        curl_easy_setopt(easy, CURLOPT_RANGE, "0-108575");
        return easy;
}

static void send_more(struct limit *limit) {
        while (limit->in_flight < limit->window && limit->next < json_array_size(limit->names)) {
                const json_t *entry = json_array_get(limit->names, limit->next++);
                CURL *easy = take_handle(limit);
                char *url = NULL;

                MUST(asprintf(&url, "%s%s", limit->url,
                              json_string_value(json_object_get(entry, "name"))) > 0);
                curl_easy_setopt(easy, CURLOPT_URL, url);
                free(url);
                MUST(curl_multi_add_handle(limit->multi, easy) == CURLM_OK);
                limit->in_flight++;
        }
}

static void take_answers(struct limit *limit) {
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(limit->multi, &left))) {
                CURL *easy = message->easy_handle;
                long status = 0;

                curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
                limit->failed += message->data.result != CURLE_OK || status != 206;
                limit->done++;
                limit->in_flight--;
                if (limit->window < limit->window_max)
                        limit->window++;
                curl_multi_remove_handle(limit->multi, easy);
                limit->idle[limit->idle_count++] = easy;
        }
        send_more(limit);
}

static void limit_read(struct limit *limit) {
        struct epoll_event events[EVENTS_MOST];
        int running;

        send_more(limit);
        while (limit->done < json_array_size(limit->names)) {
                int n = epoll_wait(limit->epoll_fd, events, EVENTS_MOST, (int)limit->timeout_ms);

                if (n <= 0)
                        curl_multi_socket_action(limit->multi, CURL_SOCKET_TIMEOUT, 0, &running);
                for (int i = 0; i < n; i++) {
                        int action = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                                     (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                                     (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR
                                                                               : 0);

                        curl_multi_socket_action(limit->multi, events[i].data.fd, action, &running);
                }
                take_answers(limit);
        }
}

static void limit_init(struct limit *limit, char **arguments, int count) {
        *limit = (struct limit){ .url = arguments[1],
                                 .timeout_ms = 0,
                                 .window = (unsigned)atoi(arguments[2]) };
        limit->window_max = count > 3 ? (unsigned)atoi(arguments[3]) : limit->window;
        MUST(limit->window > 0);
        limit->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        limit->multi = curl_multi_init();
        limit->idle = calloc(limit->window_max + limit->window, sizeof(*limit->idle));
        MUST(limit->epoll_fd >= 0 && limit->multi && limit->idle);
        curl_multi_setopt(limit->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(limit->multi, CURLMOPT_SOCKETDATA, limit);
        curl_multi_setopt(limit->multi, CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(limit->multi, CURLMOPT_TIMERDATA, limit);
        curl_multi_setopt(limit->multi, CURLMOPT_MAXCONNECTS, 4096L);
}

static void limit_deinit(struct limit *limit) {
        while (limit->idle_count > 0)
                curl_easy_cleanup(limit->idle[--limit->idle_count]);
        curl_multi_cleanup(limit->multi);
        free(limit->idle);
        json_decref(limit->names);
        close(limit->epoll_fd);
}

int main(int argc, char **argv) {
        struct limit limit;
        double begin = now_s(), listed;

        if (argc < 3 || argc > 4) {
                fprintf(stderr, "usage: limit_http URL/ WINDOW [MAX]\n");
                return 2;
        }
        curl_global_init(CURL_GLOBAL_DEFAULT);
        limit_init(&limit, argv, argc);
        limit_list(&limit);
        listed = now_s();
        limit_read(&limit);
        printf("{\"seconds\": %.4f, \"list_seconds\": %.4f, \"files\": %zu, \"bytes\": %llu, "
               "\"failed\": %zu}\n",
               now_s() - begin, listed - begin, limit.done, (unsigned long long)limit.bytes,
               limit.failed);
        limit_deinit(&limit);
        return limit.failed > 0;
}
