/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer stands for the next refresh by itself; nothing runs while nobody asks: a value that is
 * not used may expire, and the next one who asks waits for a new one.
 */
#include "daemon/store/credentials.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "daemon/core/list.h"
#include "daemon/store/backoff.h"
#include "daemon/store/failure.h"

#define CREDENTIALS_EARLY_S 300
/* of what a short-lived value has left when it comes, the last part in which it is refreshed */
#define CREDENTIALS_EARLY_PARTS 4
/* Between two tries: this after every failure, and more of it after several in a row. */
#define CREDENTIALS_FAILED_NS 1000000000ull
#define CREDENTIALS_BACKOFF_MS 2000
#define CREDENTIALS_BACKOFF_MOST_MS 30000
/* A value is good for so long after it came, whatever it says: this machine's clock may be wrong. */
#define CREDENTIALS_LIFE_LEAST_S 60
#define CREDENTIALS_CHECK_NS 1000000000ull    /* between two looks at files */
#define CREDENTIALS_REFUSED_NS 10000000000ull /* between two refreshes because of refusals */

struct credentials_wait {
        struct list node;
        void (*on_ready)(void *userdata, const struct store_failure *failure);
        void *userdata;
};

struct credentials {
        const struct credentials_provider *operations;
        void *provider;
        struct credentials_value value;
        bool has_value;
        bool refreshing;
        bool was_refused; /* the value is not given any more */
        bool has_news;    /* the last refresh has failed, and nobody was told yet */
        uint64_t serial;
        int64_t refresh_s; /* when the value is to be refreshed */
        struct backoff backoff;
        uint64_t again_ns;               /* when it may be tried again after a failure */
        uint64_t checked_ns, refused_ns; /* uv_hrtime(); 0: never */
        struct store_failure failure;    /* of the last refresh; class STORE_OK: none */
        struct list waits;
        uv_timer_t turn; /* tells waits from the loop, or tries again for them */
        void (*on_closed)(void *userdata);
        void *userdata;
};

static void wipe(char **text) {
        if (*text)
                explicit_bzero(*text, strlen(*text));
        free(*text);
        *text = NULL;
}

void credentials_value_deinit(struct credentials_value *value) {
        wipe(&value->id);
        wipe(&value->secret);
        wipe(&value->token);
        free(value->identity);
        *value = (struct credentials_value){ 0 };
}

static int64_t now_s(void) {
        return (int64_t)time(NULL);
}

static bool is_good(const struct credentials *credentials) {
        return credentials->has_value && !credentials->was_refused &&
               credentials->value.expires_s > now_s();
}

/* ---- Telling ---- */

static void refresh(struct credentials *credentials);

static void tell_waits(struct credentials *credentials, const struct store_failure *failure) {
        struct list told;

        /* A callback may wait again. */
        list_init(&told);
        while (!list_is_empty(&credentials->waits)) {
                struct list *node = credentials->waits.next;

                list_remove(node);
                list_append(&told, node);
        }
        while (!list_is_empty(&told)) {
                struct credentials_wait *wait = list_owner(told.next, struct credentials_wait,
                                                           node);
                struct credentials_wait ended = *wait;

                list_remove(&wait->node);
                free(wait);
                ended.on_ready(ended.userdata, failure);
        }
}

/* Who comes after the failure is told of it at once, or waits for the next try if it may pass. */
static bool is_final(const struct credentials *credentials) {
        return credentials->failure.class != STORE_OK &&
               (credentials->has_news || credentials->failure.class != STORE_TRANSIENT);
}

static void tell_failure(struct credentials *credentials) {
        credentials->has_news = false;
        tell_waits(credentials, &credentials->failure);
}

static void on_turn(uv_timer_t *timer) {
        struct credentials *credentials = timer->data;
        static const struct store_failure none = { .class = STORE_OK };

        if (is_good(credentials))
                tell_waits(credentials, &none);
        else if (!credentials->refreshing && is_final(credentials))
                tell_failure(credentials);
        else
                refresh(credentials);
}

static void turn_in(struct credentials *credentials, uint64_t wait_ns) {
        uv_timer_start(&credentials->turn, on_turn, wait_ns / 1000000 + (wait_ns > 0), 0);
}

/* ---- Refreshing ---- */

static void on_value(void *userdata, struct credentials_value *take_value,
                     const struct store_failure *failure) {
        struct credentials *credentials = userdata;
        int64_t left_s;

        credentials->refreshing = false;
        if (take_value) {
                if (take_value->expires_s < now_s() + CREDENTIALS_LIFE_LEAST_S)
                        take_value->expires_s = now_s() + CREDENTIALS_LIFE_LEAST_S;
                credentials_value_deinit(&credentials->value);
                credentials->value = *take_value;
                credentials->has_value = true;
                credentials->was_refused = false;
                credentials->serial++;
                left_s = take_value->expires_s - now_s();
                credentials->refresh_s = take_value->expires_s;
                if (take_value->expires_s != CREDENTIALS_NEVER)
                        credentials->refresh_s -= (int64_t)min_u64(
                                CREDENTIALS_EARLY_S,
                                left_s > 0 ? (uint64_t)left_s / CREDENTIALS_EARLY_PARTS : 0);
                failure_clear(&credentials->failure);
                backoff_reset(&credentials->backoff);
        } else {
                credentials->failure = *failure;
                credentials->has_news = true;
                /* what is overloaded is not the storage */
                if (failure->class == STORE_THROTTLED)
                        credentials->failure.class = STORE_TRANSIENT;
                credentials->again_ns = uv_hrtime() + CREDENTIALS_FAILED_NS +
                                        backoff_next_ms(&credentials->backoff,
                                                        CREDENTIALS_BACKOFF_MS,
                                                        CREDENTIALS_BACKOFF_MOST_MS) *
                                                1000000;
        }
        turn_in(credentials, 0);
}

static void refresh(struct credentials *credentials) {
        int r;

        if (credentials->refreshing)
                return;
        failure_clear(&credentials->failure);
        credentials->has_news = false;
        credentials->refreshing = true;
        r = credentials->operations->refresh(credentials->provider, on_value, credentials);
        if (r < 0) {
                struct store_failure failure;

                failure_set_errno(&failure, -r, "credentials");
                on_value(credentials, NULL, &failure);
        }
}

/* Looks at files at most once a second while all is well, always while it is not. */
static bool has_changed(struct credentials *credentials) {
        uint64_t now_ns = uv_hrtime();

        if (!credentials->operations->has_changed ||
            (credentials->failure.class == STORE_OK && credentials->checked_ns &&
             now_ns - credentials->checked_ns < CREDENTIALS_CHECK_NS))
                return false;
        credentials->checked_ns = now_ns;
        return credentials->operations->has_changed(credentials->provider);
}

/* Until it may be tried again after a failure; 0: now. */
static uint64_t pause_ns(const struct credentials *credentials) {
        uint64_t now_ns = uv_hrtime();

        return credentials->failure.class != STORE_OK && now_ns < credentials->again_ns
                       ? credentials->again_ns - now_ns
                       : 0;
}

const struct credentials_value *credentials_now(struct credentials *credentials) {
        bool changed = has_changed(credentials);

        if (changed || (credentials->has_value && now_s() >= credentials->refresh_s &&
                        pause_ns(credentials) == 0))
                refresh(credentials);
        return is_good(credentials) && !changed ? &credentials->value : NULL;
}

int credentials_wait(struct credentials *credentials,
                     void (*on_ready)(void *userdata, const struct store_failure *failure),
                     void *userdata, struct credentials_wait **ret_wait) {
        struct credentials_wait *wait = calloc(1, sizeof(*wait));

        if (!wait)
                return -ENOMEM;
        list_init(&wait->node);
        wait->on_ready = on_ready;
        wait->userdata = userdata;
        list_append(&credentials->waits, &wait->node);
        if (!credentials->refreshing && (pause_ns(credentials) == 0 || has_changed(credentials)))
                refresh(credentials);
        if (!credentials->refreshing)
                turn_in(credentials,
                        is_good(credentials) || is_final(credentials) ? 0 : pause_ns(credentials));
        *ret_wait = wait;
        return 0;
}

void credentials_wait_cancel(struct credentials_wait *wait) {
        list_remove(&wait->node);
        free(wait);
}

bool credentials_refused(struct credentials *credentials, uint64_t serial) {
        uint64_t now_ns = uv_hrtime();

        if (serial != credentials->serial || credentials->refreshing)
                return true;
        if (credentials->refused_ns && now_ns - credentials->refused_ns < CREDENTIALS_REFUSED_NS)
                return false;
        credentials->refused_ns = now_ns;
        credentials->was_refused = true;
        refresh(credentials);
        return true;
}

uint64_t credentials_serial(const struct credentials *credentials) {
        return credentials->serial;
}

/* ---- Life ---- */

int credentials_new(uv_loop_t *loop, const struct credentials_provider *operations,
                    void *take_provider, struct credentials **ret_credentials) {
        struct credentials *credentials = calloc(1, sizeof(*credentials));

        if (!credentials) {
                operations->free(take_provider);
                return -ENOMEM;
        }
        credentials->operations = operations;
        credentials->provider = take_provider;
        list_init(&credentials->waits);
        backoff_init(&credentials->backoff, uv_hrtime());
        uv_timer_init(loop, &credentials->turn);
        credentials->turn.data = credentials;
        *ret_credentials = credentials;
        return 0;
}

uint64_t credentials_take_requests(struct credentials *credentials) {
        return credentials->operations->take_requests
                       ? credentials->operations->take_requests(credentials->provider)
                       : 0;
}

static void on_timer_closed(uv_handle_t *handle) {
        struct credentials *credentials = handle->data;
        void (*on_closed)(void *userdata) = credentials->on_closed;
        void *userdata = credentials->userdata;

        credentials_value_deinit(&credentials->value);
        free(credentials);
        if (on_closed)
                on_closed(userdata);
}

void credentials_close(struct credentials *credentials, void (*on_closed)(void *userdata),
                       void *userdata) {
        MUST(list_is_empty(&credentials->waits));
        if (credentials->refreshing)
                credentials->operations->cancel(credentials->provider);
        credentials->operations->free(credentials->provider);
        credentials->on_closed = on_closed;
        credentials->userdata = userdata;
        uv_close((uv_handle_t *)&credentials->turn, on_timer_closed);
}
