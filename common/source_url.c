/* SPDX-License-Identifier: Apache-2.0 */
#include "common/source_url.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "common/base.h"

/* Length of "scheme" where text begins with "scheme://", else 0. */
static size_t scheme_size(const char *text) {
        size_t size = 0;

        if (!isalpha((unsigned char)text[0]))
                return 0;
        while (isalnum((unsigned char)text[size]) || (text[size] && strchr("+-.", text[size])))
                size++;
        return strncmp(text + size, "://", 3) == 0 ? size : 0;
}

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char)tolower((unsigned char)c);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX in place; a % without two digits stands for itself. -EINVAL: %00. */
static int percent_decode(char *text) {
        char *out = text;

        for (const char *in = text; *in; in++) {
                int high = *in == '%' ? hex_digit(in[1]) : -1;
                int low = high >= 0 ? hex_digit(in[2]) : -1;

                if (low < 0) {
                        *out++ = *in;
                        continue;
                }
                if (high == 0 && low == 0)
                        return -EINVAL;
                *out++ = (char)(high * 16 + low);
                in += 2;
        }
        *out = '\0';
        return 0;
}

static bool has_dot_dot(const char *path) {
        for (const char *at = path; (at = strstr(at, "..")); at += 2) {
                if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
                        return true;
        }
        return false;
}

/* Drops empty, "." and ".." components of an absolute path in place. */
static void path_clean(char *path) {
        char *out = path;
        const char *in = path;

        while (*in) {
                size_t size = strcspn(in, "/");

                if (size == 2 && memcmp(in, "..", 2) == 0) {
                        while (out > path && *--out != '/')
                                ;
                } else if (size > 0 && !(size == 1 && *in == '.')) {
                        *out++ = '/';
                        memmove(out, in, size);
                        out += size;
                }
                in += size;
                in += *in == '/';
        }
        if (out == path)
                *out++ = '/';
        *out = '\0';
}

static int path_normalize(const char *path, char **ret_path) {
        CLEANUP(freep) char *cwd = NULL;
        char *absolute;

        if (path[0] != '/' && !(cwd = getcwd(NULL, 0)))
                return -errno;
        if (has_dot_dot(path) && (absolute = realpath(path, NULL))) {
                *ret_path = absolute;
                return 0;
        }
        /* One more slash in front: path_clean() never writes ahead of what it reads. */
        if (asprintf(&absolute, "/%s/%s", cwd ? cwd : "", path) < 0)
                return -ENOMEM;
        path_clean(absolute);
        *ret_path = absolute;
        return 0;
}

/* rest is what follows "file:". */
static int file_url_normalize(const char *rest, char **ret_path) {
        CLEANUP(freep) char *path = NULL;

        if (strncmp(rest, "//", 2) == 0) {
                rest += 2;
                if (strncmp(rest, "localhost/", 10) == 0)
                        rest += 9;
        }
        if (rest[0] != '/')
                return -EINVAL;
        path = strdup(rest);
        if (!path)
                return -ENOMEM;
        if (percent_decode(path) < 0)
                return -EINVAL;
        return path_normalize(path, ret_path);
}

static size_t authority_size_without_port(const char *scheme, const char *authority, size_t size) {
        static const struct {
                const char *scheme, *port;
        } defaults[] = { { "http", ":80" }, { "https", ":443" } };

        for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
                size_t port_size = strlen(defaults[i].port);

                if (strcmp(scheme, defaults[i].scheme) == 0 && size > port_size &&
                    memcmp(authority + size - port_size, defaults[i].port, port_size) == 0)
                        return size - port_size;
        }
        return size;
}

static void lower(char *text, size_t size) {
        for (size_t i = 0; i < size; i++)
                text[i] = (char)tolower((unsigned char)text[i]);
}

int source_url_normalize(const char *url, char **ret_url) {
        size_t size = scheme_size(url);
        CLEANUP(freep) char *scheme = NULL;
        const char *authority, *path;
        size_t authority_size, path_size;
        char *normal;

        if (url[0] == '\0')
                return -EINVAL;
        if (strncasecmp(url, "file:/", 6) == 0)
                return file_url_normalize(url + 5, ret_url);
        if (size == 0)
                return path_normalize(url, ret_url);
        scheme = strndup(url, size);
        if (!scheme)
                return -ENOMEM;
        lower(scheme, size);

        authority = url + size + 3;
        path = authority + strcspn(authority, "/?#");
        for (const char *c = path; c > authority; c--) {
                if (c[-1] == '@') {
                        authority = c;
                        break;
                }
        }
        authority_size = authority_size_without_port(scheme, authority, (size_t)(path - authority));
        if (authority_size == 0)
                return -EINVAL;
        path_size = strcspn(path, "?#");
        while (path_size > 0 && path[path_size - 1] == '/')
                path_size--;
        if (asprintf(&normal, "%s://%.*s%.*s", scheme, (int)authority_size, authority,
                     (int)path_size, path) < 0)
                return -ENOMEM;
        lower(normal + size + 3, authority_size);
        *ret_url = normal;
        return 0;
}

bool source_url_has_scheme(const char *url) {
        return scheme_size(url) > 0;
}

static bool is_link_local(const struct sockaddr *address) {
        if (address->sa_family == AF_INET) {
                const struct sockaddr_in *v4 = (const void *)address;

                return (ntohl(v4->sin_addr.s_addr) & 0xFFFF0000) == 0xA9FE0000;
        }
        if (address->sa_family == AF_INET6) {
                const struct in6_addr *v6 =
                        &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

                if (IN6_IS_ADDR_V4MAPPED(v6))
                        return v6->s6_addr[12] == 169 && v6->s6_addr[13] == 254;
                return IN6_IS_ADDR_LINKLOCAL(v6);
        }
        return false;
}

/* The host of SCHEME://USER@HOST:PORT/..., without brackets. Its size. */
static size_t find_host(const char *url, const char **ret_host) {
        const char *host = url + scheme_size(url) + 3;
        size_t size = strcspn(host, "/?#");

        for (size_t i = size; i > 0; i--) {
                if (host[i - 1] == '@') {
                        host += i;
                        size -= i;
                        break;
                }
        }
        *ret_host = host + (*host == '[');
        return *host == '[' ? strcspn(host + 1, "]/?#") : min_u64(size, strcspn(host, ":"));
}

bool source_url_is_link_local(const char *url) {
        const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
        struct addrinfo *address;
        char name[NI_MAXHOST];
        const char *host;
        size_t size;
        bool result;

        if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
                return false;
        size = find_host(url, &host);
        if (size == 0 || size >= sizeof(name))
                return false;
        memcpy(name, host, size);
        name[size] = '\0';
        if (getaddrinfo(name, NULL, &hints, &address) != 0)
                return false;
        result = is_link_local(address->ai_addr);
        freeaddrinfo(address);
        return result;
}

bool source_url_is_below(const char *source, const char *url, size_t *ret_prefix_size) {
        size_t size = strlen(source);

        if (strncmp(source, url, size) != 0)
                return false;
        if (url[size] == '\0') {
                *ret_prefix_size = size;
                return true;
        }
        if (size == 1 && source[0] == '/') {
                *ret_prefix_size = 1;
                return true;
        }
        if (url[size] != '/')
                return false;
        *ret_prefix_size = size + 1;
        return true;
}
