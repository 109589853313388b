/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a file's damage: how many places there are for each reason, and the first of
 * them by name. An intact file has none (NULL), and no file more than this, however much of it is
 * damaged. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/damage.h"

struct damaged_place {
        uint64_t offset, size_bytes;
        enum damage reason;
        /*
         * DAMAGE_TOO_LARGE for its names: the smallest ring that would hold it, UINT64_MAX: none
         * would; else 0
         */
        uint64_t ring_bytes;
};

#define FILE_DAMAGE_NAMED_MOST 16

struct file_damage {
        uint64_t count; /* of places, but for the tail */
        uint64_t by_reason[DAMAGE_COUNT];
        struct damaged_place named[FILE_DAMAGE_NAMED_MOST]; /* the first ones */
        size_t named_count;
        /*
         * What the file ends with, if nothing in it is a record: that may change when it grows.
         * reason DAMAGE_NONE: there is none.
         */
        struct damaged_place tail;
};

/* Allocates *damage where it is NULL; the caller's to free(). -ENOMEM. */
int file_damage_ensure(struct file_damage **damage);

/* More places, behind those that are known: so many for each reason, the first of them by name. */
void file_damage_add(struct file_damage *damage, const uint32_t by_reason[DAMAGE_COUNT],
                     const struct damaged_place *named, size_t named_count);

/* True: it was not known before. */
bool file_damage_set_tail(struct file_damage *damage, const struct damaged_place *tail);

/* Everything before offset has been read: a tail before it is not one any more. NULL is taken. */
void file_damage_pass(struct file_damage *damage, uint64_t offset);

/* Places, the tail included; 0 of NULL. */
uint64_t file_damage_count(const struct file_damage *damage);
uint64_t file_damage_by_reason(const struct file_damage *damage, enum damage reason);
