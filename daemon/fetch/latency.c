/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/fetch/latency.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"

#define LATENCY_STALE_SAMPLES 32
#define LATENCY_UNBIASED (uint64_t)4 /* answers for each that is still to come */

void latency_add(struct latency *latency, uint64_t sample_ns) {
        latency->sample_ns[latency->count++ % LATENCY_SAMPLES] = sample_ns;
}

static int compare_u64(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

bool latency_measure(struct latency *latency, unsigned unanswered) {
        uint64_t sorted[LATENCY_SAMPLES];
        size_t count = min_u64(latency->count, LATENCY_SAMPLES);

        if (count < LATENCY_ENOUGH)
                return false;
        if (latency->sorted_at && latency->count - latency->sorted_at < LATENCY_STALE_SAMPLES)
                return true;
        memcpy(sorted, latency->sample_ns, count * sizeof(sorted[0]));
        qsort(sorted, count, sizeof(sorted[0]), compare_u64);
        latency->sorted_at = latency->count;
        latency->p50_ns = sorted[count / 2];
        latency->p99_ns = sorted[count * 99 / 100];
        if (count >= LATENCY_UNBIASED * unanswered &&
            (!latency->best_p50_ns || latency->p50_ns < latency->best_p50_ns))
                latency->best_p50_ns = latency->p50_ns;
        return true;
}
