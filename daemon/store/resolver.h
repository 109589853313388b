/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of one host: asked for when they are wanted and older than a minute, given out in
 * turn. An address that could not be connected to is set aside while there are others. Addresses of
 * a second family are used only when the first one's fail.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#define RESOLVER_ADDRESSES_MOST 16

struct resolver {
        uv_loop_t *loop;
        uv_getaddrinfo_t *request; /* NULL: none runs */
        char *host, *port;
        bool literal; /* the host is an address: there is nothing to resolve */
        char addresses[RESOLVER_ADDRESSES_MOST][64];
        bool bad[RESOLVER_ADDRESSES_MOST];
        bool second_family[RESOLVER_ADDRESSES_MOST];
        unsigned count, next;
        bool stale; /* to be asked for again, however young */
        uint64_t resolved_at_ns;
        void (*on_resolved)(void *userdata, int error);
        void *userdata;
};

/* host without brackets. on_resolved follows each resolver_start(): 0 or UV_EAI_*. -ENOMEM. */
int resolver_init(struct resolver *resolver, uv_loop_t *loop, const char *host, const char *port,
                  void (*on_resolved)(void *userdata, int error), void *userdata);

/* A question that still runs is let go: it ends by itself, without a callback. */
void resolver_deinit(struct resolver *resolver);

/* True if addresses are known and fresh enough. */
bool resolver_is_ready(const struct resolver *resolver);

/* Asks, unless it is asking already. -errno. */
int resolver_start(struct resolver *resolver);

/*
 * The next address in turn, as text, without brackets; NULL if there is none. The index is for
 * resolver_set_bad().
 */
const char *resolver_next(struct resolver *resolver, unsigned *ret_index);

/*
 * Nothing answers at this address. False: it was the last good one; all count as good again, and the
 * next question is asked at once, as the host may have moved.
 */
bool resolver_set_bad(struct resolver *resolver, unsigned index);
