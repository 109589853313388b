/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_url.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"

static void url_cleanupp(CURLU **parsed) {
        curl_url_cleanup(*parsed);
}

/* Takes one part, as memory of our own. A part that is not there is the fallback. */
static int part(CURLU *parsed, CURLUPart what, unsigned flags, const char *fallback,
                char **ret_part) {
        char *text = NULL, *copy;
        CURLUcode code = curl_url_get(parsed, what, &text, flags);

        if (code == CURLUE_OUT_OF_MEMORY)
                return -ENOMEM;
        if (code != CURLUE_OK && !fallback)
                return 0;
        copy = strdup(code == CURLUE_OK ? text : fallback);
        curl_free(text);
        if (!copy)
                return -ENOMEM;
        *ret_part = copy;
        return 0;
}

static void trim_slashes(char *path) {
        size_t size = strlen(path);

        while (size > 0 && path[size - 1] == '/')
                path[--size] = '\0';
}

/* "[::1]" -> "::1"; both in lower case. */
static void bare_host(char *host) {
        size_t size = strlen(host);

        for (size_t i = 0; i < size; i++)
                host[i] = (char)tolower((unsigned char)host[i]);
        if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
                memmove(host, host + 1, size - 2);
                host[size - 2] = '\0';
        }
}

static int join(struct http_url *url) {
        bool is_v6 = strchr(url->host, ':');
        char *query;

        if (asprintf(&url->endpoint, "%s://%s%s%s:%s", url->scheme, is_v6 ? "[" : "", url->host,
                     is_v6 ? "]" : "", url->port) < 0) {
                url->endpoint = NULL;
                return -ENOMEM;
        }
        if (url->query[0] == '\0')
                return 0;
        if (asprintf(&query, "?%s", url->query) < 0)
                return -ENOMEM;
        free(url->query);
        url->query = query;
        return 0;
}

static int take_parts(struct http_url *url, CURLU *parsed) {
        int r;

        if ((r = part(parsed, CURLUPART_SCHEME, 0, "", &url->scheme)) < 0 ||
            (r = part(parsed, CURLUPART_HOST, 0, "", &url->host)) < 0 ||
            (r = part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT, "", &url->port)) < 0 ||
            (r = part(parsed, CURLUPART_USER, CURLU_URLDECODE, NULL, &url->user)) < 0 ||
            (r = part(parsed, CURLUPART_PASSWORD, CURLU_URLDECODE, url->user ? "" : NULL,
                      &url->password)) < 0 ||
            (r = part(parsed, CURLUPART_PATH, 0, "", &url->path)) < 0 ||
            (r = part(parsed, CURLUPART_QUERY, 0, "", &url->query)) < 0)
                return r;
        trim_slashes(url->path);
        bare_host(url->host);
        return join(url);
}

int http_url_init(struct http_url *url, const char *text, const char **ret_message) {
        CLEANUP(url_cleanupp) CURLU *parsed = curl_url();
        CURLUcode code;
        int r;

        *url = (struct http_url){ 0 };
        if (!parsed)
                return -ENOMEM;
        code = curl_url_set(parsed, CURLUPART_URL, text, CURLU_URLENCODE | CURLU_PATH_AS_IS);
        if (code != CURLUE_OK) {
                *ret_message = code == CURLUE_NO_HOST ? "the URL names no host"
                                                      : "the URL is not well formed";
                return code == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
        }
        r = take_parts(url, parsed);
        if (r < 0) {
                http_url_deinit(url);
                return r;
        }
        if (strcmp(url->scheme, "http") != 0 && strcmp(url->scheme, "https") != 0) {
                *ret_message = "the scheme is neither http nor https";
                http_url_deinit(url);
                return -EINVAL;
        }
        return 0;
}

void http_url_deinit(struct http_url *url) {
        free(url->scheme);
        free(url->host);
        free(url->port);
        free(url->endpoint);
        free(url->user);
        if (url->password)
                explicit_bzero(url->password, strlen(url->password));
        free(url->password);
        free(url->path);
        free(url->query);
        *url = (struct http_url){ 0 };
}

static bool is_plain(unsigned char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
}

char *http_url_encode(const char *name, size_t size, char *ret_encoded) {
        static const char digits[] = "0123456789ABCDEF";

        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)name[i];

                if (is_plain(c)) {
                        *ret_encoded++ = (char)c;
                        continue;
                }
                *ret_encoded++ = '%';
                *ret_encoded++ = digits[c >> 4];
                *ret_encoded++ = digits[c & 15];
        }
        return ret_encoded;
}
