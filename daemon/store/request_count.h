/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests went to storage, by kind: since the start, today (UTC), and lately. Every
 * request that was sent counts, whatever it was answered with. No clock: time is the caller's, in
 * seconds since 1970.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum request_kind { REQUEST_LIST, REQUEST_READ, REQUEST_CREDENTIALS, REQUEST_KINDS };

const char *request_kind_name(enum request_kind kind); /* "list", "read", "credentials" */

#define REQUEST_SLOT_S 600 /* what is called lately: this slot of time, and the one before */

struct request_count {
        uint64_t total[REQUEST_KINDS];
        uint64_t repeated
                [REQUEST_KINDS]; /* of total: what an earlier one had failed at, or was late with */
        int64_t day;             /* of today[]: days since 1970 */
        uint64_t today[REQUEST_KINDS];
        int64_t since_s; /* of the first request; 0: there was none */
        int64_t slot;    /* of slots[0]: its begin / REQUEST_SLOT_S */
        uint64_t slots[2][REQUEST_KINDS];
};

void request_count_add(struct request_count *count, enum request_kind kind, uint64_t requests,
                       int64_t now_s);

/* Adds today's requests to the sums; none if the last one was on another day. */
void request_count_today(const struct request_count *count, int64_t now_s,
                         uint64_t sums[REQUEST_KINDS]);

/* Adds what the other one has of the later day of the two: today[] is then that of both. */
void request_count_merge_day(struct request_count *count, const struct request_count *other);

/*
 * Adds to the sums what a day has at the rate of the last ten to twenty minutes. False, and nothing
 * is added, if the first request is not ten minutes old: the rate of a first load is none.
 */
bool request_count_per_day(const struct request_count *count, int64_t now_s,
                           uint64_t sums[REQUEST_KINDS]);
