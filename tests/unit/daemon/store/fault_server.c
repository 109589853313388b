/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/store/fault_server.h"

#include <check.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base.h"

extern char **environ;

uint8_t test_byte(uint64_t offset) {
        return (uint8_t)(offset * 7 + offset / 251 + offset / 65537);
}

void assert_test_bytes(const uint8_t *bytes, uint64_t offset, uint64_t size) {
        for (uint64_t i = 0; i < size; i++) {
                if (bytes[i] != test_byte(offset + i))
                        ck_abort_msg("wrong byte at %llu", (unsigned long long)(offset + i));
        }
}

void test_root_make(char ret_root[64]) {
        const char *directory = getenv("TMPDIR");

        snprintf(ret_root, 64, "%s/headrace-test-XXXXXX",
                 directory && strlen(directory) < 30 ? directory : "/tmp");
        ck_assert_ptr_nonnull(mkdtemp(ret_root));
        ck_assert_int_eq(chmod(ret_root, 0755), 0);
}

void test_file_write(const char *root, const char *name, uint64_t size_bytes) {
        char path[4096];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", root, name);
        for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
                *slash = '/';
        }
        file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        for (uint64_t i = 0; i < size_bytes; i++)
                fputc(test_byte(i), file);
        ck_assert_int_eq(fclose(file), 0);
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *walk) {
        (void)stat;
        (void)type;
        (void)walk;
        return remove(path);
}

void test_root_remove(const char *root) {
        ck_assert_int_eq(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int read_port(int fd) {
        char text[16] = "";
        size_t size = 0;

        while (size < sizeof(text) - 1 && !strchr(text, '\n')) {
                ssize_t got = read(fd, text + size, 1);

                ck_assert_msg(got == 1, "the fault server did not start: is this the top "
                                        "directory, and python3 there?");
                size++;
        }
        return atoi(text);
}

void fault_server_start(struct fault_server *server) {
        char *argv[] = { (char *)"python3", (char *)"tests/fault/fault_server.py",
                         (char *)"--until-stdin-closes", server->root, NULL };
        posix_spawn_file_actions_t actions;
        int in[2], out[2];

        signal(SIGPIPE, SIG_IGN);
        test_root_make(server->root);
        ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
        ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        ck_assert_int_eq(posix_spawnp(&server->pid, argv[0], &actions, NULL, argv, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        server->stdin_fd = in[1];
        server->port = read_port(out[0]);
        close(out[0]);
        snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d", server->port);
}

void fault_server_stop(struct fault_server *server) {
        int status;

        close(server->stdin_fd);
        ck_assert_int_eq(waitpid(server->pid, &status, 0), server->pid);
        test_root_remove(server->root);
}

struct answer {
        char text[1 << 20];
        size_t size;
};

static size_t keep(char *bytes, size_t one, size_t size, void *userdata) {
        struct answer *answer = userdata;

        (void)one;
        ck_assert(answer->size + size < sizeof(answer->text));
        memcpy(answer->text + answer->size, bytes, size);
        answer->size += size;
        return size;
}

/* post: NULL for GET. */
static void ask(struct fault_server *server, const char *path, const char *post,
                struct answer *ret_answer) {
        CURL *easy = curl_easy_init();
        char url[128];

        snprintf(url, sizeof(url), "%s%s", server->url, path);
        ret_answer->size = 0;
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, ret_answer);
        curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
        if (post)
                curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post);
        ck_assert_int_eq(curl_easy_perform(easy), CURLE_OK);
        curl_easy_cleanup(easy);
}

void fault_server_order(struct fault_server *server, const char *order) {
        static struct answer answer;
        CLEANUP(freep) char *text = strdup(order);

        for (char *c = text; *c; c++)
                *c = *c == '\'' ? '"' : *c;
        ask(server, "/_control", text, &answer);
}

static json_t *stats(struct fault_server *server) {
        static struct answer answer;
        json_t *root;

        ask(server, "/_stats", NULL, &answer);
        root = json_loadb(answer.text, answer.size, 0, NULL);
        ck_assert_ptr_nonnull(root);
        return root;
}

unsigned fault_server_requests(struct fault_server *server, const char *path) {
        json_t *root = stats(server), *row;
        unsigned requests = 0;
        size_t index;

        json_array_foreach(json_object_get(root, "requests"), index, row) {
                if (!path || strcmp(path, json_string_value(json_object_get(row, "path"))) == 0)
                        requests += (unsigned)json_integer_value(json_object_get(row, "requests"));
        }
        json_decref(root);
        return requests;
}

void fault_server_last(struct fault_server *server, const char *path, const char *header,
                       char *ret_text, size_t size) {
        json_t *root = stats(server), *row;
        size_t index;

        json_array_foreach(json_object_get(root, "requests"), index, row) {
                json_t *from = strcmp(header, "?") == 0 ? row : json_object_get(row, "headers");
                const char *text = json_string_value(
                        json_object_get(from, from == row ? "query" : header));

                if (text && strcmp(path, json_string_value(json_object_get(row, "path"))) == 0)
                        snprintf(ret_text, size, "%s", text);
        }
        json_decref(root);
}

static unsigned number(struct fault_server *server, const char *name) {
        json_t *root = stats(server);
        unsigned value = (unsigned)json_integer_value(json_object_get(root, name));

        json_decref(root);
        return value;
}

unsigned fault_server_connections(struct fault_server *server) {
        return number(server, "connections");
}

unsigned fault_server_in_flight_peak(struct fault_server *server) {
        return number(server, "in_flight_peak");
}
