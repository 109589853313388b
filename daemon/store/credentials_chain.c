/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/credentials_chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/failure.h"

static const char *name_of(const struct credentials_chain *chain) {
        return chain->type->name(chain->owner, chain->way);
}

/* ---- Ends ---- */

static void fail(struct credentials_chain *chain, const struct store_failure *failure) {
        chain->on_value(chain->userdata, NULL, failure);
}

static void fail_errno(struct credentials_chain *chain, int error) {
        struct store_failure failure;

        failure_set_errno(&failure, error, "credentials");
        fail(chain, &failure);
}

static void refuse(struct credentials_chain *chain, const char *why) {
        struct store_failure failure;

        failure_set(&failure, STORE_PERMANENT, "credentials", "%s: %s", name_of(chain), why);
        fail(chain, &failure);
}

/* What gave credentials once is not gone: a metadata service that is not to be reached comes back. */
static void give_up(struct credentials_chain *chain) {
        struct store_failure failure;

        failure_set(&failure, chain->had_value ? STORE_TRANSIENT : STORE_PERMANENT,
                    "no-credentials", "No credentials of %s were found", chain->type->whose);
        failure_advise(&failure, "%s", chain->tried);
        fail(chain, &failure);
}

static void succeed(struct credentials_chain *chain, struct credentials_value *take_value) {
        chain->had_value = true;
        chain->on_value(chain->userdata, take_value, NULL);
}

/* ---- Ways ---- */

static void on_turn(uv_timer_t *turn);

static void try_next(struct credentials_chain *chain, const char *why) {
        size_t size = strlen(chain->tried);

        snprintf(chain->tried + size, sizeof(chain->tried) - size, "%s%s: %s", size ? "; " : "",
                 name_of(chain), why);
        chain->way++;
        uv_timer_start(chain->turn, on_turn, 0, 0);
}

static void on_turn(uv_timer_t *turn) {
        struct credentials_chain *chain = turn->data;
        struct credentials_value value;
        char why[CREDENTIALS_WHY_BYTES] = "";
        int r;

        if (!name_of(chain)) {
                give_up(chain);
                return;
        }
        r = chain->type->start(chain->owner, chain->way, &value, why);
        if (r < 0)
                fail_errno(chain, -r);
        else if (r == CREDENTIALS_READY)
                succeed(chain, &value);
        else if (r == CREDENTIALS_BROKEN)
                refuse(chain, why);
        else if (r == CREDENTIALS_ABSENT)
                try_next(chain, why);
}

void credentials_chain_tell(struct credentials_chain *chain, struct credentials_value *take_value,
                            const struct store_failure *failure) {
        if (take_value)
                succeed(chain, take_value);
        else if (failure->class == STORE_OK)
                try_next(chain, failure->message);
        else
                fail(chain, failure);
}

/* ---- Life ---- */

int credentials_chain_init(struct credentials_chain *chain, uv_loop_t *loop,
                           const struct credentials_chain_type *type, void *owner) {
        *chain = (struct credentials_chain){ .type = type, .owner = owner };
        chain->turn = malloc(sizeof(*chain->turn));
        if (!chain->turn)
                return -ENOMEM;
        uv_timer_init(loop, chain->turn);
        chain->turn->data = chain;
        return 0;
}

static void free_handle(uv_handle_t *handle) {
        free(handle);
}

void credentials_chain_deinit(struct credentials_chain *chain) {
        secret_watch_clear(&chain->watch);
        uv_close((uv_handle_t *)chain->turn, free_handle);
}

void credentials_chain_start(struct credentials_chain *chain, credentials_on_value *on_value,
                             void *userdata) {
        chain->on_value = on_value;
        chain->userdata = userdata;
        chain->way = 0;
        chain->tried[0] = '\0';
        secret_watch_clear(&chain->watch);
        uv_timer_start(chain->turn, on_turn, 0, 0);
}

void credentials_chain_stop(struct credentials_chain *chain) {
        uv_timer_stop(chain->turn);
}

uint64_t credentials_chain_take_requests(struct credentials_chain *chain) {
        uint64_t requests = chain->requests;

        chain->requests = 0;
        return requests;
}
