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

void rdl_world_record(rdl_world *world, bool record)
{
    unsigned char *slice = (unsigned char *)world->slice;

    world->recorder.ring =
        record ? (rdl_record *)(void *)(slice + RDL_RECORDS_AT) : NULL;
    world->texts.shelf = record ? &world->shelf : NULL;
}
