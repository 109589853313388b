/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a second request may be sent for one whose answer is late, and when it is late: a tail
 * that is heavy by chance is cut off, a server that is slow or failing gets nothing on top. No
 * clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/latency.h"

enum hedge_class { HEDGE_SMALL, HEDGE_PART, HEDGE_CLASSES };

#define HEDGE_SMALL_MOST_BYTES (1u << 20) /* larger reads are parts */
#define HEDGE_RECENT 256                  /* answers of which errors are counted */
#define HEDGE_OUTCOMES 50                 /* hedges of which victories are counted */

struct hedge_budget {
        struct latency latency[HEDGE_CLASSES];
        uint64_t requests, hedges; /* sent */
        uint64_t won;
        uint64_t sent_at; /* requests, when the last hedge was sent */
        uint64_t answers; /* of which the last HEDGE_RECENT are bits of is_error */
        uint64_t is_error[HEDGE_RECENT / 64];
        uint64_t outcomes; /* of which the last HEDGE_OUTCOMES are bits of has_won */
        uint64_t has_won;
};

static inline enum hedge_class hedge_class_of(uint64_t size_bytes) {
        return size_bytes <= HEDGE_SMALL_MOST_BYTES ? HEDGE_SMALL : HEDGE_PART;
}

/* An answer has come, or a failure in its place. first_byte_ns 0: it had none. */
void hedge_budget_answer(struct hedge_budget *budget, enum hedge_class class,
                         uint64_t first_byte_ns, bool is_error);

/*
 * How long to wait for a first byte before a hedge is sent, when so many requests are not answered
 * yet. UINT64_MAX: for ever.
 */
uint64_t hedge_budget_wait_ns(struct hedge_budget *budget, enum hedge_class class,
                              unsigned unanswered);

/* May one be sent now? */
bool hedge_budget_allows(struct hedge_budget *budget, enum hedge_class class);

void hedge_budget_sent(struct hedge_budget *budget);

/* A hedge has ended: it came before the request that it was sent for, or not. */
void hedge_budget_ended(struct hedge_budget *budget, bool has_won);
