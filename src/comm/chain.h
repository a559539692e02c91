/* Chains: when a wait has timed out, who keeps whom waiting. Whom we wait for may
 * itself wait for another rank, in another group; the end of that chain is the rank to
 * look at, and if it comes back to where it was, it is a cycle and nobody's fault
 * alone. Read from the records of all ranks, without asking them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_CHAIN_H
#define RDL_COMM_CHAIN_H

#include "base/ranks.h"

#include <raddle/world.h>
#include <stdbool.h>
#include <stdint.h>

/* Adds to text how the chain goes on from us, who wait for world rank peer on the lane
 * with this half of a key, since the counter showed `since`. Nothing if there is
 * nothing to say. peer may be ourselves: then we wait for our turn on the lane. */
void rdl_chain_add(rdl_text *text, const rdl_world *world, int peer,
                   uint64_t lane, uint64_t since);

/* Adds that what has the turn on the lane before our call, which that record is of, is
 * in a batch that has not been ended: ": barrier at train.c:7 is in ..."; whether it
 * is. */
bool rdl_chain_add_batch(rdl_text *text, const rdl_world *world,
                         uint64_t record);

/* Whether world rank peer has issued a call on that lane, which has not ended. */
bool rdl_chain_has_issued(const rdl_world *world, int peer, uint64_t lane);

/* Adds "; rank 2 is stopped", or that it writes its core, if the system says so. */
void rdl_chain_add_condition(rdl_text *text, const rdl_world *world, int rank);

#endif
