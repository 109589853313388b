/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of bytes: what is held is taken first and given back once. One who wants more than the
 * whole budget gets it alone, so that nothing waits for ever and the budget is passed by one holder
 * at most. Not locked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"

struct budget {
        uint64_t max_bytes, held_bytes, peak_bytes;
};

static inline bool budget_fits(const struct budget *budget, uint64_t size_bytes) {
        if (budget->held_bytes == 0)
                return true;
        return budget->held_bytes < budget->max_bytes &&
               size_bytes <= budget->max_bytes - budget->held_bytes;
}

/* Only what fits. */
static inline void budget_take(struct budget *budget, uint64_t size_bytes) {
        MUST(budget_fits(budget, size_bytes));
        budget->held_bytes += size_bytes;
        budget->peak_bytes = max_u64(budget->peak_bytes, budget->held_bytes);
}

static inline void budget_give(struct budget *budget, uint64_t size_bytes) {
        MUST(size_bytes <= budget->held_bytes);
        budget->held_bytes -= size_bytes;
}
