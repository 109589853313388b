/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider of credentials that tries several ways in order: one that is not set up says why, and
 * the next one is tried, each in a turn of the loop of its own; one that is set up and fails ends
 * the search, as nobody else's credentials may take its place. What those said that are not set up
 * is the failure when none is. Loop thread.
 */
#pragma once

#include <uv.h>

#include "daemon/store/credentials.h"
#include "daemon/store/secret_file.h"

#define CREDENTIALS_WHY_BYTES 240

enum credentials_outcome {
        CREDENTIALS_READY,   /* the value is filled */
        CREDENTIALS_RUNNING, /* credentials_chain_tell() follows, and not from inside */
        CREDENTIALS_ABSENT,  /* it is not set up; why says what is missing */
        CREDENTIALS_BROKEN,  /* it is set up, and wrong: why says how */
};

struct credentials_chain_type {
        const char *whose; /* for people: "AWS" */
        /* Of a way; NULL: there are no more. */
        const char *(*name)(void *owner, size_t way);
        /* enum credentials_outcome, or -errno */
        int (*start)(void *owner, size_t way, struct credentials_value *ret_value,
                     char why[CREDENTIALS_WHY_BYTES]);
};

/* Made to be a member of its owner. The first members are the owner's to read. */
struct credentials_chain {
        size_t way; /* that is tried */
        /* counts what is sent, for whoever sends it (struct http_exchange_query) */
        uint64_t requests;
        struct secret_watch watch; /* of files that the ways add; cleared with each search */
        const struct credentials_chain_type *type;
        void *owner;
        bool had_value;
        uv_timer_t *turn; /* freed when it is closed */
        char tried[400];
        credentials_on_value *on_value;
        void *userdata;
};

/* -ENOMEM: then nothing is to be given back. */
int credentials_chain_init(struct credentials_chain *chain, uv_loop_t *loop,
                           const struct credentials_chain_type *type, void *owner);
void credentials_chain_deinit(struct credentials_chain *chain);

/* Begins with the first way. */
void credentials_chain_start(struct credentials_chain *chain, credentials_on_value *on_value,
                             void *userdata);

/* No way is tried any more; one that is under way is the owner's to end. */
void credentials_chain_stop(struct credentials_chain *chain);

/*
 * The way that was under way has ended: the value, or NULL and the failure. One of class STORE_OK
 * means that it is absent after all, its message says why.
 */
void credentials_chain_tell(struct credentials_chain *chain, struct credentials_value *take_value,
                            const struct store_failure *failure);

/* Those since this was asked last. */
uint64_t credentials_chain_take_requests(struct credentials_chain *chain);
