/* A program outside the tree, against the installed library: a world of one. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "%s\n", rdl_error_detail());
    return 1;
}

int main(void)
{
    const rdl_world_options options = { .rank = 0, .size = 1 };
    rdl_world *world;
    double sum = 0, one = 1;

    if (rdl_world_open(&options, &world) != RDL_OK)
        return failed();
    if (rdl_all_reduce(world, RDL_WORLD, &one, &sum, 1, RDL_FLOAT64, RDL_SUM,
                       NULL) != RDL_OK)
        return failed();
    printf("%d rank, sum %g\n", rdl_world_size(world), sum);
    return rdl_world_close(world) == RDL_OK ? 0 : failed();
}
