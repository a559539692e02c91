/* The seam. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/seam.h"

#include "comm/world.h"

void rdl_world_unfence(rdl_world *world, bool unfenced)
{
    world->unfenced = unfenced;
}

void rdl_world_delay(rdl_world *world, const rdl_delay *delay)
{
    world->delay = delay;
}

void rdl_world_compare(rdl_world *world, bool compare)
{
    world->uncompared = !compare;
}
