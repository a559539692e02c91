/* Programs for scripts of this folder, which start them as ranks: jobs that get stuck.
 * Alone, as a world of one, each passes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include <raddle/collective.h>
#include <raddle/group.h>
#include <raddle/world.h>
#include <unistd.h>

#define STEPS 30

/* After STEPS barriers the others sum, and the last rank never comes. */
RDL_TEST(the_last_rank_idles_instead_of_the_sum)
{
    int ranks[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, size;
    double x = 1;
    rdl_world *world;
    rdl_group group;

    CHECK_OK(rdl_world_open(NULL, &world));
    size = rdl_world_size(world);
    CHECK_OK(rdl_group_open(world, ranks, size, "dp", &group));
    for (int i = 0; i < STEPS; i++)
        CHECK_OK(rdl_barrier_at(world, RDL_WORLD, NULL, "step.c:1"));
    if (size > 1 && rdl_world_rank(world) == size - 1)
        pause();
    CHECK_OK(rdl_all_reduce_at(world, group, &x, &x, 1, RDL_FLOAT64, RDL_SUM,
                               NULL, "sum \"x\".c:2"));
    CHECK_OK(rdl_world_close(world));
}
