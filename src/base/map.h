/* A map from 128-bit keys to 64-bit values, in private memory.
 *
 * The caller holds the lock that protects it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_MAP_H
#define RDL_BASE_MAP_H

#include "base/hash.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rdl_map_place rdl_map_place;

/* All zero is an empty map. */
typedef struct rdl_map {
    rdl_map_place *places;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* removed ones included */
    size_t live;
} rdl_map;

void rdl_map_fini(rdl_map *map);

/* The value's place, valid until the next put; NULL if there is none. */
uint64_t *rdl_map_get(const rdl_map *map, rdl_key key);

/* Adds or replaces. RDL_NO_MEMORY leaves the map as it was. */
rdl_status rdl_map_put(rdl_map *map, rdl_key key, uint64_t value);

/* Returns whether it was there. */
bool rdl_map_remove(rdl_map *map, rdl_key key);

#endif
