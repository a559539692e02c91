/* Nooks: pieces of a rank's staging that lanes keep for small operations, so that
 * these need no phase in which staging is given back.
 *
 * A nook has parts, which a lane's small operations use in turn. By the time a part's
 * turn comes again all members have done with it: the lane has waited for everyone in a
 * later phase, or, where it has run ahead, for what rdl_nook_needs says. There are few nooks: a lane that finds none takes that of a lane which
 * rests, or goes without, and its operation takes the way of larger ones. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_NOOK_H
#define RDL_COMM_NOOK_H

#include "comm/lane.h"

/* With the lane's turn: the part for its next small operation, as an offset in the
 * slice; 0: there is none. Never waits. */
uint64_t rdl_nook_next(rdl_lane *lane);

/* The phase that all must have passed before a part is used by an operation that runs
 * ahead: the next part's, and the one's after, so that whoever comes then need not
 * wait. */
uint64_t rdl_nook_needs(const rdl_lane *lane);

/* Fetches the first bytes of the next part into this core's caches, to be written: they
 * are still in those of the members that read them last. */
void rdl_nook_prepare(const rdl_lane *lane, size_t bytes);

/* The lane's nook, if it has one, is free: nobody reads it any more. Under the world's
 * lock, with the lane's turn. */
void rdl_nook_give(rdl_lane *lane);

#endif
