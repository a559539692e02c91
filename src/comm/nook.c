/* Which lane has which nook. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/nook.h"

#include "base/bell.h"
#include "comm/world.h"

/* An owner is asked for its nook that many at a time, and that seldom. */
#define ASKED 4
#define UNLUCKY_PAUSE 8

static uint32_t number_of(const rdl_world *world, uint64_t offset)
{
    uint64_t first = RDL_STAGING_AT + world->shelf.lease_bytes;

    return (uint32_t)((offset - first) / RDL_NOOK_BYTES);
}

/* Under the world's lock. From a lane that nobody uses just now. */
static uint64_t take_from(rdl_lane *owner)
{
    uint64_t ticket, offset = 0;

    if (owner == NULL || !rdl_turns_try(&owner->turns, &ticket))
        return 0;
    if (owner->nook != 0 && rdl_registry_all_passed(owner)) {
        offset = owner->nook;
        owner->nook = 0;
    }
    rdl_lane_pass_turn(owner, ticket);
    return offset;
}

static uint64_t take_one_at_rest(rdl_world *world)
{
    uint32_t n = world->shelf.n_nooks;
    uint64_t offset = 0;

    for (uint32_t i = 0; i < ASKED && i < n && offset == 0; i++)
        offset = take_from(world->nook_owners[world->nook_hand++ % n]);
    return offset;
}

static void find(rdl_lane *lane)
{
    rdl_world *world = lane->world;

    pthread_mutex_lock(&world->lock);
    lane->nook = rdl_shelf_take_nook(&world->shelf);
    if (lane->nook == 0)
        lane->nook = take_one_at_rest(world);
    if (lane->nook != 0)
        world->nook_owners[number_of(world, lane->nook)] = lane;
    pthread_mutex_unlock(&world->lock);
}

#ifdef RDL_MUTANT_NOOK /* tests must catch this build */
#define PART_OF(uses) ((uses)*0)
#else
#define PART_OF(uses) ((uses) % RDL_NOOK_PARTS)
#endif

uint64_t rdl_nook_next(rdl_lane *lane)
{
    uint32_t part;

    if (lane->nook == 0 && lane->nook_uses++ % UNLUCKY_PAUSE == 0)
        find(lane);
    if (lane->nook == 0)
        return 0;
    part = PART_OF(lane->nook_uses++);
    lane->nook_phases[part] = lane->sequence + 1;
    return lane->nook + part * RDL_SMALL;
}

uint64_t rdl_nook_needs(const rdl_lane *lane)
{
    uint64_t now = lane->nook_phases[lane->nook_uses % RDL_NOOK_PARTS];
    uint64_t next = lane->nook_phases[(lane->nook_uses + 1) % RDL_NOOK_PARTS];

    return now > next ? now : next;
}

static inline void fetch_to_write(const void *line)
{
#if defined(__x86_64__) /* compilers do not know that all processors have it */
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

void rdl_nook_prepare(const rdl_lane *lane, size_t bytes)
{
    const unsigned char *part = rdl_lane_peer_staging(
        lane, lane->comm->me,
        lane->nook + lane->nook_uses % RDL_NOOK_PARTS * RDL_SMALL);

    for (size_t i = 0; i < bytes; i += RDL_CACHE_LINE)
        fetch_to_write(part + i);
}

void rdl_nook_give(rdl_lane *lane)
{
    rdl_world *world = lane->world;

    if (lane->nook == 0)
        return;
    world->nook_owners[number_of(world, lane->nook)] = NULL;
    rdl_shelf_give_nook(&world->shelf, lane->nook);
    lane->nook = 0;
}
