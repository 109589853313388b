/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What authorises requests, kept fresh. A provider knows one way to get it; this module asks it
 * once for everybody who waits, again five minutes before the value expires, again when a file that
 * it came from has changed, and not too often when it fails. While a value is still good, a failed
 * refresh is nobody's concern. Loop thread; nothing is called back from inside a call of the
 * caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/store/store.h"

struct credentials;
struct credentials_wait;

#define CREDENTIALS_NEVER INT64_MAX

/* Each string is memory of its own, or NULL. */
struct credentials_value {
        char *id;          /* access key, account: not secret */
        char *secret;      /* secret access key, shared key */
        char *token;       /* session token, bearer token, SAS */
        char *identity;    /* for people: "assumed-role/Research (profile research)" */
        int64_t expires_s; /* since 1970; CREDENTIALS_NEVER */
        bool anonymous;    /* requests are not signed */
};

/*
 * Frees the strings, secrets overwritten before. Copies that jansson had of them while an answer was
 * parsed are freed as they are: they say nothing that does not stand in the value as long as the
 * daemon runs.
 */
void credentials_value_deinit(struct credentials_value *value);

/*
 * The value, of which the receiver takes the strings; or NULL and why there is none: its message
 * says what was tried. The failure is borrowed.
 */
typedef void credentials_on_value(void *userdata, struct credentials_value *take_value,
                                  const struct store_failure *failure);

struct credentials_provider {
        const char *name;
        /* Gets a value. on_value comes once, and not from inside, unless it is cancelled. -errno. */
        int (*refresh)(void *provider, credentials_on_value *on_value, void *userdata);
        /* Ends a refresh that is under way, without on_value. */
        void (*cancel)(void *provider);
        /* True if a file that the last value came from is another one now. NULL: there is none. */
        bool (*has_changed)(void *provider);
        /* Requests that were sent since this was asked last. NULL: none are. */
        uint64_t (*take_requests)(void *provider);
        void (*free)(void *provider); /* no refresh is under way */
};

/* Takes the provider, on failure too. -ENOMEM. */
int credentials_new(uv_loop_t *loop, const struct credentials_provider *operations,
                    void *take_provider, struct credentials **ret_credentials);

/* All waits must have ended or been cancelled. on_closed comes when no handle is left. */
void credentials_close(struct credentials *credentials, void (*on_closed)(void *userdata),
                       void *userdata);

/*
 * The value that is good now, borrowed until the loop turns, or NULL: there is none yet. A refresh
 * is started when one is due.
 */
const struct credentials_value *credentials_now(struct credentials *credentials);

/*
 * For when credentials_now() has none: on_ready comes when there is one (failure->class STORE_OK),
 * or when the provider has failed. -ENOMEM.
 */
int credentials_wait(struct credentials *credentials,
                     void (*on_ready)(void *userdata, const struct store_failure *failure),
                     void *userdata, struct credentials_wait **ret_wait);
void credentials_wait_cancel(struct credentials_wait *wait);

/*
 * The server has refused the value that credentials_now() gave (expired, or unknown): the next one
 * is asked for, unless a value came since serial. True: there is, or will be, another value than
 * the refused one: come again. False: the provider was asked a moment ago and has no other.
 */
bool credentials_refused(struct credentials *credentials, uint64_t serial);

/* Requests that were sent for values, those that failed, too, since this was asked last. */
uint64_t credentials_take_requests(struct credentials *credentials);

/* Number of the value: grows with each new one. */
uint64_t credentials_serial(const struct credentials *credentials);
