/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "common/base.h"

#define RESOLVER_FRESH_NS 60000000000ull

int resolver_init(struct resolver *resolver, uv_loop_t *loop, const char *host, const char *port,
                  void (*on_resolved)(void *userdata, int error), void *userdata) {
        unsigned char address[sizeof(struct in6_addr)];

        *resolver = (struct resolver){ .loop = loop,
                                       .on_resolved = on_resolved,
                                       .userdata = userdata };
        resolver->host = strdup(host);
        resolver->port = strdup(port);
        if (!resolver->host || !resolver->port) {
                resolver_deinit(resolver);
                return -ENOMEM;
        }
        resolver->literal = inet_pton(AF_INET, host, address) == 1 ||
                            inet_pton(AF_INET6, host, address) == 1;
        return 0;
}

void resolver_deinit(struct resolver *resolver) {
        if (resolver->request) {
                resolver->request->data = NULL;
                uv_cancel((uv_req_t *)resolver->request);
        }
        free(resolver->host);
        free(resolver->port);
        resolver->request = NULL;
        resolver->host = resolver->port = NULL;
}

bool resolver_is_ready(const struct resolver *resolver) {
        return resolver->literal || (resolver->count > 0 && !resolver->stale &&
                                     uv_hrtime() - resolver->resolved_at_ns < RESOLVER_FRESH_NS);
}

static bool is_known(const struct resolver *resolver, const char *address) {
        for (unsigned i = 0; i < resolver->count; i++) {
                if (strcmp(resolver->addresses[i], address) == 0)
                        return true;
        }
        return false;
}

/* The system has sorted them: what comes first is what it would connect to. */
static void take_addresses(struct resolver *resolver, const struct addrinfo *results) {
        int family = results ? results->ai_family : AF_UNSPEC;

        resolver->count = resolver->next = 0;
        for (const struct addrinfo *result = results;
             result && resolver->count < RESOLVER_ADDRESSES_MOST; result = result->ai_next) {
                char *address = resolver->addresses[resolver->count];

                if (getnameinfo(result->ai_addr, result->ai_addrlen, address,
                                sizeof(resolver->addresses[0]), NULL, 0, NI_NUMERICHOST) ||
                    is_known(resolver, address))
                        continue;
                resolver->bad[resolver->count] = false;
                resolver->second_family[resolver->count] = result->ai_family != family;
                resolver->count++;
        }
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *results) {
        struct resolver *resolver = request->data;

        if (resolver) {
                resolver->request = NULL;
                if (status == 0)
                        take_addresses(resolver, results);
                else if (resolver->count > 0)
                        status = 0; /* the old ones are better than none */
                resolver->resolved_at_ns = uv_hrtime();
                resolver->stale = false;
                resolver->on_resolved(resolver->userdata,
                                      status == 0 && resolver->count == 0 ? UV_EAI_NONAME : status);
        }
        if (results)
                uv_freeaddrinfo(results);
        free(request);
}

int resolver_start(struct resolver *resolver) {
        static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
        uv_getaddrinfo_t *request;
        int r;

        if (resolver->request)
                return 0;
        request = malloc(sizeof(*request));
        if (!request)
                return -ENOMEM;
        request->data = resolver;
        r = uv_getaddrinfo(resolver->loop, request, on_addresses, resolver->host, resolver->port,
                           &hints);
        if (r < 0) {
                free(request);
                return r;
        }
        resolver->request = request;
        return 0;
}

static bool is_usable(const struct resolver *resolver, unsigned index, bool second_family) {
        return !resolver->bad[index] && resolver->second_family[index] == second_family;
}

const char *resolver_next(struct resolver *resolver, unsigned *ret_index) {
        for (int second_family = 0; second_family < 2; second_family++) {
                for (unsigned i = 0; i < resolver->count; i++) {
                        unsigned index = (resolver->next + i) % resolver->count;

                        if (is_usable(resolver, index, second_family)) {
                                resolver->next = index + 1;
                                *ret_index = index;
                                return resolver->addresses[index];
                        }
                }
        }
        return NULL;
}

bool resolver_set_bad(struct resolver *resolver, unsigned index) {
        if (index < resolver->count)
                resolver->bad[index] = true;
        for (unsigned i = 0; i < resolver->count; i++) {
                if (!resolver->bad[i])
                        return true;
        }
        memset(resolver->bad, 0, sizeof(resolver->bad));
        resolver->stale = true;
        return false;
}
