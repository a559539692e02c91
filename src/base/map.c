/* Open addressing with linear probing; removed places are reused when the map
 * is laid out anew. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/map.h"

struct rdl_map_place {
    rdl_key key; /* 0,0: empty; 0,1: removed */
    rdl_pair value;
};

static bool same(rdl_key a, rdl_key b)
{
    return a.low == b.low && a.high == b.high;
}

static bool is_empty(const rdl_map_place *place)
{
    return same(place->key, (rdl_key){ 0, 0 });
}

static bool is_live(const rdl_map_place *place)
{
    return place->key.low != 0 || place->key.high > 1;
}

void rdl_map_fini(rdl_map *map)
{
    rdl_free(map->places);
    *map = (rdl_map){ .purse = map->purse };
}

static rdl_map_place *find(const rdl_map *map, rdl_key key)
{
    if (map->capacity == 0)
        return NULL;
    for (size_t i = key.low;; i++) {
        rdl_map_place *place = &map->places[i & (map->capacity - 1)];

        if (is_empty(place))
            return NULL;
        if (same(place->key, key))
            return place;
    }
}

rdl_pair *rdl_map_get(const rdl_map *map, rdl_key key)
{
    rdl_map_place *place = find(map, key);

    return place ? &place->value : NULL;
}

static void insert(rdl_map *map, rdl_key key, rdl_pair value)
{
    size_t i = key.low;

    while (!is_empty(&map->places[i & (map->capacity - 1)]))
        i++;
    map->places[i & (map->capacity - 1)] =
        (rdl_map_place){ .key = key, .value = value };
    map->used++;
    map->live++;
}

/* Makes room for one more: at most half of the places are ever used. */
static rdl_status lay_out(rdl_map *map)
{
    rdl_map fresh = { .purse = map->purse, .capacity = 16 };

    while (fresh.capacity < 4 * (map->live + 1))
        fresh.capacity *= 2;
    fresh.places =
        rdl_calloc_for(map->purse, fresh.capacity, sizeof *fresh.places);
    if (fresh.places == NULL)
        return rdl_fail(RDL_NO_MEMORY, "map: no memory for %zu places",
                        fresh.capacity);
    for (size_t i = 0; i < map->capacity; i++)
        if (is_live(&map->places[i]))
            insert(&fresh, map->places[i].key, map->places[i].value);
    rdl_free(map->places);
    *map = fresh;
    return RDL_OK;
}

rdl_status rdl_map_put(rdl_map *map, rdl_key key, rdl_pair value)
{
    rdl_map_place *place = find(map, key);

    if (place != NULL) {
        place->value = value;
        return RDL_OK;
    }
    if (2 * (map->used + 1) > map->capacity)
        RDL_TRY(lay_out(map));
    insert(map, key, value);
    return RDL_OK;
}

bool rdl_map_remove(rdl_map *map, rdl_key key)
{
    rdl_map_place *place = find(map, key);

    if (place == NULL)
        return false;
    place->key = (rdl_key){ 0, 1 };
    map->live--;
    return true;
}
