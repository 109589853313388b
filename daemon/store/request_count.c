/* SPDX-License-Identifier: Apache-2.0 */
/* Two slots of time give a rate without a list of requests: the last whole one, and this one. */
#include "daemon/store/request_count.h"

#include <string.h>

#include "common/base.h"

#define DAY_S 86400

const char *request_kind_name(enum request_kind kind) {
        static const char *const names[] = {
                [REQUEST_LIST] = "list",
                [REQUEST_READ] = "read",
                [REQUEST_CREDENTIALS] = "credentials",
        };

        return names[kind];
}

void request_count_add(struct request_count *count, enum request_kind kind, uint64_t requests,
                       int64_t now_s) {
        int64_t day = now_s / DAY_S, slot = now_s / REQUEST_SLOT_S;

        if (count->day != day)
                memset(count->today, 0, sizeof(count->today));
        if (slot == count->slot + 1)
                memcpy(count->slots[1], count->slots[0], sizeof(count->slots[0]));
        else if (slot != count->slot)
                memset(count->slots[1], 0, sizeof(count->slots[1]));
        if (slot != count->slot)
                memset(count->slots[0], 0, sizeof(count->slots[0]));
        count->day = day;
        count->slot = slot;
        if (count->since_s == 0 && requests > 0)
                count->since_s = now_s;
        count->total[kind] += requests;
        count->today[kind] += requests;
        count->slots[0][kind] += requests;
}

void request_count_today(const struct request_count *count, int64_t now_s,
                         uint64_t sums[REQUEST_KINDS]) {
        if (count->day != now_s / DAY_S)
                return;
        for (unsigned i = 0; i < REQUEST_KINDS; i++)
                sums[i] += count->today[i];
}

void request_count_merge_day(struct request_count *count, const struct request_count *other) {
        if (other->day < count->day)
                return;
        if (other->day > count->day)
                memset(count->today, 0, sizeof(count->today));
        count->day = other->day;
        for (unsigned i = 0; i < REQUEST_KINDS; i++)
                count->today[i] += other->today[i];
}

bool request_count_per_day(const struct request_count *count, int64_t now_s,
                           uint64_t sums[REQUEST_KINDS]) {
        int64_t slot = now_s / REQUEST_SLOT_S, begin_s = (slot - 1) * REQUEST_SLOT_S, seconds;

        if (count->since_s == 0 || now_s - count->since_s < REQUEST_SLOT_S)
                return false;
        if (count->since_s > begin_s)
                begin_s = count->since_s;
        seconds = now_s - begin_s;
        for (unsigned i = 0; i < REQUEST_KINDS; i++) {
                uint64_t lately = count->slot == slot ? count->slots[0][i] + count->slots[1][i]
                                  : count->slot == slot - 1 ? count->slots[0][i]
                                                            : 0;

                sums[i] += lately * DAY_S / (uint64_t)seconds;
        }
        return true;
}
