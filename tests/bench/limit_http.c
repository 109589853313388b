/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HTTP alone costs: lists a directory of event files (nginx's JSON autoindex, or pages of S3's
 * ListObjectsV2 from the nginx of tests/rig/bucket.py) and reads each file, by libcurl on epoll,
 * and keeps nothing. No daemon can be faster with the same window of requests.
 *
 *      limit_http URL/ WINDOW [MAX]
 *      limit_http --s3 URL/BUCKET PREFIX/ WINDOW [MAX]
 *
 * Reads begin with the first page. Files are read by one request, those of S3 that are larger than
 * 4 MiB by as many as it takes. WINDOW requests are in flight at first; with MAX, each answer lets
 * one more go out, until there are MAX: so the window doubles every round trip. Prints one JSON
 * object.
 */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"

#define EVENTS_MOST 256
#define PART_BYTES (4u << 20)
#define SLACK_BYTES 65536

struct job {
        char *url;
        uint64_t begin, end;
};

struct limit {
        CURLM *multi;
        int epoll_fd;
        long timeout_ms;          /* libcurl's timer; -1: none */
        const char *url, *prefix; /* prefix: of S3, NULL for a directory */
        CURL *page;               /* a listing that is under way */
        FILE *page_stream;
        char *page_text;
        size_t page_size;
        struct job *jobs;
        size_t job_count, job_space, next, done, failed, files;
        unsigned in_flight, window, window_max, pages;
        uint64_t bytes;
        CURL **idle; /* handles to use again */
        size_t idle_count;
        double begin_s, listed_s;
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

static size_t on_page(char *bytes, size_t size, size_t count, void *userdata) {
        return fwrite(bytes, size, count, userdata) * size;
}

/* ---- Listing ---- */

static void add_job(struct limit *limit, const char *name, size_t size, uint64_t begin,
                    uint64_t end) {
        struct job *job;

        if (limit->job_count == limit->job_space) {
                limit->job_space = limit->job_space ? 2 * limit->job_space : 1024;
                limit->jobs = reallocarray(limit->jobs, limit->job_space, sizeof(*limit->jobs));
                MUST(limit->jobs);
        }
        job = &limit->jobs[limit->job_count++];
        *job = (struct job){ .begin = begin, .end = end };
        MUST(asprintf(&job->url, "%s%s%.*s", limit->url, limit->prefix ? "/" : "", (int)size,
                      name) > 0);
}

/* As a loader asks: the listed size and some slack. */
static void add_file(struct limit *limit, const char *name, size_t name_size, uint64_t size) {
        uint64_t begin = 0;

        limit->files++;
        while (size - begin > PART_BYTES) {
                add_job(limit, name, name_size, begin, begin + PART_BYTES);
                begin += PART_BYTES;
        }
        add_job(limit, name, name_size, begin, size + SLACK_BYTES);
}

static void send_page(struct limit *limit, const char *token) {
        CLEANUP(freep) char *url = NULL, *escaped = token ? curl_easy_escape(NULL, token, 0) : NULL;

        if (limit->prefix)
                MUST(asprintf(&url, "%s?list-type=2&prefix=%s%s%s", limit->url, limit->prefix,
                              token ? "&continuation-token=" : "", token ? escaped : "") > 0);
        limit->page_stream = open_memstream(&limit->page_text, &limit->page_size);
        limit->page = curl_easy_init();
        curl_easy_setopt(limit->page, CURLOPT_URL, url ? url : limit->url);
        curl_easy_setopt(limit->page, CURLOPT_WRITEFUNCTION, on_page);
        curl_easy_setopt(limit->page, CURLOPT_WRITEDATA, limit->page_stream);
        MUST(curl_multi_add_handle(limit->multi, limit->page) == CURLM_OK);
        limit->pages++;
}

static void take_autoindex(struct limit *limit) {
        json_t *names = json_loadb(limit->page_text, limit->page_size, 0, NULL), *entry;
        size_t index;

        MUST(json_is_array(names));
        json_array_foreach(names, index, entry) {
                const char *name = json_string_value(json_object_get(entry, "name"));

                add_file(limit, name, strlen(name),
                         (uint64_t)json_integer_value(json_object_get(entry, "size")));
        }
        json_decref(names);
}

/* The text of the next element of that name, at or behind *at. NULL: there is none. */
static char *next_text(char **at, const char *element) {
        char *begin = strstr(*at, element), *end;

        if (!begin)
                return NULL;
        begin += strlen(element);
        end = strchr(begin, '<');
        MUST(end);
        *end = '\0';
        *at = end + 1;
        return begin;
}

static void take_objects(struct limit *limit) {
        char *at = limit->page_text, *start = at, *key;
        char *token = next_text(&at, "<NextContinuationToken>");

        if (!token)
                at = start;
        while ((key = next_text(&at, "<Key>"))) {
                char *size = next_text(&at, "<Size>");

                MUST(size);
                if (strstr(key, "tfevents"))
                        add_file(limit, key, strlen(key), strtoull(size, NULL, 10));
        }
        if (token)
                send_page(limit, token);
}

static void page_ended(struct limit *limit) {
        char *text;

        curl_multi_remove_handle(limit->multi, limit->page);
        curl_easy_cleanup(steal_pointer(&limit->page));
        fclose(limit->page_stream);
        text = limit->page_text;
        if (limit->prefix)
                take_objects(limit);
        else
                take_autoindex(limit);
        free(text);
        limit->listed_s = now_s();
}

/* ---- Reading ---- */

static CURL *take_handle(struct limit *limit) {
        CURL *easy;

        if (limit->idle_count > 0)
                return limit->idle[--limit->idle_count];
        easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &limit->bytes);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        return easy;
}

static void send_more(struct limit *limit) {
        while (limit->in_flight < limit->window && limit->next < limit->job_count) {
                const struct job *job = &limit->jobs[limit->next++];
                CURL *easy = take_handle(limit);
                char range[64];

                snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)job->begin,
                         (unsigned long long)job->end - 1);
                curl_easy_setopt(easy, CURLOPT_RANGE, range);
                curl_easy_setopt(easy, CURLOPT_URL, job->url);
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
                if (easy == limit->page) {
                        MUST(message->data.result == CURLE_OK && status == 200);
                        page_ended(limit);
                        continue;
                }
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

static void limit_run(struct limit *limit) {
        struct epoll_event events[EVENTS_MOST];
        int running;

        send_page(limit, NULL);
        while (limit->page || limit->done < limit->job_count) {
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
        limit->window = (unsigned)atoi(arguments[0]);
        limit->window_max = count > 1 ? (unsigned)atoi(arguments[1]) : limit->window;
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
        for (size_t i = 0; i < limit->job_count; i++)
                free(limit->jobs[i].url);
        free(limit->jobs);
        close(limit->epoll_fd);
}

static double cpu_s(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
        bool is_s3 = argc > 1 && strcmp(argv[1], "--s3") == 0;
        int fixed = is_s3 ? 4 : 2;
        struct limit limit = { .begin_s = now_s(), .timeout_ms = 0 };

        if (argc < fixed + 1 || argc > fixed + 2) {
                fprintf(stderr, "usage: limit_http URL/ WINDOW [MAX]\n"
                                "       limit_http --s3 URL/BUCKET PREFIX/ WINDOW [MAX]\n");
                return 2;
        }
        limit.url = argv[is_s3 ? 2 : 1];
        limit.prefix = is_s3 ? argv[3] : NULL;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        limit_init(&limit, argv + fixed, argc - fixed);
        limit_run(&limit);
        printf("{\"seconds\": %.4f, \"list_seconds\": %.4f, \"cpu_seconds\": %.4f, \"pages\": %u, "
               "\"files\": %zu, \"requests\": %zu, \"bytes\": %llu, \"failed\": %zu}\n",
               now_s() - limit.begin_s, limit.listed_s - limit.begin_s, cpu_s(), limit.pages,
               limit.files, limit.done, (unsigned long long)limit.bytes, limit.failed);
        limit_deinit(&limit);
        return limit.failed > 0;
}
