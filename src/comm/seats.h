/* Seats: on which processors the members of a lane run. The kernel sees little reason
 * to move ranks apart that wait for each other, as each of them rests half of the time
 * and the other processors may be busy; so they move by themselves. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_SEATS_H
#define RDL_COMM_SEATS_H

#include "base/here.h"
#include "base/layout.h"
#include "comm/lane.h"

#include <stdbool.h>

/* For the others: this rank runs here. Seldom a new place, so seldom a store. */
static inline void rdl_seats_note(rdl_slice *mine)
{
    int32_t cpu = rdl_cpu_here() + 1;

    if (atomic_load_explicit(&mine->cpu, memory_order_relaxed) != cpu)
        atomic_store_explicit(&mine->cpu, cpu, memory_order_relaxed);
}

/* Whether that rank has published from the very processor on which this thread runs,
 * which keeps it from going on by spinning. */
static inline bool rdl_seats_share(const rdl_slice *other)
{
    int32_t here = rdl_cpu_here() + 1;

    return here > 0 &&
           atomic_load_explicit(&other->cpu, memory_order_relaxed) == here;
}

/* At the start, where ranks share processors: neighbours begin on one. */
void rdl_seats_take(const rdl_world *world);

/* In a wait that may be long, with the lane's turn: every now and then, where more
 * members run on this processor than is their share, the last of them moves to where
 * there are fewest. */
void rdl_seats_look(rdl_lane *lane);

#endif
