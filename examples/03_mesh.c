/* Meshes: the ranks of a world in two named axes, for any number of ranks. Rank r
 * gives 10^r, so that the digits of a sum spell who meets whom along an axis. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>
#include <raddle/mesh.h>
#include <raddle/world.h>
#include <stdio.h>

/* The largest divisor of size that is not above its root. */
static int rows_for(int size)
{
    int rows = 1;

    for (int i = 2; i * i <= size; i++)
        if (size % i == 0)
            rows = i;
    return rows;
}

static int64_t power_of_ten(int rank)
{
    int64_t power = 1;

    for (int i = 0; i < rank % 18; i++) /* more digits may not fit */
        power *= 10;
    return power;
}

/* Adds along axis, which may be several joined by commas. */
static rdl_status meet(rdl_world *world, rdl_mesh *mesh, const char *axis)
{
    int rank = rdl_world_rank(world), place = 0, size = 0;
    int64_t mine = power_of_ten(rank), sum = 0;
    rdl_group group;
    rdl_status st = rdl_mesh_group(mesh, axis, &group);

    if (st == RDL_OK)
        st = rdl_mesh_coordinate(mesh, axis, &place);
    if (st == RDL_OK)
        st = rdl_mesh_size(mesh, axis, &size);
    if (st == RDL_OK)
        st = rdl_all_reduce(world, group, &mine, &sum, 1, RDL_INT64, RDL_SUM,
                            NULL);
    if (st == RDL_OK)
        printf("rank %d is %d of %d along %s: the sum is %lld\n", rank, place,
               size, axis, (long long)sum);
    return st;
}

int main(void)
{
    static const char *const names[] = { "dp", "tp" };
    rdl_world *world = NULL;
    rdl_mesh *mesh = NULL;
    rdl_status st = rdl_world_open(NULL, &world);

    if (st == RDL_OK) {
        int size = rdl_world_size(world), rows = rows_for(size);

        st = rdl_mesh_create(world, names, (int[]){ rows, size / rows }, 2,
                             &mesh);
    }
    if (st == RDL_OK)
        st = meet(world, mesh, "dp");
    if (st == RDL_OK)
        st = meet(world, mesh, "tp");
    if (st == RDL_OK)
        st = meet(world, mesh, "dp,tp"); /* the whole world */
    if (st != RDL_OK)
        fprintf(stderr, "03_mesh: %s\n", rdl_error_detail());
    rdl_mesh_destroy(mesh);
    rdl_status closed = rdl_world_close(world);

    return st == RDL_OK && closed == RDL_OK ? 0 : 1;
}
