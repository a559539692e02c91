/* The public side of a rank's heap. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/memory.h>

#include "comm/world.h"

_Static_assert(RDL_HEAP_UNIT % RDL_MEMORY_ALIGNMENT == 0,
               "blocks are whole units, and the heap begins with one");

rdl_status rdl_mem_alloc(rdl_world *world, size_t bytes, void **out)
{
    RDL_TRY(rdl_world_check(world));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_mem_alloc: out is NULL");
    if (bytes == 0) {
        *out = NULL;
        return RDL_OK;
    }
    return rdl_heap_take(&world->heap, bytes, out);
}

rdl_status rdl_mem_free(rdl_world *world, void *memory)
{
    RDL_TRY(rdl_world_check(world));
    return memory == NULL ? RDL_OK : rdl_heap_give(&world->heap, memory);
}
