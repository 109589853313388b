/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much an endpoint may be asked for in a second. What is spent is a debt, which is paid off as
 * time goes by; nothing goes out while there is one. A second's worth may go out at once. No clock.
 */
#pragma once

#include <stdint.h>

struct rate {
        uint64_t per_second; /* 0: no limit */
        double debt;         /* negative: what may go out at once */
        uint64_t at_ns;      /* when that was so */
};

void rate_init(struct rate *rate, uint64_t per_second);

void rate_spend(struct rate *rate, uint64_t amount, uint64_t now_ns);

/* When something may go out again: now_ns, or later. */
uint64_t rate_ready_ns(struct rate *rate, uint64_t now_ns);
