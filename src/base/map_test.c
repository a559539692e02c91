/* Maps, against an array that is searched. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/map.h"

#include "base/fault.h"
#include "support/test.h"

#include <string.h>

/* Few different low halves, so that keys collide. */
static rdl_key key_of(int i)
{
    return (rdl_key){ (uint64_t)(i % 7), (uint64_t)i + 2 };
}

RDL_TEST(an_empty_map_has_nothing_and_can_be_freed)
{
    rdl_map map = { 0 };

    CHECK(rdl_map_get(&map, key_of(1)) == NULL);
    CHECK(!rdl_map_remove(&map, key_of(1)));
    rdl_map_fini(&map);
    rdl_map_fini(&map);
}

RDL_TEST(what_was_put_is_there_until_it_is_removed)
{
    rdl_map map = { 0 };

    CHECK_OK(rdl_map_put(&map, key_of(1), (rdl_pair){ 10, 11 }));
    CHECK_OK(rdl_map_put(&map, key_of(8), (rdl_pair){ 80, 81 }));
    CHECK_INT(rdl_map_get(&map, key_of(1))->second, 11);
    CHECK_OK(rdl_map_put(&map, key_of(1), (rdl_pair){ 12, 13 }));
    CHECK_INT(rdl_map_get(&map, key_of(1))->first, 12);
    CHECK_INT(map.live, 2);
    CHECK(rdl_map_remove(&map, key_of(1)));
    CHECK(!rdl_map_remove(&map, key_of(1)));
    CHECK(rdl_map_get(&map, key_of(1)) == NULL);
    CHECK_INT(rdl_map_get(&map, key_of(8))->first, 80); /* behind the gap */
    rdl_map_fini(&map);
}

enum { KEYS = 200 };

static void check_all(const rdl_map *map, const bool *there,
                      const uint64_t *values)
{
    size_t n = 0;

    for (int i = 0; i < KEYS; i++) {
        const rdl_pair *pair = rdl_map_get(map, key_of(i));

        CHECK((pair != NULL) == there[i]);
        if (pair != NULL)
            CHECK_INT(pair->first, values[i]);
        n += there[i];
    }
    CHECK_INT(map->live, n);
    CHECK(2 * map->used <= map->capacity);
}

RDL_TEST(a_map_does_what_an_array_does)
{
    uint64_t seed = rdl_test_seed();
    bool there[KEYS] = { false };
    uint64_t values[KEYS] = { 0 };
    rdl_map map = { 0 };

    for (int step = 0; step < 20000; step++) {
        int i = (int)(rdl_test_random(&seed) % KEYS);

        if (rdl_test_random(&seed) % 3 > 0) {
            values[i] = rdl_test_random(&seed);
            CHECK_OK(rdl_map_put(&map, key_of(i), (rdl_pair){ values[i], 0 }));
            there[i] = true;
        } else {
            CHECK_INT(rdl_map_remove(&map, key_of(i)), there[i]);
            there[i] = false;
        }
        if (step % 500 == 0)
            check_all(&map, there, values);
    }
    check_all(&map, there, values);
    rdl_map_fini(&map);
}

RDL_TEST(coming_and_going_does_not_make_a_map_grow)
{
    rdl_map map = { 0 };

    for (int i = 0; i < 100000; i++) {
        CHECK_OK(rdl_map_put(&map, key_of(i), (rdl_pair){ 1, 1 }));
        CHECK(rdl_map_remove(&map, key_of(i)));
    }
    CHECK_INT(map.live, 0);
    CHECK(map.capacity <= 64);
    rdl_map_fini(&map);
}

RDL_TEST(a_map_without_memory_stays_as_it_was)
{
#ifdef RDL_FAULTS
    rdl_fault plan = { .memory_at = 1, .onward = true };
    rdl_map map = { 0 };
    int i = 0;

    for (; i < 8; i++)
        CHECK_OK(rdl_map_put(&map, key_of(i), (rdl_pair){ (uint64_t)i, 0 }));
    rdl_fault_use(&plan);
    while (rdl_map_put(&map, key_of(i), (rdl_pair){ (uint64_t)i, 0 }) == RDL_OK)
        i++;
    CHECK_STATUS(rdl_map_put(&map, key_of(i), (rdl_pair){ 0, 0 }),
                 RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "no memory for");
    CHECK_OK(
        rdl_map_put(&map, key_of(0), (rdl_pair){ 5, 0 })); /* no room needed */
    rdl_fault_use(NULL);
    CHECK_INT(map.live, i);
    for (int j = 1; j < i; j++)
        CHECK_INT(rdl_map_get(&map, key_of(j))->first, j);
    CHECK(rdl_map_get(&map, key_of(i)) == NULL);
    CHECK_OK(rdl_map_put(&map, key_of(i), (rdl_pair){ 1, 0 }));
    rdl_map_fini(&map);
#else
    SKIP("built without RADDLE_FAULTS");
#endif
}
