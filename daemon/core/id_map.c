/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/id_map.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/base.h"

#define SPACE_FIRST 64

void id_map_init(struct id_map *map) {
        *map = (struct id_map){ 0 };
        /* Without entropy the map is still right, only easier to flood. */
        if (getrandom(&map->seed, sizeof(map->seed), GRND_NONBLOCK) < 0)
                map->seed = 0x9e3779b97f4a7c15ull;
}

void id_map_deinit(struct id_map *map) {
        free(map->slots);
        *map = (struct id_map){ 0 };
}

/*
 * The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
 * 2014).
 */
static size_t slot_home(const struct id_map *map, uint64_t id) {
        uint64_t mixed = id ^ map->seed;

        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
        return (mixed ^ mixed >> 31) & (map->space - 1);
}

/* The slot that has the id, or the free one where it would be put. The map is never full. */
static struct id_map_slot *slot_of(const struct id_map *map, uint64_t id) {
        size_t at = slot_home(map, id);

        while (map->slots[at].value && map->slots[at].id != id)
                at = (at + 1) & (map->space - 1);
        return &map->slots[at];
}

static int id_map_grow(struct id_map *map) {
        struct id_map bigger = { .space = map->space ? 2 * map->space : SPACE_FIRST,
                                 .count = map->count,
                                 .seed = map->seed };

        bigger.slots = calloc(bigger.space, sizeof(bigger.slots[0]));
        if (!bigger.slots)
                return -ENOMEM;
        for (size_t i = 0; i < map->space; i++)
                if (map->slots[i].value)
                        *slot_of(&bigger, map->slots[i].id) = map->slots[i];
        free(map->slots);
        *map = bigger;
        return 0;
}

int id_map_add(struct id_map *map, uint64_t id, void *value) {
        struct id_map_slot *slot;

        MUST(value);
        if (4 * (map->count + 1) > 3 * map->space) {
                int r = id_map_grow(map);

                if (r < 0)
                        return r;
        }
        slot = slot_of(map, id);
        if (slot->value)
                return -EEXIST;
        *slot = (struct id_map_slot){ .id = id, .value = value };
        map->count++;
        return 0;
}

void *id_map_find(const struct id_map *map, uint64_t id) {
        return map->space ? slot_of(map, id)->value : NULL;
}

void *id_map_remove(struct id_map *map, uint64_t id) {
        size_t mask = map->space - 1, hole, at;
        void *value;

        if (!map->space)
                return NULL;
        hole = (size_t)(slot_of(map, id) - map->slots);
        value = map->slots[hole].value;
        if (!value)
                return NULL;
        map->slots[hole].value = NULL;
        map->count--;
        /*
         * Whatever was pushed past the hole by a collision moves into it, so that no search ends
         * too early.
         */
        for (at = (hole + 1) & mask; map->slots[at].value; at = (at + 1) & mask) {
                size_t home = slot_home(map, map->slots[at].id);

                if (((at - home) & mask) >= ((at - hole) & mask)) {
                        map->slots[hole] = map->slots[at];
                        map->slots[at].value = NULL;
                        hole = at;
                }
        }
        return value;
}
