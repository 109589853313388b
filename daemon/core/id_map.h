/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from 64-bit ids to pointers: open addressing, linear probing, deletion by shifting back.
 * The ids may be chosen by someone who wants them to collide, so a random seed is mixed in.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct id_map_slot {
        uint64_t id;
        void *value; /* NULL: free */
};

struct id_map {
        struct id_map_slot *slots;
        size_t space; /* 0 or a power of two */
        size_t count;
        uint64_t seed;
};

void id_map_init(struct id_map *map);
void id_map_deinit(struct id_map *map); /* the values stay the caller's */

/* value must not be NULL. -EEXIST if the id is there already, -ENOMEM. */
int id_map_add(struct id_map *map, uint64_t id, void *value);

void *id_map_find(const struct id_map *map, uint64_t id); /* NULL if there is none */
void *id_map_remove(struct id_map *map, uint64_t id);     /* what was there, or NULL */
