/* Work: operations that go on beside the caller. A collective whose rdl_call has a
 * stream or a place for a work returns when it is issued.
 *
 * Order: it has taken its place in its group's queue by then; operations of one
 * group run in the order in which they were issued, whatever their streams.
 * Buffers: must stay as they are until the work is done (rdl_work_wait or
 * rdl_work_test have said so, or the stream has passed it). Counts are copied.
 * Handles: plain values, as those of groups. Dropping one is allowed and costs
 * nothing; wait and a test that finds it done end it. The results of up to
 * RDL_WORKS_KEPT works (or what rdl_world_options says) that nobody has asked
 * for are kept. rdl_world_close waits for those that are pending, up to their
 * operations' limits.
 * Threads: any. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_WORK_H
#define RADDLE_WORK_H

#include <raddle/collective.h>
#include <raddle/group.h>
#include <raddle/site.h>
#include <raddle/status.h>
#include <raddle/stream.h>
#include <raddle/world.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDL_WORKS_KEPT 1024

/* Waits until the work is done and returns its result with its sentence; the
 * handle is ended. timeout_ms 0: as long as the operation itself may take.
 * RDL_TIMEOUT with the handle still good, if timeout_ms comes first.
 * RDL_INVALID: no such work, or it was waited for before. */
RDL_CALL rdl_status rdl_work_wait(rdl_world *world, rdl_work work,
                                  int64_t timeout_ms);

/* *done says whether it is done; then the result is returned, and the handle is
 * ended. Helps the work on, and never waits. */
RDL_CALL rdl_status rdl_work_test(rdl_world *world, rdl_work work, bool *done);

/* When the work is done, or at once if it is, the number 1 is written to descriptor
 * (8 bytes, as an eventfd takes them), once. For whoever waits for many things in one
 * place; rdl_work_test tells which of them it was. The descriptor stays open until
 * then, and does not block. The handle stays good. RDL_INVALID: no such work, or one
 * that has such a descriptor already. */
RDL_CALL rdl_status rdl_work_notify(rdl_world *world, rdl_work work,
                                    int descriptor);

/* What the stream does next starts when the work is done (the null stream waits
 * here); the handle stays good. The work's failure becomes the stream's. */
RDL_CALL rdl_status rdl_work_fence(rdl_world *world, rdl_work work,
                                   rdl_stream *stream);

/* Ends the work's group: see rdl_group_revoke. The handle stays good. */
RDL_CALL rdl_status rdl_work_revoke(rdl_world *world, rdl_work work);

/* Ends the group, on all its members: pending and later calls on it return
 * RDL_REVOKED, or the failure that came first. Does not wait. */
RDL_CALL rdl_status rdl_group_revoke(rdl_world *world, rdl_group group);

/* A batch: calls on any groups of a world that start together, in any order, as
 * sends and receives between the same ranks must. Calls whose rdl_call names the
 * batch only take their place; rdl_batch_end starts all of them. */
RDL_CALL rdl_status rdl_batch_begin(rdl_world *world, rdl_batch **out);

/* Starts all, and frees the batch, always. Waits until all have ended and returns
 * the first failure; with a stream or a work in call, returns at once, and they are
 * of the batch as a whole. call may be NULL; its limit is not used. */
RDL_CALL rdl_status rdl_batch_end(rdl_batch *batch, const rdl_call *call);

/* The same with a call site (raddle/site.h). */
RDL_CALL rdl_status rdl_work_wait_at(rdl_world *world, rdl_work work,
                                     int64_t timeout_ms, const char *site);
RDL_CALL rdl_status rdl_work_fence_at(rdl_world *world, rdl_work work,
                                      rdl_stream *stream, const char *site);
RDL_CALL rdl_status rdl_work_revoke_at(rdl_world *world, rdl_work work,
                                       const char *site);
RDL_CALL rdl_status rdl_group_revoke_at(rdl_world *world, rdl_group group,
                                        const char *site);

#ifdef __cplusplus
}
#endif

#ifndef RDL_NO_SITES
#define rdl_work_wait(...) rdl_work_wait_at(__VA_ARGS__, RDL_HERE)
#define rdl_work_fence(...) rdl_work_fence_at(__VA_ARGS__, RDL_HERE)
#define rdl_work_revoke(...) rdl_work_revoke_at(__VA_ARGS__, RDL_HERE)
#define rdl_group_revoke(...) rdl_group_revoke_at(__VA_ARGS__, RDL_HERE)
#endif
#endif
