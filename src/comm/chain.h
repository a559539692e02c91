/* Chains: when a wait has timed out, who keeps whom waiting. Whom we wait for may
 * itself wait for another rank, in another group; the end of that chain is the rank to
 * look at, and if it comes back to where it was, it is a cycle and nobody's fault
 * alone. Read from the records of all ranks, without asking them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_CHAIN_H
#define RDL_COMM_CHAIN_H

#include "base/arena.h"
#include "base/ranks.h"

/* Adds to text how the chain goes on from us: world rank me, which waits for world
 * rank peer on the lane with this half of a key, since the counter showed `since`.
 * Nothing if there is nothing to say. */
void rdl_chain_add(rdl_text *text, const rdl_arena *arena, int me, int peer,
                   uint64_t lane, uint64_t since);

#endif
