/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/discover/file_damage.h"

#include <errno.h>
#include <stdlib.h>

int file_damage_ensure(struct file_damage **damage) {
        if (!*damage)
                *damage = calloc(1, sizeof(**damage));
        return *damage ? 0 : -ENOMEM;
}

void file_damage_add(struct file_damage *damage, const uint32_t by_reason[DAMAGE_COUNT],
                     const struct damaged_place *named, size_t named_count) {
        for (size_t i = 0; i < DAMAGE_COUNT; i++) {
                damage->by_reason[i] += by_reason[i];
                damage->count += by_reason[i];
        }
        for (size_t i = 0; i < named_count && damage->named_count < FILE_DAMAGE_NAMED_MOST; i++)
                damage->named[damage->named_count++] = named[i];
}

bool file_damage_set_tail(struct file_damage *damage, const struct damaged_place *tail) {
        bool known = damage->tail.reason == tail->reason && damage->tail.offset == tail->offset;

        damage->tail = *tail;
        return !known;
}

void file_damage_pass(struct file_damage *damage, uint64_t offset) {
        if (damage && damage->tail.offset < offset)
                damage->tail = (struct damaged_place){ 0 };
}

uint64_t file_damage_count(const struct file_damage *damage) {
        return damage ? damage->count + (damage->tail.reason != DAMAGE_NONE) : 0;
}

uint64_t file_damage_by_reason(const struct file_damage *damage, enum damage reason) {
        if (!damage || reason == DAMAGE_NONE)
                return 0;
        return damage->by_reason[reason] + (damage->tail.reason == reason);
}
