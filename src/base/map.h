/* A map from 128-bit keys to pairs of 64-bit values, in private memory. A place
 * takes 32 bytes, and at most half of the places are used.
 *
 * The caller holds the lock that protects it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_MAP_H
#define RDL_BASE_MAP_H

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rdl_map_place rdl_map_place;

typedef struct rdl_pair {
    uint64_t first;
    uint64_t second;
} rdl_pair;

/* All zero is an empty map. */
typedef struct rdl_map {
    rdl_purse *purse; /* whose memory it takes; NULL: nobody's */
    rdl_map_place *places;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* removed ones included */
    size_t live;
} rdl_map;

void rdl_map_fini(rdl_map *map);

/* The value's place, valid until the next put; NULL if there is none. The keys
 * 0,0 and 0,1 are not keys. */
rdl_pair *rdl_map_get(const rdl_map *map, rdl_key key);

/* Adds or replaces. RDL_NO_MEMORY leaves the map as it was. */
rdl_status rdl_map_put(rdl_map *map, rdl_key key, rdl_pair value);

/* Returns whether it was there. */
bool rdl_map_remove(rdl_map *map, rdl_key key);

#endif
