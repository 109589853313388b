/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_negotiate.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"

#define REASON_BYTES 160

struct http_negotiate_job {
        uv_work_t work;
        struct http_negotiate *negotiate; /* NULL: nobody waits any more */
        char *url, *ca_bundle, *proxy, *exempt;
        bool insecure;
        unsigned timeout_ms;
        /* what the thread leaves */
        CURLcode code;
        long status;
        char *cookie;
        char reason[REASON_BYTES]; /* why GSS-API has no token; "": not said */
};

static void wipe(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static void job_free(struct http_negotiate_job *job) {
        free(job->url);
        free(job->ca_bundle);
        wipe(job->proxy);
        free(job->exempt);
        wipe(job->cookie);
        free(job);
}

/* ---- In the thread ---- */

/* The status is enough. */
static size_t on_body(char *bytes, size_t one, size_t size, void *userdata) {
        (void)bytes;
        (void)one;
        (void)size;
        (void)userdata;
        return 0;
}

/*
 * Of GSS-API's failures libcurl tells nothing but here: "gss_init_sec_context() failed: MAJOR. MINOR",
 * of which the second one says something.
 */
static int on_debug(CURL *easy, curl_infotype type, char *text, size_t size, void *userdata) {
        struct http_negotiate_job *job = userdata;
        static const char *const before[] = { ": ", ". " };
        const char *words = text, *end = text + size;

        (void)easy;
        if (type != CURLINFO_TEXT || size < 4 || memcmp(text, "gss_", 4) != 0)
                return 0;
        while (end > text && strchr("\r\n. ", end[-1]))
                end--;
        for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
                const char *found = memmem(words, (size_t)(end - words), before[i], 2);

                words = found ? found + 2 : words;
        }
        snprintf(job->reason, sizeof(job->reason), "%.*s", (int)(end - words), words);
        return 0;
}

/* A line of libcurl's list has seven fields between tabs, of which the last two are name and value. */
static void write_cookie(FILE *out, const char *line, bool is_first) {
        for (unsigned i = 0; i < 5; i++) {
                line = strchr(line, '\t');
                if (!line)
                        return;
                line++;
        }
        if (strchr(line, '\t'))
                fprintf(out, "%s%.*s=%s", is_first ? "" : "; ", (int)strcspn(line, "\t"), line,
                        strchr(line, '\t') + 1);
}

static void take_cookies(struct http_negotiate_job *job, CURL *easy) {
        struct curl_slist *lines = NULL;
        size_t size;
        FILE *out;

        if (curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &lines) != CURLE_OK || !lines)
                return;
        out = open_memstream(&job->cookie, &size);
        for (const struct curl_slist *at = lines; out && at; at = at->next)
                write_cookie(out, at->data, at == lines);
        curl_slist_free_all(lines);
        if (out && (fclose(out) != 0 || size == 0)) {
                free(job->cookie);
                job->cookie = NULL;
        }
}

static void set_way(struct http_negotiate_job *job, CURL *easy) {
        curl_easy_setopt(easy, CURLOPT_URL, job->url);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(easy, CURLOPT_USERAGENT, "headrace");
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)job->timeout_ms);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_CAINFO, job->ca_bundle);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, job->insecure ? 0L : 1L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, job->insecure ? 0L : 2L);
        curl_easy_setopt(easy, CURLOPT_PROXY, job->proxy);
        curl_easy_setopt(easy, CURLOPT_NOPROXY, job->exempt);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
}

/* Some servers set cookies that have nothing to do with the login: those that do not say who asks go. */
static void try_cookies(struct http_negotiate_job *job) {
        CURL *easy = curl_easy_init();
        long status = 401;

        if (easy) {
                set_way(job, easy);
                curl_easy_setopt(easy, CURLOPT_COOKIE, job->cookie);
                curl_easy_perform(easy);
                curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
                curl_easy_cleanup(easy);
        }
        if (status == 401 || status == 0) {
                wipe(job->cookie);
                job->cookie = NULL;
        }
}

static void log_in(uv_work_t *work) {
        struct http_negotiate_job *job = work->data;
        CURL *easy = curl_easy_init();

        job->code = CURLE_OUT_OF_MEMORY;
        if (!easy)
                return;
        set_way(job, easy);
        if (curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_NEGOTIATE) != CURLE_OK)
                snprintf(job->reason, sizeof(job->reason), "this libcurl has no GSS-API");
        curl_easy_setopt(easy, CURLOPT_USERPWD, ":"); /* whoever the ticket is of */
        curl_easy_setopt(easy, CURLOPT_COOKIEFILE, "");
        curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
        curl_easy_setopt(easy, CURLOPT_DEBUGDATA, job);
        curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
        job->code = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &job->status);
        take_cookies(job, easy);
        curl_easy_cleanup(easy);
        if (job->cookie)
                try_cookies(job);
}

/* ---- On the loop ---- */

static void set_failure(const struct http_negotiate_job *job, struct store_failure *ret_failure) {
        int shown = (int)strcspn(job->url, "?");

        failure_clear(ret_failure);
        if (job->code != CURLE_OK && job->code != CURLE_WRITE_ERROR) {
                failure_set(ret_failure, STORE_TRANSIENT, "login", "Login by Kerberos: %s: %.*s",
                            curl_easy_strerror(job->code), shown, job->url);
                return;
        }
        if (job->status != 401)
                return;
        failure_set(ret_failure, STORE_PERMANENT, "401",
                    "The server wants a login by Kerberos (%s): %.*s",
                    job->reason[0] ? job->reason : "it took no ticket", shown, job->url);
        failure_advise(ret_failure, "kinit gets a ticket (klist shows whether there is one); "
                                    "HEADRACE_WEBHDFS_DELEGATION may have a delegation token "
                                    "instead");
}

static void on_logged_in(uv_work_t *work, int status) {
        struct http_negotiate_job *job = work->data;
        struct http_negotiate *negotiate = job->negotiate;
        struct store_failure failure;

        if (negotiate) {
                negotiate->job = NULL;
                if (status < 0)
                        job->code = CURLE_ABORTED_BY_CALLBACK;
                set_failure(job, &failure);
                if (failure.class == STORE_OK) {
                        negotiate->logins++;
                        wipe(negotiate->cookie);
                        negotiate->cookie = steal_pointer(&job->cookie);
                }
                negotiate->on_done(negotiate->userdata, &failure);
        }
        job_free(job);
}

static char *dup_or_empty(const char *text) {
        return strdup(text ? text : "");
}

int http_negotiate_start(struct http_negotiate *negotiate, const struct http_negotiate_way *way) {
        struct http_negotiate_job *job;
        int r = -ENOMEM;

        if (negotiate->job)
                return 0;
        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;
        job->work.data = job;
        job->negotiate = negotiate;
        job->url = dup_or_empty(way->url);
        job->ca_bundle = dup_or_empty(way->ca_bundle);
        job->proxy = dup_or_empty(way->proxy);
        job->exempt = dup_or_empty(way->exempt);
        job->insecure = way->insecure;
        job->timeout_ms = way->timeout_ms;
        if (job->url && job->ca_bundle && job->proxy && job->exempt)
                r = uv_queue_work(negotiate->loop, &job->work, log_in, on_logged_in);
        if (r < 0) {
                job_free(job);
                return r;
        }
        negotiate->job = job;
        return 0;
}

void http_negotiate_init(struct http_negotiate *negotiate, uv_loop_t *loop,
                         void (*on_done)(void *userdata, const struct store_failure *failure),
                         void *userdata) {
        *negotiate = (struct http_negotiate){ .loop = loop,
                                              .on_done = on_done,
                                              .userdata = userdata };
}

void http_negotiate_deinit(struct http_negotiate *negotiate) {
        if (negotiate->job) {
                negotiate->job->negotiate = NULL;
                uv_cancel((uv_req_t *)&negotiate->job->work);
        }
        wipe(negotiate->cookie);
        negotiate->cookie = NULL;
        negotiate->job = NULL;
}
