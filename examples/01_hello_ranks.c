/* The first program: every rank says who it is, and together they add. Rank r
 * gives 10^r, so that the digits of the sum spell who took part. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>
#include <raddle/world.h>
#include <stdio.h>

static int64_t power_of_ten(int rank)
{
    int64_t power = 1;

    for (int i = 0; i < rank % 18; i++) /* more digits may not fit */
        power *= 10;
    return power;
}

int main(void)
{
    rdl_world *world = NULL;
    int64_t sum = 0;

    if (rdl_world_open(NULL, &world) != RDL_OK)
        goto fail;

    int rank = rdl_world_rank(world);
    int size = rdl_world_size(world);
    int64_t mine = power_of_ten(rank);

    if (rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64, RDL_SUM,
                       NULL) != RDL_OK)
        goto fail;
    printf("rank %d of %d: the sum is %lld\n", rank, size, (long long)sum);

    for (int r = 0; r < size; r++)
        sum -= power_of_ten(r);
    if (sum != 0)
        fprintf(stderr, "01_hello_ranks: it is wrong by %lld\n", (long long)sum);
    return rdl_world_close(world) == RDL_OK && sum == 0 ? 0 : 1;

fail:
    fprintf(stderr, "01_hello_ranks: %s\n", rdl_error_detail());
    rdl_world_close(world);
    return 1;
}
