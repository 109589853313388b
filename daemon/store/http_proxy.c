/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/http_proxy.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base.h"

#define ENTRY_MOST_BYTES 256

/* Is the host an address of the network? "10.0.0.0/8", "fd00::/8". */
static bool is_in_network(const char *entry, size_t slash, const char *host) {
        char network[ENTRY_MOST_BYTES];
        unsigned char a[sizeof(struct in6_addr)], b[sizeof(struct in6_addr)];
        bool is_v6 = strchr(host, ':');
        unsigned long bits = strtoul(entry + slash + 1, NULL, 10);
        size_t whole = bits / 8;

        memcpy(network, entry, slash);
        network[slash] = '\0';
        if (bits > (is_v6 ? 128 : 32) || inet_pton(is_v6 ? AF_INET6 : AF_INET, network, a) != 1 ||
            inet_pton(is_v6 ? AF_INET6 : AF_INET, host, b) != 1 || memcmp(a, b, whole) != 0)
                return false;
        return bits % 8 == 0 || (a[whole] ^ b[whole]) >> (8 - bits % 8) == 0;
}

/* Is the host the one that the entry names, or below it? */
static bool is_named(const char *entry, size_t size, const char *host) {
        const char *slash = memchr(entry, '/', size);
        size_t host_size = strlen(host);

        if (size > 2 && entry[0] == '[' && entry[size - 1] == ']') {
                entry++;
                size -= 2;
        }
        if (slash)
                return size < ENTRY_MOST_BYTES &&
                       is_in_network(entry, (size_t)(slash - entry), host);
        return size > 0 && size <= host_size &&
               strncasecmp(host + host_size - size, entry, size) == 0 &&
               (size == host_size || host[host_size - size - 1] == '.');
}

/* Is the host one of a list such as "localhost,.example.com 10.0.0.0/8"? */
static bool is_exempt(const char *list, const char *host) {
        if (strcmp(list, "*") == 0)
                return true;
        for (const char *at = list; *at;) {
                size_t size;

                at += strspn(at, ", .");
                size = strcspn(at, ", ");
                if (is_named(at, size, host))
                        return true;
                at += size;
        }
        return false;
}

static const char *environment(const char *const *names, const char **ret_name) {
        for (; *names; names++) {
                const char *value = getenv(*names);

                if (value && *value) {
                        *ret_name = *names;
                        return value;
                }
        }
        return NULL;
}

static void url_cleanupp(CURLU **parsed) {
        curl_url_cleanup(*parsed);
}

static void text_freep(char **text) {
        curl_free(*text);
}

/* Leaves user and password out. What cannot be parsed is not shown at all. */
static int show(struct http_proxy *proxy) {
        CLEANUP(url_cleanupp) CURLU *parsed = curl_url();
        CLEANUP(text_freep) char *scheme = NULL;
        CLEANUP(text_freep) char *host = NULL;
        CLEANUP(text_freep) char *port = NULL;
        CLEANUP(freep) char *whole = NULL;

        if (!parsed ||
            asprintf(&whole, "%s%s", strstr(proxy->url, "://") ? "" : "http://", proxy->url) < 0) {
                whole = NULL;
                return -ENOMEM;
        }
        if (curl_url_set(parsed, CURLUPART_URL, whole, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
            curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
            curl_url_get(parsed, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
            (strncasecmp(scheme, "http", 4) != 0 && strncasecmp(scheme, "socks", 5) != 0))
                return 0;
        curl_url_get(parsed, CURLUPART_PORT, &port, 0);
        if (asprintf(&proxy->shown, "%s://%s%s%s", scheme, host, port ? ":" : "",
                     port ? port : "") < 0) {
                proxy->shown = NULL;
                return -ENOMEM;
        }
        return 0;
}

int http_proxy_find(const struct http_url *url, struct http_proxy *ret_proxy) {
        static const char *const for_http[] = { "http_proxy", "all_proxy", "ALL_PROXY", NULL };
        static const char *const for_https[] = { "https_proxy", "HTTPS_PROXY", "all_proxy",
                                                 "ALL_PROXY", NULL };
        static const char *const for_none[] = { "no_proxy", "NO_PROXY", NULL };
        struct http_proxy proxy = { 0 };
        const char *unused;
        int r = 0;

        proxy.exempt = environment(for_none, &unused);
        if (!proxy.exempt || !is_exempt(proxy.exempt, url->host))
                proxy.url = environment(strcmp(url->scheme, "https") == 0 ? for_https : for_http,
                                        &proxy.variable);
        if (proxy.url)
                r = show(&proxy);
        if (r == 0)
                *ret_proxy = proxy;
        return r;
}

void http_proxy_deinit(struct http_proxy *proxy) {
        free(proxy->shown);
        *proxy = (struct http_proxy){ 0 };
}
