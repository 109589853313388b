/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/rate.h"

#define NS 1e9

void rate_init(struct rate *rate, uint64_t per_second) {
        *rate = (struct rate){ .per_second = per_second, .debt = -(double)per_second };
}

static void pay(struct rate *rate, uint64_t now_ns) {
        double second = (double)rate->per_second;

        if (rate->at_ns)
                rate->debt -= (double)(now_ns - rate->at_ns) / NS * second;
        if (rate->debt < -second)
                rate->debt = -second;
        rate->at_ns = now_ns;
}

void rate_spend(struct rate *rate, uint64_t amount, uint64_t now_ns) {
        if (rate->per_second == 0)
                return;
        pay(rate, now_ns);
        rate->debt += (double)amount;
}

uint64_t rate_ready_ns(struct rate *rate, uint64_t now_ns) {
        if (rate->per_second == 0)
                return now_ns;
        pay(rate, now_ns);
        return rate->debt < 0 ? now_ns
                              : now_ns + 1 + (uint64_t)(rate->debt / (double)rate->per_second * NS);
}
