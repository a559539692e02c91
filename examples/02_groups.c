/* Groups: any list of ranks, in any order, opened without asking anybody. A
 * position in the list is a group rank; a second name is a second lane. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>
#include <raddle/group.h>
#include <raddle/world.h>
#include <stdio.h>

/* Opens the list under name and broadcasts the world rank of its first member,
 * group rank 0. */
static rdl_status meet(rdl_world *world, const int *ranks, int count,
                       const char *name)
{
    int here = rdl_world_rank(world), place, first;
    rdl_group group;
    rdl_status st = rdl_group_open(world, ranks, count, name, &group);

    if (st != RDL_OK)
        return st;
    st = rdl_group_rank(world, group, &place);
    if (st == RDL_OK && place >= 0) {
        int32_t word = here;

        st = rdl_broadcast(world, group, &word, 1, RDL_INT32, 0, NULL);
        if (st == RDL_OK)
            st = rdl_group_world_rank(world, group, 0, &first);
        if (st == RDL_OK)
            printf("world rank %d is rank %d of %d in '%s': its first is world "
                   "rank %d, which says %d\n",
                   here, place, count, name, first, (int)word);
    }
    rdl_status closed = rdl_group_close(world, group);

    return st != RDL_OK ? st : closed;
}

/* A mistake on purpose, on every rank but the last: a call on a group that
 * this rank is not in. Nothing is sent, and the group is as before. */
static rdl_status intrude(rdl_world *world, int last)
{
    rdl_group group;
    rdl_status st = rdl_group_open(world, &last, 1, "the last one's", &group);

    if (st != RDL_OK)
        return st;
    if (rdl_barrier(world, group, NULL) != RDL_OK)
        printf("world rank %d may not: %s\n", rdl_world_rank(world),
               rdl_error_detail());
    return rdl_group_close(world, group);
}

int main(void)
{
    rdl_world *world = NULL;
    rdl_status st = rdl_world_open(NULL, &world);

    if (st == RDL_OK) {
        int last = rdl_world_size(world) - 1;

        if (last == 0)
            printf("a world of one has no pairs: raddle run -n 4 -- ...\n");
        if (last >= 1)
            st = meet(world, (int[]){ last, 0 }, 2, "pair");
        if (st == RDL_OK && last >= 1)
            st = meet(world, (int[]){ last, 0 }, 2, "pair, second lane");
        if (st == RDL_OK && last >= 2)
            st = meet(world, (int[]){ last, 0, 1 }, 3, "triple");
        if (st == RDL_OK)
            st = intrude(world, last);
    }
    if (st != RDL_OK)
        fprintf(stderr, "02_groups: %s\n", rdl_error_detail());
    rdl_status closed = rdl_world_close(world);

    return st == RDL_OK && closed == RDL_OK ? 0 : 1;
}
