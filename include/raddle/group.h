/* Groups: an ordered list of ranks of a world, under a name.
 *
 * Opening is local: no message, no agreement, no order between ranks. The same
 * list under the same name is the same group, however often it is opened; the
 * n-th operation of each member on it belongs together, also across closing and
 * opening again. The same list under another name is a second *lane* over the
 * same communicator, with an order of its own, for a user that must never pair
 * with the first.
 *
 * Ranks: `ranks` are world ranks. A position in the list is a *group rank*;
 * every collective takes group ranks for its roots. The list's order is kept:
 * in [3,1] world rank 3 is group rank 0.
 * Handles: plain values, copied freely, checked at every call. A handle that was
 * closed, or belongs to another world or to an earlier life, is RDL_INVALID with
 * a sentence.
 * Threads: any. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_GROUP_H
#define RADDLE_GROUP_H

#include <raddle/site.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDL_NAME_MOST 63

typedef struct rdl_group {
    uint32_t index;
    uint32_t generation;
    uint32_t world;
} rdl_group;

/* All ranks in order, no name: open while the world is, never closed. */
#ifdef __cplusplus
#define RDL_WORLD (rdl_group{ 0, 0, 0 })
#else
#define RDL_WORLD ((rdl_group){ 0, 0, 0 })
#endif

/* Opens the group of these count ranks, in this order, under name (NULL or "":
 * the default lane; at most RDL_NAME_MOST bytes). Both are copied. A rank that
 * is not in the list may open it too: its handle answers questions about the
 * group, and collectives refuse it. Each successful open wants one close. The
 * list of all ranks in order without a name is RDL_WORLD, and stays open.
 *
 * RDL_INVALID: an empty list, a rank outside the world or named twice, a name
 * too long. RDL_NO_MEMORY. */
RDL_CALL rdl_status rdl_group_open(rdl_world *world, const int *ranks,
                                   int count, const char *name, rdl_group *out);

/* Gives the handle back; the last close of a group makes its handles stale. Does
 * not wait. Returns RDL_OK, or the group's first failure if no call has reported
 * it yet (closed all the same); RDL_INVALID for a handle that is not open;
 * RDL_STATE while another thread is inside a call on the group. RDL_WORLD is
 * left as it is. */
RDL_API rdl_status rdl_group_close(rdl_world *world, rdl_group group);

/* The number of ranks; this rank's group rank, or -1 if it is not a member. */
RDL_CALL rdl_status rdl_group_size(rdl_world *world, rdl_group group, int *size);
RDL_CALL rdl_status rdl_group_rank(rdl_world *world, rdl_group group, int *rank);

/* From world rank to group rank and back. RDL_INVALID if there is none: "rank 0
 * is not in [1,3]". */
RDL_CALL rdl_status rdl_group_rank_of(rdl_world *world, rdl_group group,
                                      int world_rank, int *group_rank);
RDL_CALL rdl_status rdl_group_world_rank(rdl_world *world, rdl_group group,
                                         int group_rank, int *world_rank);

/* A new group of those of group's members that are left: all but the ranks that
 * have died, closed their world or aborted it, in the same order. Every member
 * that is left calls it, and all of them get the same group, also if they heard of
 * different deaths, or one dies meanwhile: it is then left out for all, or for
 * nobody. The n-th call of each member on one group belongs together, and makes
 * another group than the call before. The old group is ended on all its members,
 * as by rdl_group_revoke, if it has not failed before; it is closed as ever, and
 * the new one too. Waits at most timeout_ms (0: the world's limit) for members that
 * are there and do not call.
 *
 * RDL_TIMEOUT: those are named; a rank that is stopped is one of them. Call again to
 * go on waiting. RDL_INVALID: a stale handle, not a member, out is NULL, a negative
 * limit; nothing is ended then. RDL_STATE: another thread of this rank is in such a
 * call on the group. RDL_NO_MEMORY: call again. RDL_PEER: the others take this rank
 * for gone. On failure *out is untouched. */
RDL_CALL rdl_status rdl_group_shrink(rdl_world *world, rdl_group group,
                                     int64_t timeout_ms, rdl_group *out);

/* The same with a call site (raddle/site.h). */
RDL_CALL rdl_status rdl_group_shrink_at(rdl_world *world, rdl_group group,
                                        int64_t timeout_ms, rdl_group *out,
                                        const char *site);

#ifdef __cplusplus
}
#endif

#ifndef RDL_NO_SITES
#define rdl_group_shrink(...) rdl_group_shrink_at(__VA_ARGS__, RDL_HERE)
#endif
#endif
