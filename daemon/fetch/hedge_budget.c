/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger is late on purpose: at the 95th percentile it would spend the budget on requests that
 * are healthy.
 */
#include "daemon/fetch/hedge_budget.h"

#include "common/base.h"

#define HEDGE_WAIT_LEAST_NS 50000000ull
#define HEDGE_PART_OF_REQUESTS 20 /* one of so many, */
#define HEDGE_FREE 10             /* and some more */
#define HEDGE_ERRORS_PART 100     /* off while more than one answer of so many is an error */
#define HEDGE_WON_PART 10         /* off while fewer than one hedge of so many wins */
#define HEDGE_PROBE_REQUESTS 1000
#define HEDGE_SLOW_TIMES 2 /* off while the median is more than so many times its best */

static void note(uint64_t *bits, uint64_t at, bool value) {
        uint64_t bit = 1ull << at % 64;

        bits[at / 64] = value ? bits[at / 64] | bit : bits[at / 64] & ~bit;
}

void hedge_budget_answer(struct hedge_budget *budget, enum hedge_class class,
                         uint64_t first_byte_ns, bool is_error) {
        budget->requests++;
        note(budget->is_error, budget->answers++ % HEDGE_RECENT, is_error);
        if (first_byte_ns && !is_error)
                latency_add(&budget->latency[class], first_byte_ns);
}

static unsigned errors(const struct hedge_budget *budget) {
        unsigned count = 0;

        for (size_t i = 0; i < ARRAY_SIZE(budget->is_error); i++)
                count += (unsigned)__builtin_popcountll(budget->is_error[i]);
        return count;
}

uint64_t hedge_budget_wait_ns(struct hedge_budget *budget, enum hedge_class class,
                              unsigned unanswered) {
        struct latency *latency = &budget->latency[class];

        if (!latency_measure(latency, unanswered))
                return UINT64_MAX;
        return max_u64(HEDGE_WAIT_LEAST_NS, max_u64(latency->p50_ns / 2 * 5, latency->p99_ns));
}

bool hedge_budget_allows(struct hedge_budget *budget, enum hedge_class class) {
        const struct latency *latency = &budget->latency[class];
        uint64_t recent = min_u64(budget->answers, HEDGE_RECENT);

        if (budget->hedges >= budget->requests / HEDGE_PART_OF_REQUESTS + HEDGE_FREE)
                return false;
        if (errors(budget) * HEDGE_ERRORS_PART > max_u64(recent, HEDGE_ERRORS_PART))
                return false;
        if (latency->best_p50_ns && latency->p50_ns > HEDGE_SLOW_TIMES * latency->best_p50_ns)
                return false;
        /* Now and then it is tried whether they win again. */
        return budget->outcomes < HEDGE_OUTCOMES ||
               budget->requests - budget->sent_at >= HEDGE_PROBE_REQUESTS ||
               (unsigned)__builtin_popcountll(budget->has_won) * HEDGE_WON_PART >= HEDGE_OUTCOMES;
}

void hedge_budget_sent(struct hedge_budget *budget) {
        budget->hedges++;
        budget->sent_at = budget->requests;
}

void hedge_budget_ended(struct hedge_budget *budget, bool has_won) {
        note(&budget->has_won, budget->outcomes++ % HEDGE_OUTCOMES, has_won);
        budget->won += has_won;
}
